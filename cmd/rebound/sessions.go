package main

import (
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
		table: tableOf("sessions", "SESSION\tSINCE\tTOOL\tFAILURE\tTIMES", sessionRow),
	}
	return c.run(args, env, stdout, stderr)
}

func sessionRow(w io.Writer, s recovery.OpenSession) {
	fmt.Fprintf(w, "%s\t%s\t%q\t%s\t%d\n", s.Session, s.Since.UTC().Format(time.RFC3339), s.Tool, s.Category, s.Failures)
}
