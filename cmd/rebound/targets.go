package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery"
)

const targetsUsage = `usage: rebound targets [--url URL] [--json]
       rebound targets [--url URL] reset TARGET [ITEM]

Lists what a running gateway keeps of upstreams and models: open breakers, keys that
cool down, what it learned from refusals and answers, their windows and their pace,
each with its age and its evidence. reset forgets one of these, or all that is kept
of a target, so that it is asked again as if it were new. Windows that lists of
models tell, and the pace, are each replica's own.
`

// runTargets is `rebound targets`; it returns the exit code.
func runTargets(args []string, env configs.Env, stdout, stderr io.Writer) int {
	c := newAdminCommand("targets", targetsUsage, env, stdout, stderr)
	asJSON := c.flags.Bool("json", false, "")
	return c.run(args, func(words []string) error {
		switch {
		case len(words) == 0:
			return c.show("/rebound/targets", *asJSON, listTable("targets", "every target may be asked, and nothing was learned", marksHead, writeMark))
		case (len(words) == 2 || len(words) == 3) && words[0] == "reset":
			query, what := url.Values{"target": words[1:2]}, "nothing"
			if len(words) == 3 {
				query["item"], what = words[2:], fmt.Sprintf("no %q", words[2])
			}
			if _, err := c.ask(http.MethodDelete, "/rebound/targets?"+query.Encode(), nil); err != nil {
				return err
			}
			fmt.Fprintf(stdout, "%s is kept of %s any more\n", what, words[1])
			return nil
		}
		return wrongWords(words)
	})
}

// marksHead is above the rows of writeMark.
const marksHead = "TARGET\tITEM\tSINCE\tFOR\tDETAIL\tEVIDENCE"

func writeMark(w io.Writer, m recovery.Mark) {
	left, since, evidence := "-", "-", m.Evidence
	if d := time.Until(m.Until).Round(time.Second); d > 0 {
		left = d.String()
	} else if m.Kind == recovery.MarkBreaker {
		left = "half-open"
	}
	if !m.Since.IsZero() {
		since = max(0, time.Since(m.Since).Round(time.Second)).String() + " ago"
	}
	if m.Request != "" {
		evidence += ", request " + m.Request
	}
	fmt.Fprintf(w, "%q\t%q\t%s\t%s\t%s\t%s\n", m.Target, m.Item, since, left, shown(m.Detail), shown(evidence))
}

// shown is a text without what a terminal would obey.
func shown(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}
