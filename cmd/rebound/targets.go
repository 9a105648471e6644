package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery"
)

const targetsUsage = `usage: rebound targets [--url URL] [--json]
       rebound targets [--url URL] reset TARGET

Lists what a running gateway keeps of upstreams and models for a while: open
breakers, keys that cool down, and what it learned from refusals. reset forgets all
that is kept of one target, so that it is asked again as if it were new.
`

// runTargets is `rebound targets`; it returns the exit code.
func runTargets(args []string, env configs.Env, stdout, stderr io.Writer) int {
	c := newAdminCommand("targets", targetsUsage, env, stdout, stderr)
	asJSON := c.flags.Bool("json", false, "")
	return c.run(args, func(words []string) error {
		switch {
		case len(words) == 0:
			return c.show("/rebound/targets", *asJSON, targetsTable)
		case len(words) == 2 && words[0] == "reset":
			if _, err := c.ask(http.MethodDelete, "/rebound/targets?target="+url.QueryEscape(words[1]), nil); err != nil {
				return err
			}
			fmt.Fprintf(stdout, "nothing is kept of %s any more\n", words[1])
			return nil
		}
		return wrongWords(words)
	})
}

func targetsTable(w io.Writer, answer []byte) error {
	var list struct{ Targets []recovery.Mark }
	if err := json.Unmarshal(answer, &list); err != nil {
		return err
	}
	if len(list.Targets) == 0 {
		fmt.Fprintln(w, "every target may be asked, and nothing was learned")
		return nil
	}
	fmt.Fprintln(w, "TARGET\tWHAT\tSINCE\tFOR\tDETAIL")
	for _, m := range list.Targets {
		left := "half-open"
		if d := time.Until(m.Until).Round(time.Second); d > 0 {
			left = d.String()
		}
		since := "-"
		if !m.Since.IsZero() {
			since = max(0, time.Since(m.Since).Round(time.Second)).String() + " ago"
		}
		fmt.Fprintf(w, "%q\t%s\t%s\t%s\t%s\n", m.Target, m.Kind, since, left, m.Detail)
	}
	return nil
}
