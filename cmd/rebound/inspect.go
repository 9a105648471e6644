package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/annotate"
	"github.com/rebound-llm/rebound/recovery/inspect"
	"github.com/rebound-llm/rebound/recovery/session"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

const inspectUsage = `usage: rebound inspect [--all] [FILE|-]
       rebound inspect --results [FILE|-]

Says what the gateway would see in a chat request: the session, which of the new
tool results are failures and of which kind, loops, and the note that it would
add. With --all the results of the whole history are judged, not only those
since the last assistant turn. No file, or -, is standard input.

With --results it reads JSON lines {"id", "tool", "content"} instead and writes
JSON lines {"id", "category", "failed", "confidence", "evidence"}; "cmd", the
command line of the call, may be given too.

Exit code: 0 done, 1 some lines were not usable, 2 no such file, nothing usable,
or wrong use.
`

// Bounds of what is read, in bytes.
const (
	maxInspectBody = 64 << 20
	maxInspectLine = maxClassifyLine
)

// inspectSteps are the later steps of the gateway, as far as the command shows
// them. Where one is nil its part of the answer is empty.
type inspectSteps struct {
	loops func(*transcript.Body) []recovery.Loop
	note  func(*transcript.Body, []recovery.ToolFailure, []recovery.Loop) string
}

// inspectReport is the answer for one chat request.
type inspectReport struct {
	Session  *string          `json:"session"` // null in the first request of a conversation
	Failures []inspectFailure `json:"tool_failures"`
	Loops    []inspectLoop    `json:"loops"`
	Note     *string          `json:"note"`
}

type inspectFailure struct {
	Index int    `json:"index"`
	Tool  string `json:"tool"`
	inspectVerdict
}

type inspectVerdict struct {
	Category   recovery.Category `json:"category"`
	Failed     bool              `json:"failed"`
	Confidence float64           `json:"confidence"`
	Evidence   inspectEvidence   `json:"evidence"`
}

type inspectEvidence struct {
	Rule string `json:"rule"`
	Line string `json:"line"`
}

type inspectLoop struct {
	Kind  recovery.LoopKind `json:"kind"`
	Count int               `json:"count"`
	Tools []string          `json:"tools"`
	From  int               `json:"from"`
	To    int               `json:"to"`
}

// inspectRow is one line of --results. Other keys are ignored.
type inspectRow struct {
	ID      json.RawMessage `json:"id"`
	Tool    string          `json:"tool"`
	Content json.RawMessage `json:"content"`
	Cmd     *string         `json:"cmd"`
}

type inspectResult struct {
	ID json.RawMessage `json:"id"`
	inspectVerdict
}

// runInspect is `rebound inspect`; it returns the exit code.
func runInspect(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	chains, err := configs.Chains()
	if err != nil {
		fmt.Fprintf(stderr, "rebound inspect: %v\n", err)
		return 2
	}
	notes, err := annotate.New(annotate.Defaults(), chains, nil)
	if err != nil {
		fmt.Fprintf(stderr, "rebound inspect: %v\n", err)
		return 2
	}
	note := func(b *transcript.Body, results []recovery.ToolFailure, loops []recovery.Loop) string {
		found := recovery.Findings{Results: results, Loops: loops, Turn: inspect.Position(b)}
		text, _ := notes.Note(&recovery.Exchange{Body: b, Mode: recovery.ModeAct, Findings: found})
		return text
	}
	return inspectWith(inspectSteps{loops: inspect.Loops, note: note}, args, stdin, stdout, stderr)
}

func inspectWith(steps inspectSteps, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	results, all, file := false, false, ""
	for _, a := range args {
		switch {
		case a == "-h" || a == "-help" || a == "--help":
			fmt.Fprint(stdout, inspectUsage)
			return 0
		case a == "--results" || a == "-results":
			results = true
		case a == "--all" || a == "-all":
			all = true
		case file != "" || len(a) > 1 && a[0] == '-' || a == "":
			fmt.Fprint(stderr, inspectUsage)
			return 2
		default:
			file = a
		}
	}
	if results && all {
		fmt.Fprint(stderr, inspectUsage)
		return 2
	}
	in := stdin
	if file != "" && file != "-" {
		f, err := os.Open(file)
		if err != nil {
			fmt.Fprintf(stderr, "rebound inspect: %v\n", err)
			return 2
		}
		defer f.Close()
		in = f
	}
	if results {
		return eachLine("inspect", maxInspectLine, in, stdout, stderr, inspectLine)
	}
	raw, err := io.ReadAll(io.LimitReader(in, maxInspectBody+1))
	switch {
	case err != nil:
		fmt.Fprintf(stderr, "rebound inspect: reading: %v\n", err)
		return 2
	case len(raw) > maxInspectBody:
		fmt.Fprintf(stderr, "rebound inspect: the request is longer than %d bytes\n", maxInspectBody)
		return 2
	}
	body, err := transcript.Parse(raw, transcript.Chat, transcript.Limits{})
	if err == nil && len(body.Messages()) == 0 {
		err = errors.New("the request has no messages")
	}
	if err != nil {
		fmt.Fprintf(stderr, "rebound inspect: %v\n", err)
		return 2
	}
	if err := writeJSON(stdout, inspectBody(steps, body, all)); err != nil {
		fmt.Fprintf(stderr, "rebound inspect: writing: %v\n", err)
		return 2
	}
	return 0
}

// inspectBody answers one chat request.
func inspectBody(steps inspectSteps, body *transcript.Body, all bool) inspectReport {
	report := inspectReport{Failures: []inspectFailure{}, Loops: []inspectLoop{}}
	if id := session.Identify(session.Input{Body: body}); !id.IsZero() {
		s := id.String()
		report.Session = &s
	}
	results := inspect.Results
	if all {
		results = inspect.All
	}
	var failures []recovery.ToolFailure
	for _, r := range results(body) {
		if f := inspect.Judge(r); f.Failed {
			failures = append(failures, f)
			report.Failures = append(report.Failures, inspectFailure{Index: f.Index, Tool: f.Tool, inspectVerdict: verdictOf(f)})
		}
	}
	var loops []recovery.Loop
	if steps.loops != nil {
		loops = steps.loops(body)
	}
	for _, l := range loops {
		tools := l.Tools
		if tools == nil {
			tools = []string{}
		}
		report.Loops = append(report.Loops, inspectLoop{l.Kind, l.Count, tools, l.From, l.To})
	}
	if steps.note != nil {
		if note := steps.note(body, failures, loops); note != "" {
			report.Note = &note
		}
	}
	return report
}

func verdictOf(f recovery.ToolFailure) inspectVerdict {
	return inspectVerdict{Category: f.Category, Failed: f.Failed, Confidence: f.Confidence, Evidence: inspectEvidence{f.Rule, f.Line}}
}

// inspectLine answers one recorded result. Its content may be a string, null, or
// a list of parts with text; any other JSON is taken as the tool's text.
func inspectLine(line []byte) (any, error) {
	var row inspectRow
	if line[0] != '{' {
		return nil, errors.New("not a JSON object")
	}
	if err := json.Unmarshal(line, &row); err != nil {
		return nil, err
	}
	if row.Content == nil {
		return nil, errors.New("has no content")
	}
	r := recovery.ToolResult{Tool: row.Tool}
	if row.Cmd != nil {
		r.Arguments = *row.Cmd
	}
	var parts []struct {
		Text *string `json:"text"`
	}
	switch {
	case json.Unmarshal(row.Content, &r.Content) == nil: // null too: no text
	case json.Unmarshal(row.Content, &parts) == nil && len(parts) > 0 && parts[0].Text != nil:
		var texts []string
		for _, p := range parts {
			if p.Text != nil {
				texts = append(texts, *p.Text)
			}
		}
		r.Content = strings.Join(texts, "\n")
	default:
		r.Content = string(row.Content)
	}
	result := inspectResult{ID: row.ID, inspectVerdict: verdictOf(inspect.Judge(r))}
	if result.ID == nil {
		result.ID = json.RawMessage("null")
	}
	return result, nil
}
