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
		table: targetsTable,
	}
	return c.run(args, env, stdout, stderr)
}

func targetsTable(body []byte, w io.Writer) (bool, error) {
	var list struct {
		Targets []recovery.Mark `json:"targets"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return false, err
	}
	fmt.Fprintln(w, "TARGET\tWHAT\tFOR\tDETAIL")
	for _, m := range list.Targets {
		left := "half-open"
		if d := time.Until(m.Until).Round(time.Second); d > 0 {
			left = d.String()
		}
		fmt.Fprintf(w, "%q\t%s\t%s\t%s\n", m.Target, m.Kind, left, m.Detail)
	}
	return len(list.Targets) > 0, nil
}
