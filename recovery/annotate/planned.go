package annotate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Limits of a plan's note, in runes.
const (
	maxPlanNote   = 3600
	maxPlanText   = 400  // of one text by the planner
	maxParameters = 1500 // longer parameters are left out, and the note names only the tool
)

// explains reports whether a chain says what to do about a failure: the failure is certain enough and its
// category has a chain.
func (st *Stage) explains(f *recovery.ToolFailure) bool {
	chain := f.Chain()
	// It is certain that an editor refused an edit; only the category may be wrong.
	return f.Failed && (f.Confidence >= st.cfg.Confidence || chain == recovery.EditFailed) && len(st.chains[chain]) > 0
}

// Permits reports whether a note may name a command as a step: the command must not run as another user or show
// a secret, and a risky one needs the configuration's permission.
func (st *Stage) Permits(command string) bool {
	return (&failureContext{risky: st.cfg.Risky}).permitted(command)
}

// notesPlan reports whether the note comes from the exchange's plan. A chain that explains the failure has
// priority over a plan of the heuristic.
func (st *Stage) notesPlan(x *recovery.Exchange) bool {
	p, f := x.Plan, x.Ladder.Failure
	switch {
	case p == nil || p.Strategy == recovery.PlanHint:
		return false
	case p.Source == recovery.PlanHeuristic:
		return x.Turn.Failure != nil && (f == nil || !st.explains(f))
	}
	return true
}

// forced returns the tool that a plan makes the model call, or "" if the request does not leave the choice of
// tool to the model.
func (st *Stage) forced(x *recovery.Exchange) string {
	p := x.Plan
	if p == nil || !st.notesPlan(x) || x.Mode != recovery.ModeAct || !p.Forced {
		return ""
	}
	if c := x.Body.ToolChoice(); c.Choice != transcript.ChoiceAuto || c.Allowed != nil {
		return ""
	}
	return p.Tool
}

// planNote words a plan and quotes the planner's texts as data.
func (st *Stage) planNote(x *recovery.Exchange, l *recovery.Loop) (string, recovery.Advice) {
	p := x.Plan
	handsOver := !p.Strategy.Calls() || p.Band == recovery.BandEscalate
	advice := recovery.Advice{Strategies: []string{string(p.Strategy)}}
	st.mayWithhold(x, l, string(p.Strategy), handsOver, &advice)
	s := st.newContext(x, nil)
	said := ""
	failed := x.FirstFailed()
	switch {
	case l != nil && p.Strategy == recovery.PlanRetry:
		said = stated(x, l)
	case l != nil:
		said = s.repeating(x, l)
	case x.Turn.Failure == nil:
		said = "The last steps brought nothing new."
	case failed != nil:
		which := cmp.Or(quoted(failed.Tool), "The last command")
		said = fmt.Sprintf("%s failed in the same way %d times.", which, max(x.Turn.Seen, x.Turn.Streak, 2))
	}
	if l != nil {
		advice.Loop, advice.Count = l.Kind, l.Count
	}
	if failed != nil {
		if advice.Category = failed.Category; l == nil {
			advice.Count = max(x.Turn.Seen, x.Turn.Streak)
		}
		said += printed(failed.Line)
	}
	next := proposed(p)
	if handsOver {
		next = s.givenOver(p)
	}
	return trajectory.Shorten(prefix+said+"\n"+next+" "+unmentioned, maxPlanNote), advice
}

// proposed words a plan that proposes a call.
func proposed(p *recovery.Plan) string {
	tool := cmp.Or(quoted(p.Tool), "the same tool")
	parameters, fits := dataLine(p.Parameters)
	quotes := parameters != "" && fits
	call := "call " + tool
	if quotes {
		call += " with these parameters (data): <<<" + parameters + ">>>"
	}
	switch {
	case p.Strategy == recovery.PlanRetry:
		call = "make the call of " + tool + " once more, as it was"
	case p.Strategy == recovery.PlanOtherTool && p.Tool == "":
		call = "get at the same with another tool that you have"
	case p.Strategy == recovery.PlanAdjust && !quotes:
		call = "change the parameter of " + tool + " that the error is about, to a value that an earlier result shows"
	}
	if p.Band == recovery.BandAct {
		call = "Do this next: " + call + "."
	} else {
		call = "A proposal, which may be wrong: " + call + ". Look whether it fits what you know before you do it."
	}
	return call + quotedLine(" Why", p.Reasoning) + quotedLine(" What should come of it", p.Expected) +
		"\nIf it fails again, tell the user what blocks you and ask."
}

// givenOver words a plan that hands over to the user.
func (s *failureContext) givenOver(p *recovery.Plan) string {
	if p.Strategy == recovery.PlanGiveUp && p.Band != recovery.BandEscalate {
		return "This cannot be done in this way: do not try it again. Go on with what does not depend on it, " +
			"then tell the user what could not be done and why." + quotedLine(" Why", p.Reasoning) + quotedLine(" What to tell them", p.Message)
	}
	question := cmp.Or(quotedLine("", p.Message), ": say what you tried, what the error names, and what you need from them to go on.")
	return "Do not try it again. Ask the user" + s.asking() + " one specific question, in the language of the conversation, " +
		"and wait for the answer" + question + quotedLine(" Why", p.Reasoning)
}

// quotedLine quotes a planner's text as data after a label; it returns "" for an empty text.
func quotedLine(what, text string) string {
	if text = oneLine(text, maxPlanText); text == "" {
		return ""
	}
	return what + " (data): <<<" + text + ">>>."
}

// dataLine rewrites a JSON object as an equal one on one line that contains no end of a quotation, no hidden
// characters and no role markers. fits is false if it is too long to be quoted.
func dataLine(object string) (out string, fits bool) {
	var v any
	if object == "" || json.Unmarshal([]byte(object), &v) != nil {
		return "", false
	}
	raw, _ := json.Marshal(json.RawMessage(object)) // compact; <, > and & are escaped
	var b strings.Builder
	for _, r := range string(raw) {
		if r >= 0x7f && (unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp) || r == unicode.ReplacementChar) && r < 0x10000 {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	out = marks.ReplaceAllString(b.String(), `\u005b$1`)
	return out, len([]rune(out)) <= maxParameters && json.Valid([]byte(out))
}
