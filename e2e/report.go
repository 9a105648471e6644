package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// outcome is what a client got, in a word or two.
func (r *Run) outcome(l *Leg) string {
	if l.Err != nil || len(l.Answers) == 0 {
		return "harness error"
	}
	a := l.last()
	for i := range r.Case.Targets {
		if r.complete(a, i) == nil {
			return "complete"
		}
	}
	switch {
	case a.OK && len(a.ToolCalls) > 0 && toolCall(0)(r, l) == nil:
		return "complete"
	case a.OK && a.Text == "":
		return "empty, no error"
	case a.OK && a.FinishReason == "stop":
		return "another text"
	case a.OK:
		return "truncated, no error"
	case a.Ended == "cancelled":
		return "left"
	case a.Ended != "":
		return fmt.Sprintf("silent %.0f s", a.Elapsed().Seconds())
	case a.Status >= 300:
		return fmt.Sprintf("error %d", a.Status)
	case a.Text != "":
		return "error after a part"
	}
	return "error"
}

// ended is the run for the progress.
func (r *Run) ended() ended {
	e := ended{name: r.Case.Name, who: fmt.Sprintf("%s %s", r.Client, r.Mode), failures: r.Failures}
	if r.Straight.Answers != nil || r.Straight.Err != nil {
		e.straight = r.outcome(&r.Straight)
	}
	if r.Through.Answers != nil || r.Through.Err != nil {
		e.through = r.outcome(&r.Through)
	}
	return e
}

// writeMarkdown writes the tables of a pace: for every case, mode and client
// what it got straight and through the gateway, then the evidence of failures.
func writeMarkdown(w io.Writer, pace *Pace, clients []string, runs []*Run, o *Outage) {
	fmt.Fprintf(w, "## %s pace\n\n", pace.Name)
	fmt.Fprintf(w, "Each cell: what the client gets straight at the fault → what it gets through the gateway (time; how often each target was asked).\n\n")
	fmt.Fprintf(w, "| case | what must hold | | %s |\n|---|---|---|%s\n", strings.Join(clients, " | "), strings.Repeat("---|", len(clients)))
	byRow := map[string]map[string]*Run{}
	var rows []string
	for _, r := range runs {
		k := r.Case.Name + "\x00" + string(r.Mode)
		if byRow[k] == nil {
			byRow[k] = map[string]*Run{}
			rows = append(rows, k)
		}
		byRow[k][r.Client] = r
	}
	place := map[string]int{}
	for i := range table {
		place[table[i].Name] = i
	}
	slices.SortStableFunc(rows, func(a, b string) int {
		na, _, _ := strings.Cut(a, "\x00")
		nb, _, _ := strings.Cut(b, "\x00")
		return place[na] - place[nb]
	})
	before := ""
	for _, k := range rows {
		name, mode, _ := strings.Cut(k, "\x00")
		if name == before {
			fmt.Fprintf(w, "| | | %s |", mode)
		} else {
			fmt.Fprintf(w, "| %s | %s | %s |", name, table[place[name]].Want, mode)
		}
		before = name
		for _, c := range clients {
			fmt.Fprintf(w, " %s |", cell(byRow[k][c]))
		}
		fmt.Fprintln(w)
	}
	if o != nil {
		fmt.Fprintf(w, "\nSteady traffic through an outage of %v: %s.\n", o.away, o.summary())
	}
	fmt.Fprintln(w)
	evidence(w, runs, o)
}

func cell(r *Run) string {
	if r == nil {
		return ""
	}
	s := ""
	if len(r.Straight.Answers) > 0 {
		s = r.outcome(&r.Straight)
	}
	if r.Through.Err == nil && len(r.Through.Answers) > 0 {
		var asked []string
		for i := range r.Through.Records {
			asked = append(asked, fmt.Sprint(len(r.Through.Records[i])))
		}
		s += fmt.Sprintf(" → %s (%.1f s; %s)", r.outcome(&r.Through), r.Through.last().Elapsed().Seconds(), strings.Join(asked, "+"))
	}
	if len(r.Failures) > 0 {
		return "**FAIL** " + s
	}
	return s
}

// evidence lists what did not hold, what the client got and what the upstream saw.
func evidence(w io.Writer, runs []*Run, o *Outage) {
	for _, r := range runs {
		if len(r.Failures) == 0 {
			continue
		}
		fmt.Fprintf(w, "### %s: %s, %s\n\n", r.Case.Name, r.Client, r.Mode)
		fmt.Fprintf(w, "Want: %s. Script: `%s`\n\n", r.Case.Want, r.target(0))
		for _, f := range r.Failures {
			fmt.Fprintf(w, "- %s\n", strings.ReplaceAll(f, "\n", "\n  "))
		}
		for _, l := range []struct {
			name string
			leg  *Leg
		}{{"straight", &r.Straight}, {"through", &r.Through}} {
			for _, a := range l.leg.Answers {
				fmt.Fprintf(w, "- %s: ok %v after %v, model %q, finish_reason %q, %d bytes of text in %d chunks, sent %+v", l.name, a.OK,
					a.Elapsed().Round(time.Millisecond), a.Model, a.FinishReason, len(a.Text), a.Chunks, a.Sent)
				if !a.OK {
					fmt.Fprintf(w, ", %s", a.errorLine())
				}
				if a.Header != nil {
					fmt.Fprintf(w, ", headers %v", a.Header)
				}
				fmt.Fprintln(w)
			}
			for i, recs := range l.leg.Records {
				if len(recs) > 0 {
					fmt.Fprintf(w, "- %s, target %d, first at %s: %s\n", l.name, i, recs[0].Time.Format("15:04:05.000"), times(recs))
				}
			}
		}
		fmt.Fprintln(w)
	}
	if o != nil && len(o.failures) > 0 {
		fmt.Fprintf(w, "### %s\n\n", outageName)
		for _, f := range o.failures {
			fmt.Fprintf(w, "- %s\n", f)
		}
		fmt.Fprintln(w)
	}
}
