package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery"
)

const sessionsUsage = `usage: rebound sessions [--url URL] [--json]
       rebound sessions [--url URL] reset ID

Lists the agents' sessions that a running gateway has stopped because their tools
failed again and again in the same way; reset lets one go on.
`

// runSessions is `rebound sessions`; it returns the exit code.
func runSessions(args []string, env configs.Env, stdout, stderr io.Writer) int {
	c := adminCommand{
		name: "sessions", usage: sessionsUsage, path: "/rebound/sessions", none: "no session is stopped",
		one:   func(id string) string { return "/rebound/sessions/" + url.PathEscape(id) },
		done:  "session %s may go on",
		table: sessionsTable,
	}
	return c.run(args, env, stdout, stderr)
}

func sessionsTable(body []byte, w io.Writer) (bool, error) {
	var list struct {
		Sessions []recovery.OpenSession `json:"sessions"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return false, err
	}
	fmt.Fprintln(w, "SESSION\tSINCE\tTOOL\tFAILURE\tTIMES")
	for _, s := range list.Sessions {
		fmt.Fprintf(w, "%s\t%s\t%q\t%s\t%d\n", s.Session, s.Since.UTC().Format(time.RFC3339), s.Tool, s.Category, s.Failures)
	}
	return len(list.Sessions) > 0, nil
}
