package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rebound-llm/rebound/recovery"
)

// learnCommand shows, exports, imports and deletes what was learned about notes to models.
func (p *program) learnCommand() *cobra.Command {
	const corpus = "/rebound/learn/corpus"
	about := `Shows how often notes to models led to success, by model and recovery chain (or the
situation in which the agent was stuck), and what the gateway does as a result.`
	all := p.adminCommand("learn", "Show which notes to models helped; export, import or delete that", about, cobra.NoArgs)
	asJSON := all.json()
	report := func(c *adminCommand, asJSON *bool) *cobra.Command {
		return c.do(func([]string) error { return c.show("/rebound/learn", *asJSON, learnTable) })
	}
	cmd := report(all, asJSON)
	named := p.adminCommand("report", "Show which notes to models helped", about, cobra.NoArgs)
	export := p.adminCommand("export", "Write the observations as JSON lines", "Writes the observations as JSON lines.", cobra.NoArgs)
	add := p.adminCommand("import FILE", "Add the observations in a file", "Adds the observations in a file; - is standard input.", cobra.ExactArgs(1))
	reset := p.adminCommand("reset", "Delete everything learned, on all replicas", "Deletes everything learned about notes, and everything that users ruled out, on all replicas.", cobra.NoArgs)
	cmd.AddCommand(report(named, named.json()),
		export.do(func([]string) error { return export.show(corpus, true, nil) }),
		add.do(func(args []string) error { return p.importOutcomes(add, corpus, args) }),
		reset.do(func([]string) error {
			return reset.act(http.MethodDelete, "/rebound/learn", nil, "everything learned about notes and everything that users ruled out is deleted")
		}))
	return cmd
}

// importOutcomes sends a file of observations to the gateway.
func (p *program) importOutcomes(c *adminCommand, path string, args []string) error {
	in, err := p.open(args)
	if err != nil {
		return err
	}
	defer in.Close()
	answer, err := c.ask(http.MethodPost, path, in)
	if err != nil {
		return err
	}
	var got struct{ Added, Refused int }
	if err := json.Unmarshal(answer, &got); err != nil {
		return fmt.Errorf("not a Rebound gateway: %w", err)
	}
	if got.Added == 0 && got.Refused > 0 {
		return inputError(fmt.Errorf("no line is an observation from \"rebound learn export\" (%d refused)", got.Refused))
	}
	_, err = fmt.Fprintf(p.stdout, "added %d observations, refused %d\n", got.Added, got.Refused)
	return err
}

func learnTable(w io.Writer, answer []byte) error {
	var l recovery.Learned
	if err := json.Unmarshal(answer, &l); err != nil {
		return err
	}
	for _, known := range l.Wishes {
		fmt.Fprintf(w, "ruled out by the user%s, until %s: %s\n", keySuffix(known.Key), known.Until.Format(time.DateOnly), strings.Join(known.RuledOut, ", "))
	}
	if l.Mode == "off" {
		fmt.Fprintln(w, "nothing is learned (learn.outcomes: off)")
		return nil
	}
	fmt.Fprintf(w, "%d observations, %d interventions open, %d entries refused, %d lost; mode %s\n", l.Observations, l.Open, l.Refused, l.Lost, l.Mode)
	for _, c := range l.Cells {
		fmt.Fprintf(w, "\n%s, model %q%s: %s\n", c.Chain, c.Model, keySuffix(c.Key), decisionTexts[c.Decision])
		fmt.Fprintf(w, "  a note changes its success by %+.2f (%+.2f to %+.2f)  censored %d\n", c.Net, c.CI[0], c.CI[1], c.Censored)
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
			fmt.Fprintln(w, "\nPatterns of messages:\n  CHAIN\tTEMPLATE\tMODEL\tKEY\tSTRATEGY\tOBSERVATIONS\tSUCCESS\tAT LEAST")
		}
		fmt.Fprintf(w, "  %s\t%q\t%s\t%s\t%s\t%d\t%.2f\t%.2f\n", p.Chain, p.Template, p.Model, p.Key, p.Strategy, p.Observations, p.Rate, p.Lower)
	}
	return nil
}

// decisionTexts explains what the gateway does in a cell.
var decisionTexts = map[string]string{
	"chain":   "the chain's order, because there are too few observations",
	"learned": "the learned order",
	"observe": "no notes, because they do not help here",
}

// keySuffix names the gateway key whose outcomes are counted.
func keySuffix(key string) string {
	if key == "" {
		return ""
	}
	return ", key " + key
}
