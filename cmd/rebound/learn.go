package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery"
)

const learnUsage = `usage: rebound learn [report] [--url URL] [--json]
       rebound learn export [--url URL]
       rebound learn import [--url URL] FILE
       rebound learn reset [--url URL]

report shows what notes to models brought, by recovery chain (or what the agent was
stuck in) and model, and what follows from it. export writes the observations as JSON lines, import adds those of a
file (- for standard input), reset forgets all, at all replicas.
`

// runLearn is `rebound learn`; it returns the exit code.
func runLearn(args []string, env configs.Env, stdin io.Reader, stdout, stderr io.Writer) int {
	verb := "report"
	if len(args) > 0 && args[0] != "" && args[0][0] != '-' {
		verb, args = args[0], args[1:]
	}
	c := newAdminCommand("learn", learnUsage, env, stdout, stderr)
	const corpus = "/rebound/learn/corpus"
	switch verb {
	case "report":
		asJSON := c.flags.Bool("json", false, "")
		return c.run(args, noWords(func() error { return c.show("/rebound/learn", *asJSON, learnTable) }))
	case "export":
		return c.run(args, noWords(func() error { return c.show(corpus, true, nil) }))
	case "import":
		return c.run(args, func(words []string) error {
			if len(words) != 1 {
				return wrongWords(words)
			}
			in := io.NopCloser(stdin)
			if words[0] != "-" {
				var err error
				if in, err = os.Open(words[0]); err != nil {
					return err
				}
				defer in.Close()
			}
			answer, err := c.ask(http.MethodPost, corpus, in)
			if err != nil {
				return err
			}
			var got struct{ Added, Refused int }
			if err := json.Unmarshal(answer, &got); err != nil {
				return fmt.Errorf("that is no gateway: %w", err)
			}
			fmt.Fprintf(stdout, "added %d observations, refused %d\n", got.Added, got.Refused)
			return nil
		})
	case "reset":
		return c.run(args, noWords(func() error {
			_, err := c.ask(http.MethodDelete, "/rebound/learn", nil)
			if err == nil {
				fmt.Fprintln(stdout, "what was learned of notes is forgotten")
			}
			return err
		}))
	}
	return c.run(args, func([]string) error { return wrongWords([]string{verb}) })
}

func learnTable(w io.Writer, answer []byte) error {
	var l recovery.Learned
	if err := json.Unmarshal(answer, &l); err != nil {
		return err
	}
	if l.Mode == "off" {
		fmt.Fprintln(w, "nothing is learned (learn.outcomes: off)")
		return nil
	}
	fmt.Fprintf(w, "%d observations, %d interventions open, %d entries refused, %d lost; mode %s\n", l.Observations, l.Open, l.Refused, l.Lost, l.Mode)
	for _, c := range l.Cells {
		fmt.Fprintf(w, "\n%s, model %q: %s\n", c.Chain, c.Model, decisions[c.Decision])
		fmt.Fprintf(w, "  p %.2f  r at least %.2f  d at least %.2f  net %+.2f (%+.2f to %+.2f)  censored %d\n", c.P, c.R, c.D, c.Net, c.CI[0], c.CI[1], c.Censored)
		fmt.Fprintln(w, "  STRATEGY\tOBSERVATIONS\tSUCCESS\t95 %")
		for _, a := range c.Arms {
			name := a.Strategy
			if name == "" {
				name = "(no note)"
			}
			fmt.Fprintf(w, "  %s\t%d\t%.2f\t%.2f to %.2f\n", name, a.Observations, a.Rate, a.CI[0], a.CI[1])
		}
	}
	for i, p := range l.Patterns {
		if i == 0 {
			fmt.Fprintln(w, "\nPatterns that are sure (they go first; where an agent is stuck no planner is asked):\n  CHAIN\tTEMPLATE\tTOOL\tMODEL\tSTRATEGY\tOBSERVATIONS\tSUCCESS")
		}
		fmt.Fprintf(w, "  %s\t%q\t%s\t%s\t%s\t%d\t%.2f\n", p.Chain, p.Template, p.Kind, p.Model, p.Strategy, p.Observations, p.Rate)
	}
	return nil
}

// decisions say what is done in a cell.
var decisions = map[string]string{
	"chain":   "the chain's order, too little is known",
	"learned": "the order is learned",
	"observe": "no notes: they are no help here",
}
