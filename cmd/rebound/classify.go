package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/classify"
	"github.com/rebound-llm/rebound/recovery/rule"
)

const classifyUsage = `usage: rebound classify [--why] [--config FILE] [FILE|-]

Says of recorded error answers what the gateway would take them for. Reads JSON
lines {"id", "status", "headers", "body" (JSON or string), "stream"} and writes
JSON lines {"id", "class", "facts", "plan", "rule"}. No file, or -, is standard
input.

  --why          adds "why": the rules that match, the first of which decides, and
                 those that came near, each with what was found and what kept it out
  --config FILE  with the rules of this configuration (classify.rules)

Exit code: 0 done, 1 some lines were not usable, 2 no such file, nothing usable,
or wrong use.
`

// maxClassifyLine bounds one line of input: an error answer, not a download.
const maxClassifyLine = 4 << 20

// classifyRow is one line of input. Other keys are ignored. A status may be
// written as a number or as a string, a header's value as a string or a list.
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

// classifyWhy explains a line.
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

// runClassify is `rebound classify`: it says of recorded error answers, one JSON
// object a line, what the gateway would take them for. It returns the exit code:
// 0 done, 1 a line was not usable (the others are answered), 2 nothing was.
func runClassify(args []string, env configs.Env, stdin io.Reader, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("classify", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	why, config := flags.Bool("why", false, ""), flags.String("config", "", "")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, classifyUsage)
		return 0
	case err != nil || flags.NArg() > 1:
		fmt.Fprint(stderr, classifyUsage)
		return 2
	}
	table, err := ruleTable(*config, env)
	if err != nil {
		fmt.Fprintf(stderr, "rebound classify: %v\n", err)
		return 2
	}
	in := stdin
	if name := flags.Arg(0); name != "" && name != "-" {
		f, err := os.Open(name)
		if err != nil {
			fmt.Fprintf(stderr, "rebound classify: %v\n", err)
			return 2
		}
		defer f.Close()
		in = f
	}
	return eachLine("classify", maxClassifyLine, in, stdout, stderr, func(line []byte) (any, error) { return classifyLine(table, line, *why) })
}

// ruleTable is the table of a gateway with this configuration, "" for none.
func ruleTable(config string, env configs.Env) (*classify.Table, error) {
	if config == "" {
		return classify.New(configs.UpstreamRules), nil
	}
	c, err := configs.Load(config, env)
	if err != nil {
		return nil, err
	}
	return classify.New(configs.UpstreamRules, c.Classify.Rules...), nil
}

// classifyLine answers one line.
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

// evidence is what the gateway would have seen of the row.
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

// brokenJSON reports a body that began as JSON and is cut.
func brokenJSON(b []byte) bool {
	b = bytes.TrimSpace(b)
	return len(b) > 0 && (b[0] == '{' || b[0] == '[') && !json.Valid(b)
}
