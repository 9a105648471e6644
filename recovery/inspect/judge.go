package inspect

import (
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/rule"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// Threshold is the confidence from which a failure is certain enough to tell
// the model about it.
const Threshold = 0.9

// maxLine bounds ToolFailure.Line, in runes.
const maxLine = 300

// Levels of confidence. They are measured on recorded results: above Threshold
// at least 99 of 100 are right.
const (
	certain  = 0.98 // a strict form in a call that is known to have failed
	likely   = 0.95 // a strict form where errors stand, nothing known of the outcome
	worded   = 0.92 // wording in a call that is known to have failed
	doubtful = 0.85 // the category is a matter of opinion
	possible = 0.7  // wording, outcome unknown
	other    = 0.8  // a failure of another kind
	fine     = 0.9  // nothing says that it failed
)

// Judge says whether a tool's result is a failure and of which kind. It is pure
// and total. Its time is linear in the content; only the head and the tail of a
// large one are searched.
func (r *Rules) Judge(res recovery.ToolResult) recovery.ToolFailure {
	l, _ := r.get()
	v := l.open(res)
	return v.verdict(&res)
}

// Explain tells which rules match a line of what Judge looks at, and which came
// near: what was found, and what kept it out.
func (r *Rules) Explain(res recovery.ToolResult) (matching, near []rule.Finding) {
	l, _ := r.get()
	v := l.open(res)
	v.split()
	seen := map[string]bool{}
	for i := range v.lines {
		yes, almost := l.Explain(v.subject(&v.lines[i], i, ""))
		for _, f := range append(yes, almost...) {
			if f.Line = trajectory.Shorten(v.lines[i].text, maxLine); seen[f.Rule.Name] || groupOf(f.Rule) > noCategory && groupOf(f.Rule) < categories {
				continue
			}
			if seen[f.Rule.Name] = true; f.Missing == "" {
				matching = append(matching, f)
			} else {
				near = append(near, f)
			}
		}
	}
	return matching, near
}

// verdict is Judge of the result that the view is one of.
func (v *view) verdict(r *recovery.ToolResult) recovery.ToolFailure {
	f := recovery.ToolFailure{Index: r.Index, CallID: r.CallID, Tool: r.Tool, Arguments: r.Arguments,
		Category: recovery.CategoryNone, Confidence: fine, Rule: "success"}
	v.split()
	found := v.tooManyRequests(r.Tool)
	if !found.failed {
		found = v.judge()
	}
	if !found.failed {
		if found.rule != "" {
			f.Rule = found.rule
		}
		if found.confidence > 0 {
			f.Confidence = found.confidence
		}
		return f
	}
	f.Failed, f.Category, f.Confidence, f.Rule = true, found.category, found.confidence, found.rule
	f.Line = trajectory.Shorten(strings.TrimSpace(found.line), maxLine)
	if (f.Category == recovery.CommandNotFound || f.Category == recovery.SyntaxError || f.Category == recovery.ToolTimeout) && v.call.Prose() != "" {
		// What a shell makes of prose depends on its quotes and brackets: it is one failure.
		f.Category, f.Fingerprint = recovery.CommandNotFound, fingerprint(r.Tool, recovery.CommandNotFound, "prose")
		return f
	}
	f.Fingerprint = fingerprint(r.Tool, found.category, found.line)
	return f
}

// finding is what the evidence says. The zero finding is "nothing found".
type finding struct {
	failed     bool
	category   recovery.Category
	confidence float64
	rule       string
	line       string
}

// judge weighs the evidence: refusals, then structure, then the ends of calls and
// of tests, then lines, then the outcome alone.
func (v *view) judge() finding {
	if line, ok := v.refusal(); ok {
		return finding{true, recovery.CategoryNone, certain, "refusal", line}
	}
	if v.decided.failed {
		return v.decided
	}
	if v.hasExit && v.exit == 1 && len(v.lines) > 0 && (v.noMatch() || v.call.Command().Programs == nil) && diffHead.MatchString(v.lines[0].text) {
		return finding{rule: "exit-one-no-match", confidence: possible}
	}
	if v.outcome == succeeded && v.bare() {
		return finding{rule: "exit-zero"}
	}
	if v.outcome != failed && strings.HasPrefix(strings.TrimLeft(v.text, blanks), fileHead) && fileWindow.MatchString(v.text) {
		return finding{rule: "file-window"}
	}
	if f := v.editRefused(); f.failed {
		return f
	}
	v.onlyErrors = v.outcome == succeeded && v.allErrors()
	if v.data() {
		if f := v.readerStopped(); f.failed {
			return f
		}
		return v.judgeData()
	}
	if f := v.outOfTime(); f.failed {
		return f
	}
	if f, ok := v.tested(); ok {
		return f
	}
	if f := v.errors(); f.failed {
		return f
	}
	return v.byOutcome()
}

// errors looks for the message that says why: an exception, or a line of a known form.
func (v *view) errors() finding {
	if f := v.traceback(); f.failed || len(v.lines) == 0 {
		return f
	}
	return v.lineRules()
}

// fileHead is what fileWindow begins with after its white space, of these blanks.
const (
	fileHead = "[File: "
	blanks   = "\t\n\f\r "
)

// fileWindow begins what SWE-agent's file viewer shows.
var fileWindow = recovery.NewPattern(`^\s*\[File: \S.{0,300} \(\d+ lines total\)\]\n`)
