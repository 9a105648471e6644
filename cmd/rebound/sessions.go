package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/rebound-llm/rebound/recovery"
)

// sessionsCommand lists stopped sessions, and lets one continue.
func (p *program) sessionsCommand() *cobra.Command {
	list := p.adminCommand("sessions", "List stopped sessions; let one continue",
		`Lists the agent sessions that a running gateway has stopped, because a tool kept failing
in the same way or because the session's budget is used up.`, cobra.NoArgs)
	asJSON := list.json()
	reset := p.adminCommand("reset ID", "Let a stopped session continue", `Lets a stopped session continue: its next request goes to the model.`, cobra.ExactArgs(1))
	cmd := list.do(func([]string) error {
		return list.show("/rebound/sessions", *asJSON, listTable("sessions", "no session is stopped",
			"SESSION\tSINCE\tTOOL\tFAILURE\tTIMES", writeSession))
	})
	cmd.AddCommand(reset.do(func(args []string) error {
		return reset.act(http.MethodDelete, "/rebound/sessions/"+url.PathEscape(args[0]), nil, "session %s continues", args[0])
	}))
	return cmd
}

func writeSession(w io.Writer, s recovery.OpenSession) {
	if s.Budget != "" {
		fmt.Fprintf(w, "%s\t%s\t-\t%s\tall of %s used\n", s.Session, s.Since.UTC().Format(time.RFC3339), s.Category, printable(s.Budget))
		return
	}
	why := string(s.Category)
	if s.Category == recovery.CategoryNone { // the failure has no category; name the rule that found it
		why = "unclassified, " + printable(s.Rule)
	}
	fmt.Fprintf(w, "%s\t%s\t%q\t%s\t%d\n", s.Session, s.Since.UTC().Format(time.RFC3339), s.Tool, why, s.Failures)
}
