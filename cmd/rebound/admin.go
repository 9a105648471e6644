package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rebound-llm/rebound/configs"
)

// adminCommand is a command that lists something of a running gateway, and may
// reset one of it.
type adminCommand struct {
	name  string // of the command
	usage string
	path  string                 // what is listed, below the gateway's address
	one   func(id string) string // what is deleted to reset one; nil where nothing can be reset
	done  string                 // what is said then, with the id in it
	// table writes the rows of a listing; false if there are none.
	table func(body []byte, w io.Writer) (rows bool, err error)
	none  string // what is said where there are none
}

const adminFlags = `
Without --url it is the gateway of this machine (REBOUND_LISTEN, else
127.0.0.1:8080). For another machine's set REBOUND_ADMIN_TOKEN.

Exit code: 0 done, 1 the gateway did not do it, 2 wrong use.
`

// maxAdminAnswer bounds what is read of the gateway's answer.
const maxAdminAnswer = 32 << 20

// run is the command; it returns the exit code.
func (c *adminCommand) run(args []string, env configs.Env, stdout, stderr io.Writer) int {
	fail := func(code int, problem any) int {
		fmt.Fprintf(stderr, "rebound %s: %v\n", c.name, problem)
		return code
	}
	flags := flag.NewFlagSet(c.name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	base := flags.String("url", "", "")
	asJSON := flags.Bool("json", false, "")
	if err := flags.Parse(args); err != nil {
		if err == flag.ErrHelp {
			fmt.Fprint(stdout, c.usage+adminFlags)
			return 0
		}
		fail(2, err)
		fmt.Fprint(stderr, "\n"+c.usage+adminFlags)
		return 2
	}
	if *base == "" {
		var err error
		if *base, err = ownURL(env); err != nil {
			return fail(2, err)
		}
	}
	address := strings.TrimRight(*base, "/")
	switch {
	case flags.NArg() == 0:
		body, err := askAdmin(http.MethodGet, address+c.path, env)
		if err != nil {
			return fail(1, err)
		}
		if *asJSON {
			_, _ = stdout.Write(body)
			return 0
		}
		w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
		rows, err := c.table(body, w)
		if err != nil {
			return fail(1, fmt.Errorf("that is no gateway: %w", err))
		}
		if !rows {
			fmt.Fprintln(stdout, c.none)
			return 0
		}
		_ = w.Flush()
		return 0
	case flags.NArg() == 2 && flags.Arg(0) == "reset" && c.one != nil:
		if _, err := askAdmin(http.MethodDelete, address+c.one(flags.Arg(1)), env); err != nil {
			return fail(1, err)
		}
		fmt.Fprintf(stdout, c.done+"\n", flags.Arg(1))
		return 0
	}
	fmt.Fprint(stderr, c.usage+adminFlags)
	return 2
}

// askAdmin asks a gateway's admin interface and reads the answer.
func askAdmin(method, url string, env configs.Env) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), adminPatience)
	defer cancel()
	resp, err := openAdmin(ctx, method, url, env, "")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(io.LimitReader(resp.Body, maxAdminAnswer))
}

// adminPatience bounds an answer that is no stream.
const adminPatience = 5 * time.Second

// openAdmin asks a gateway's admin interface; last is the event after which a stream
// goes on. An answer with an error status is an error.
func openAdmin(ctx context.Context, method, url string, env configs.Env, last string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return nil, err
	}
	if token, ok := env(configs.EnvAdminToken); ok && token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("no gateway answers there: %w", err)
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	var answer struct {
		Error struct{ Message string } `json:"error"`
	}
	_ = json.NewDecoder(io.LimitReader(resp.Body, maxAdminAnswer)).Decode(&answer) // without a message the status has to do
	return nil, fmt.Errorf("%s %s", resp.Status, answer.Error.Message)
}
