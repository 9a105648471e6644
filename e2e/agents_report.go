package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/rebound-llm/rebound/e2e/agents"
)

// result is what a leg came to, in a word or two.
func (r *agentRun) result(l *agentLeg) string {
	if l.err != nil || len(l.evidence.Outcomes) == 0 {
		return "harness error"
	}
	o := &l.evidence.Outcomes[len(l.evidence.Outcomes)-1]
	switch {
	case !o.OK:
		return "error " + o.ErrorType
	case len(r.scenario.End) > 0 && r.scenario.Ended(&l.evidence) == nil:
		return "finished"
	}
	return "another end"
}

// ended is the run for the progress.
func (r *agentRun) ended() ended {
	e := ended{name: r.scenario.Name, who: fmt.Sprintf("%s %s", r.client, r.mode), failures: r.failures}
	if r.straight.done {
		e.straight = r.result(&r.straight)
	}
	if r.through.done {
		e.through = r.result(&r.through)
	}
	return e
}

// writeAgents writes the table of the second part, then the evidence of failures.
func writeAgents(w io.Writer, scenarios []agents.Scenario, clients []string, runs []*agentRun) {
	fmt.Fprintf(w, "## Agents\n\nEach cell: how the task ends straight → through the gateway (time; requests of the client, of the model).\n\n")
	fmt.Fprintf(w, "| scenario | what must hold | | %s |\n|---|---|---|%s\n", strings.Join(clients, " | "), strings.Repeat("---|", len(clients)))
	for i := range scenarios {
		s := &scenarios[i]
		for _, mode := range []agents.Mode{agents.Streamed, agents.Whole} {
			cells, any := make([]string, len(clients)), false
			for n, c := range clients {
				for _, r := range runs {
					if r.scenario == s && r.client == c && r.mode == mode && r.n == 0 {
						cells[n], any = r.cell(), true
					}
				}
			}
			if any {
				fmt.Fprintf(w, "| %s | %s | %s | %s |\n", s.Name, s.Want, mode, strings.Join(cells, " | "))
			}
		}
	}
	fmt.Fprintln(w)
	for _, r := range runs {
		if len(r.failures) == 0 {
			continue
		}
		fmt.Fprintf(w, "### %s: %s, %s\n\nWant: %s.\n\n", r.scenario.Name, r.client, r.mode, r.scenario.Want)
		for _, f := range r.failures {
			fmt.Fprintf(w, "- %s\n", strings.ReplaceAll(f, "\n", "\n  "))
		}
		for i := range r.through.evidence.Outcomes {
			o := &r.through.evidence.Outcomes[i]
			fmt.Fprintf(w, "- through: ok %v after %d ms, texts %.400q, executed %.400v, %s %.400s\n", o.OK, o.ElapsedMS, o.Texts, o.Executed, o.ErrorType, o.Error)
		}
		for i, x := range r.through.evidence.Sent {
			fmt.Fprintf(w, "- client's request %d: %d bytes, status %d, %s; broken: %v; ends %.300q\n", i+1, len(x.Request), x.Status,
				x.Header.Get("X-Rebound-Recovery"), x.Broken, x.Response[max(0, len(x.Response)-300):])
		}
		for _, m := range r.through.evidence.Model {
			fmt.Fprintf(w, "- model, %s: %d messages, %d tokens, status %d, note %.200q, answered %.200q %.200v\n", m.Time.Format("15:04:05.000"),
				len(m.Request.Messages), m.Request.Tokens(), m.Status, m.Request.Note(), m.Reply.Text, m.Reply.Calls)
		}
		fmt.Fprintln(w)
	}
}

func (r *agentRun) cell() string {
	s := ""
	if r.straight.done {
		s = r.result(&r.straight)
	}
	if l := &r.through; l.done && l.err == nil {
		took := int64(0)
		for _, o := range l.evidence.Outcomes {
			took += o.ElapsedMS
		}
		s += fmt.Sprintf(" → %s (%.1f s; %d, %d)", r.result(l), float64(took)/1000, len(l.evidence.Sent), len(l.evidence.Model))
	}
	if len(r.failures) > 0 {
		return "**FAIL** " + s
	}
	return s
}
