package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/classify"
	"github.com/rebound-llm/rebound/recovery/rule"
)

// maxClassifyLine is the limit of a line of input, in bytes.
const maxClassifyLine = 4 << 20

// classifyRow is one line of input. Other keys are ignored. The status is a number or a
// string, the value of a header a string, a number or a list of strings.
type classifyRow struct {
	ID      json.RawMessage            `json:"id"`
	Status  json.RawMessage            `json:"status"`
	Headers map[string]json.RawMessage `json:"headers"`
	Body    json.RawMessage            `json:"body"`
	Stream  bool                       `json:"stream"`
}

// classifyResult is one line of output.
type classifyResult struct {
	ID    json.RawMessage `json:"id"`
	Class recovery.Class  `json:"class"`
	Facts map[string]any  `json:"facts"`
	Plan  []string        `json:"plan"`
	Rule  string          `json:"rule"`
	Why   *classifyWhy    `json:"why,omitempty"`
}

// classifyWhy lists the rules that matched and those that came close.
type classifyWhy struct {
	Matching []classifyFinding `json:"matching"`
	Near     []classifyFinding `json:"near"`
}

type classifyFinding struct {
	Rule    string `json:"rule"`
	Class   string `json:"class"`
	Found   string `json:"found,omitempty"`
	Missing string `json:"missing,omitempty"`
	Line    string `json:"line,omitempty"`
}

// classifyCommand classifies recorded error answers as the gateway would.
func (p *program) classifyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "classify [FILE|-]",
		Short: "Classify recorded error answers, one JSON object per line",
		Long: `Classifies recorded error answers as the gateway does. It reads JSON lines
{"id", "status", "headers", "body" (JSON or string), "stream"} and writes JSON lines
{"id", "class", "facts", "plan", "rule"}. Without a file, or with -, it reads standard
input.

Exit code: 0 done, 1 some lines are invalid, 2 no such file, all lines are invalid, or
wrong command line.`,
		Args: usageArgs(cobra.MaximumNArgs(1)),
	}
	why := cmd.Flags().Bool("why", false, `add "why": the rules that match (the first decides) and those that almost match, with what each found or missed`)
	config := cmd.Flags().String("config", "", "also use the rules in this configuration `FILE` (classify.rules)")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		c, err := ruleConfig(*config, p.env)
		if err != nil {
			return inputError(err)
		}
		table := classify.New(configs.UpstreamRules, c.Classify.Rules...)
		in, err := p.open(args)
		if err != nil {
			return err
		}
		defer in.Close()
		return exit(eachLine("classify", maxClassifyLine, in, p.stdout, p.stderr, func(line []byte) (any, error) { return classifyLine(table, line, *why) }))
	}
	return cmd
}

// ruleConfig returns the configuration whose rules and strategies a command uses; "" is no file, and
// then the environment does not count.
func ruleConfig(file string, env configs.Env) (*configs.Config, error) {
	if file == "" {
		c := configs.Defaults()
		return &c, nil
	}
	return configs.Load(file, env)
}

// classifyLine classifies one line.
func classifyLine(table *classify.Table, line []byte, why bool) (classifyResult, error) {
	var row classifyRow
	if line[0] != '{' {
		return classifyResult{}, errors.New("not a JSON object")
	}
	if err := json.Unmarshal(line, &row); err != nil {
		return classifyResult{}, err
	}
	if row.Status == nil && row.Body == nil && row.Headers == nil {
		return classifyResult{}, errors.New("has neither status nor headers nor body")
	}
	ev, err := row.evidence()
	if err != nil {
		return classifyResult{}, err
	}
	d := table.Classify(ev)
	result := classifyResult{ID: row.ID, Class: d.Spec.Class, Facts: table.Stated(ev), Plan: d.Spec.Plan, Rule: d.Rule}
	if result.ID == nil {
		result.ID = json.RawMessage("null")
	}
	if result.Plan == nil {
		result.Plan = []string{}
	}
	if why {
		matching, near := table.Explain(ev)
		result.Why = &classifyWhy{Matching: classifyFindings(matching), Near: classifyFindings(near)}
	}
	return result, nil
}

func classifyFindings(fs []rule.Finding) []classifyFinding {
	out := make([]classifyFinding, 0, len(fs))
	for _, f := range fs {
		out = append(out, classifyFinding{Rule: f.Rule.Name, Class: f.Rule.Class, Found: f.Found, Missing: f.Missing, Line: f.Line})
	}
	return out
}

// evidence returns what the gateway would see of the error in this row.
func (r classifyRow) evidence() (recovery.Evidence, error) {
	ev := recovery.Evidence{Phase: recovery.PhaseStatus, Stream: r.Stream, Header: make(http.Header), Now: time.Now()}
	if s := strings.Trim(string(r.Status), `"`); s != "" && s != "null" {
		if err := json.Unmarshal([]byte(s), &ev.Status); err != nil {
			return ev, fmt.Errorf("status %s is not a number", r.Status)
		}
	}
	for name, raw := range r.Headers {
		var one string
		var many []string
		switch {
		case json.Unmarshal(raw, &one) == nil:
			many = []string{one}
		case json.Unmarshal(raw, &many) == nil:
		default:
			many = []string{string(raw)} // a bare number
		}
		for _, v := range many {
			ev.Header.Add(name, v)
		}
	}
	var text string
	if json.Unmarshal(r.Body, &text) == nil { // null too: no body
		ev.Body = []byte(text)
	} else {
		ev.Body = r.Body
	}
	switch {
	case r.Stream:
		ev.Phase = recovery.PhaseStream
	case ev.Status >= 200 && ev.Status < 300 && (len(bytes.TrimSpace(ev.Body)) == 0 || brokenJSON(ev.Body)):
		ev.Phase = recovery.PhaseBody
	}
	return ev, nil
}

// brokenJSON reports whether a body begins like JSON and is invalid, as one that was cut is.
func brokenJSON(b []byte) bool {
	b = bytes.TrimSpace(b)
	return len(b) > 0 && (b[0] == '{' || b[0] == '[') && !json.Valid(b)
}
