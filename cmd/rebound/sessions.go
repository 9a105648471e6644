package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery"
)

const sessionsUsage = `usage: rebound sessions [--url URL] [--json]
       rebound sessions [--url URL] reset ID

Lists the agents' sessions that a running gateway has stopped because their tools
failed again and again in the same way; reset lets one go on. Without --url it is
the gateway of this machine (REBOUND_LISTEN, else 127.0.0.1:8080). For another
machine's set REBOUND_ADMIN_TOKEN.

Exit code: 0 done, 1 the gateway did not do it, 2 wrong use.
`

// maxSessionsAnswer bounds what is read of the gateway's answer.
const maxSessionsAnswer = 32 << 20

// runSessions is `rebound sessions`; it returns the exit code.
func runSessions(args []string, env configs.Env, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("sessions", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	base := flags.String("url", "", "")
	asJSON := flags.Bool("json", false, "")
	if err := flags.Parse(args); err != nil {
		if err == flag.ErrHelp {
			fmt.Fprint(stdout, sessionsUsage)
			return 0
		}
		fmt.Fprintf(stderr, "rebound sessions: %v\n\n%s", err, sessionsUsage)
		return 2
	}
	if *base == "" {
		var err error
		if *base, err = ownURL(env); err != nil {
			fmt.Fprintln(stderr, "rebound sessions:", err)
			return 2
		}
	}
	path := strings.TrimRight(*base, "/") + "/rebound/sessions"
	switch {
	case flags.NArg() == 0:
		body, ok := askAdmin(http.MethodGet, path, env, stderr)
		if !ok {
			return 1
		}
		return printSessions(body, *asJSON, stdout, stderr)
	case flags.NArg() == 2 && flags.Arg(0) == "reset":
		if _, ok := askAdmin(http.MethodDelete, path+"/"+url.PathEscape(flags.Arg(1)), env, stderr); !ok {
			return 1
		}
		fmt.Fprintln(stdout, "session", flags.Arg(1), "may go on")
		return 0
	}
	fmt.Fprint(stderr, sessionsUsage)
	return 2
}

// askAdmin asks a gateway's admin interface and reports what went wrong.
func askAdmin(method, path string, env configs.Env, stderr io.Writer) ([]byte, bool) {
	req, err := http.NewRequest(method, path, nil)
	if err != nil {
		fmt.Fprintln(stderr, "rebound sessions:", err)
		return nil, false
	}
	if token, ok := env(configs.EnvAdminToken); ok && token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	client := http.Client{Timeout: 5 * time.Second}
	resp, err := client.Do(req)
	if err != nil {
		fmt.Fprintln(stderr, "rebound sessions: no gateway answers there:", err)
		return nil, false
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxSessionsAnswer))
	if err == nil && resp.StatusCode >= 300 {
		var answer struct {
			Error struct{ Message string } `json:"error"`
		}
		_ = json.Unmarshal(body, &answer) // without a message the status has to do
		err = fmt.Errorf("%s %s", resp.Status, answer.Error.Message)
	}
	if err != nil {
		fmt.Fprintln(stderr, "rebound sessions:", err)
		return nil, false
	}
	return body, true
}

func printSessions(body []byte, asJSON bool, stdout, stderr io.Writer) int {
	if asJSON {
		_, _ = stdout.Write(body)
		return 0
	}
	var list struct {
		Sessions []recovery.OpenSession `json:"sessions"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		fmt.Fprintln(stderr, "rebound sessions: that is no gateway:", err)
		return 1
	}
	if len(list.Sessions) == 0 {
		fmt.Fprintln(stdout, "no session is stopped")
		return 0
	}
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SESSION\tSINCE\tTOOL\tFAILURE\tTIMES")
	for _, s := range list.Sessions {
		fmt.Fprintf(w, "%s\t%s\t%q\t%s\t%d\n", s.Session, s.Since.UTC().Format(time.RFC3339), s.Tool, s.Category, s.Failures)
	}
	_ = w.Flush()
	return 0
}
