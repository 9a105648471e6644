package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/annotate"
	"github.com/rebound-llm/rebound/recovery/inspect"
	"github.com/rebound-llm/rebound/recovery/plan"
	"github.com/rebound-llm/rebound/recovery/session"
	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Limits of the input, in bytes.
const (
	maxInspectBody = 64 << 20
	maxInspectLine = maxClassifyLine
)

// inspectSteps holds the gateway's steps that the command shows.
type inspectSteps struct {
	rules       *inspect.Rules
	preferences *inspect.Preferences
	notes       *annotate.Stage
}

// inspectReport is the report of one request.
type inspectReport struct {
	Session  *string          `json:"session"` // null in the first request of a conversation
	Failures []inspectFailure `json:"tool_failures"`
	Loops    []inspectLoop    `json:"loops"`
	// Progress is nil below three steps.
	Progress *inspectProgress `json:"progress,omitempty"`
	RuledOut string           `json:"ruled_out,omitempty"`
	Note     *string          `json:"note"`
	NoNote   string           `json:"no_note,omitempty"` // why there is none, if the history does not show it
	Planner  bool             `json:"planner,omitempty"` // a planner would be asked, if one is configured
}

type inspectProgress struct {
	Steps   int           `json:"steps"`
	Percent int           `json:"percent"`
	Recent  int           `json:"recent"`
	Stuck   bool          `json:"stuck"`
	Task    recovery.Task `json:"task"`
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
	Why *classifyWhy `json:"why,omitempty"`
}

// inspectCommand shows what the gateway detects in a request.
func (p *program) inspectCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "inspect [FILE|-]",
		Short: "Show the failed tools and loops in a request, and the note for the model",
		Long: `Shows what the gateway detects in a request of any format: the session, the failures
among the new tool results and their kinds, loops, the agent's progress, what users
ruled out, and the note that the gateway would add. Without a file, or with -, it reads
standard input.

With --results it reads JSON lines {"id", "tool", "content"} instead, and writes JSON
lines {"id", "category", "failed", "confidence", "evidence"}. A line may also have
"cmd", the command line of the call.

Exit code: 0 done, 1 some lines are invalid, 2 no such file, the input is invalid, or
wrong command line.`,
		Args: usageArgs(cobra.MaximumNArgs(1)),
	}
	results := cmd.Flags().Bool("results", false, "classify recorded tool results, one JSON object per line")
	all := cmd.Flags().Bool("all", false, "classify the results of the whole history, not only those since the last assistant turn")
	why := cmd.Flags().Bool("why", false, `with --results, add "why": the rules that match a line and those that almost match`)
	config := cmd.Flags().String("config", "", "also use the rules and strategies in this configuration `FILE`")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		switch {
		case *results && *all:
			return usageError{errors.New("--all cannot be used with --results")}
		case *why && !*results:
			return usageError{errors.New("--why can only be used with --results")}
		}
		c, err := ruleConfig(*config, p.env)
		if err != nil {
			return inputError(err)
		}
		rules := inspect.NewRules(configs.ToolRules, c.Inspect.Rules...)
		if *results {
			in, err := p.open(args)
			if err != nil {
				return err
			}
			defer in.Close()
			return exit(eachLine("inspect", maxInspectLine, in, p.stdout, p.stderr, func(line []byte) (any, error) { return inspectLine(rules, line, *why) }))
		}
		steps, err := newInspectSteps(rules, c.Strategies)
		if err != nil {
			return inputError(err)
		}
		raw, err := p.readAll(args, maxInspectBody)
		if err != nil {
			return err
		}
		return inspectRequest(steps, raw, *all, p.stdout)
	}
	return cmd
}

// newInspectSteps returns the gateway's steps with these rules and strategies.
func newInspectSteps(rules *inspect.Rules, advice annotate.Config) (inspectSteps, error) {
	chains, err := configs.Chains()
	if err != nil {
		return inspectSteps{}, err
	}
	notes, err := annotate.New(advice, chains, nil)
	if err != nil {
		return inspectSteps{}, err
	}
	return inspectSteps{rules, inspect.NewPreferences(configs.PreferenceRules), notes}, nil
}

// note returns the guidance for the model, and whether a planner would be asked.
func (s inspectSteps) note(b *transcript.Body) (text string, asks bool) {
	x := &recovery.Exchange{Request: recovery.Request{Body: b, Mode: recovery.ModeAct}}
	seen := inspect.NewStage(inspect.Defaults(), s.rules, noObserver{})
	seen.Preferences = s.preferences
	if seen.Prepare(context.Background(), x) != nil {
		return "", false
	}
	text, _ = s.notes.Note(x)
	return text, plan.WouldAsk(x)
}

// inspectRequest writes the report of one request.
func inspectRequest(steps inspectSteps, raw []byte, all bool, stdout io.Writer) error {
	body, err := transcript.ParseAny(raw, transcript.Limits{})
	if err == nil && len(body.Messages()) == 0 {
		err = errors.New("the request has no messages")
	}
	if err != nil {
		return inputError(err)
	}
	if err := writeJSON(stdout, inspectBody(steps, body, all)); err != nil {
		return inputError(fmt.Errorf("writing: %w", err))
	}
	return nil
}

// noObserver discards all events.
type noObserver struct{}

// Observe implements recovery.Observer.
func (noObserver) Observe(recovery.Event) {}

// inspectBody returns the report of a request.
func inspectBody(steps inspectSteps, body *transcript.Body, all bool) inspectReport {
	report := inspectReport{Failures: []inspectFailure{}, Loops: []inspectLoop{}}
	if id := session.Identify(session.Input{Body: body}); !id.IsZero() {
		s := id.String()
		report.Session = &s
	}
	results := trajectory.Results
	if all {
		results = trajectory.All
	}
	for _, r := range results(body) {
		if f := steps.rules.Judge(r); f.Failed {
			first, _ := body.Messages()[f.Index].Elements()
			report.Failures = append(report.Failures, inspectFailure{Index: first, Tool: f.Tool, inspectVerdict: verdictOf(f)})
		}
	}
	for _, l := range steps.rules.Loops(body) {
		from, _ := body.Messages()[l.From].Elements()
		_, to := body.Messages()[l.To].Elements()
		report.Loops = append(report.Loops, inspectLoop{l.Kind, l.Count, append([]string{}, l.Tools...), from, to})
	}
	if p := steps.rules.Progress(body); p.Steps >= 3 {
		report.Progress = &inspectProgress{p.Steps, p.Percent, p.Recent, p.Stuck, p.Task}
	}
	report.RuledOut = steps.preferences.Barred(body).String()
	note, asks := steps.note(body)
	aside := session.SideOf(body) != session.SideNone
	switch {
	case aside && len(report.Failures)+len(report.Loops) > 0:
		report.NoNote = "the request offers no tools, or is a side request of the client (a title, a summary): the gateway adds no note to those"
	case note != "":
		report.Note = &note
	}
	report.Planner = asks && !aside
	return report
}

func verdictOf(f recovery.ToolFailure) inspectVerdict {
	return inspectVerdict{Category: f.Category, Failed: f.Failed, Confidence: f.Confidence, Evidence: inspectEvidence{f.Rule, f.Line}}
}

// inspectLine classifies one recorded result. Its content is a string, null, or a list of
// parts with text; any other JSON is used as the text itself.
func inspectLine(rules *inspect.Rules, line []byte, why bool) (any, error) {
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
	result := inspectResult{ID: row.ID, inspectVerdict: verdictOf(rules.Judge(r))}
	if why {
		matching, near := rules.Explain(r)
		result.Why = &classifyWhy{Matching: classifyFindings(matching), Near: classifyFindings(near)}
	}
	if result.ID == nil {
		result.ID = json.RawMessage("null")
	}
	return result, nil
}
