package main

import (
	"fmt"
	"io"
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
	c := adminCommand{
		name: "targets", usage: targetsUsage, path: "/rebound/targets", none: "every target may be asked, and nothing was learned",
		one:   func(id string) string { return "/rebound/targets?target=" + url.QueryEscape(id) },
		done:  "nothing is kept of %s any more",
		table: targetTable(),
	}
	return c.run(args, env, stdout, stderr)
}

func targetTable() func(body []byte, w io.Writer) (bool, error) {
	return tableOf("targets", "TARGET\tWHAT\tSINCE\tFOR\tDETAIL", targetRow)
}

func targetRow(w io.Writer, m recovery.Mark) {
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
