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

// learnCommand shows what notes to models brought, and moves or forgets it.
func (p *program) learnCommand() *cobra.Command {
	const corpus = "/rebound/learn/corpus"
	about := `Shows what notes to models brought, by recovery chain (or what the agent was stuck
in) and model, and what follows from it.`
	all := p.adminCommand("learn", "Show which notes helped; export, import or forget that", about, cobra.NoArgs)
	asJSON := all.json()
	report := func(c *adminCommand, asJSON *bool) *cobra.Command {
		return c.do(func([]string) error { return c.show("/rebound/learn", *asJSON, learnTable) })
	}
	cmd := report(all, asJSON)
	named := p.adminCommand("report", "Show which notes helped", about, cobra.NoArgs)
	export := p.adminCommand("export", "Write the observations as JSON lines", "Writes the observations as JSON lines.", cobra.NoArgs)
	add := p.adminCommand("import FILE", "Add the observations of a file", "Adds the observations of a file; - is standard input.", cobra.ExactArgs(1))
	reset := p.adminCommand("reset", "Delete everything learned, at all replicas", "Deletes everything that was learned about notes, and what persons ruled out, at all replicas.", cobra.NoArgs)
	cmd.AddCommand(report(named, named.json()),
		export.do(func([]string) error { return export.show(corpus, true, nil) }),
		add.do(func(args []string) error { return p.importOutcomes(add, corpus, args) }),
		reset.do(func([]string) error {
			_, err := reset.ask(http.MethodDelete, "/rebound/learn", nil)
			if err == nil {
				fmt.Fprintln(p.stdout, "everything learned about notes was deleted")
			}
			return err
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
		return fmt.Errorf("that is no gateway: %w", err)
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
		fmt.Fprintf(w, "ruled out by a person%s, until %s: %s\n", whose(known.Key), known.Until.Format(time.DateOnly), strings.Join(known.RuledOut, ", "))
	}
	if l.Mode == "off" {
		fmt.Fprintln(w, "nothing is learned (learn.outcomes: off)")
		return nil
	}
	fmt.Fprintf(w, "%d observations, %d interventions open, %d entries refused, %d lost; mode %s\n", l.Observations, l.Open, l.Refused, l.Lost, l.Mode)
	for _, c := range l.Cells {
		fmt.Fprintf(w, "\n%s, model %q%s: %s\n", c.Chain, c.Model, whose(c.Key), decisions[c.Decision])
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

// decisions say what is done in a cell.
var decisions = map[string]string{
	"chain":   "the chain's order, too little is known",
	"learned": "the order is learned",
	"observe": "no notes: they do not help here",
}

// whose says whose outcomes were counted.
func whose(key string) string {
	switch key {
	case "":
		return ""
	case "*":
		return ", all keys"
	}
	return ", key " + key
}
