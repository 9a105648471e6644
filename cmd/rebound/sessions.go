package main

import (
	"fmt"
	"io"
	"net/http"
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
	c := newAdminCommand("sessions", sessionsUsage, env, stdout, stderr)
	asJSON := c.flags.Bool("json", false, "")
	return c.run(args, func(words []string) error {
		switch {
		case len(words) == 0:
			return c.show("/rebound/sessions", *asJSON, listTable("sessions", "no session is stopped",
				"SESSION\tSINCE\tTOOL\tFAILURE\tTIMES", writeSession))
		case len(words) == 2 && words[0] == "reset":
			if _, err := c.ask(http.MethodDelete, "/rebound/sessions/"+url.PathEscape(words[1]), nil); err != nil {
				return err
			}
			fmt.Fprintf(stdout, "session %s may go on\n", words[1])
			return nil
		}
		return wrongWords(words)
	})
}

func writeSession(w io.Writer, s recovery.OpenSession) {
	fmt.Fprintf(w, "%s\t%s\t%q\t%s\t%d\n", s.Session, s.Since.UTC().Format(time.RFC3339), s.Tool, s.Category, s.Failures)
}
