package repair

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// The names of what is mended of an answer as a whole.
const (
	ruleIDs      = "call_ids"
	ruleFinish   = "finish"
	ruleLeak     = "call_in_text"
	ruleParallel = "parallel_wrapper"
	ruleJoined   = "joined_calls"
)

// Mender implements recovery.Mender. It is safe for concurrent use.
type Mender struct {
	cfg     Config
	schemas *schemas
	kits    memo[[]transcript.Tool] // by the lists of tools of requests, which are of one format
}

var _ recovery.Mender = (*Mender)(nil)

// New returns a Mender. cfg must be valid.
func New(cfg Config) *Mender {
	return &Mender{cfg: cfg, schemas: newSchemas(), kits: newMemo[[]transcript.Tool](maxCachedKits, maxCachedTools)}
}

// judged reports whether the answers of a request are judged at all.
func (m *Mender) judged(req *transcript.Body) bool {
	return m.cfg.Enabled && req.N() <= 1 && !req.Logprobs() && !req.Audio()
}

// Holds implements recovery.Mender: calls where tools are offered; the text
// where it must be JSON, unless the client wants it as it comes.
func (m *Mender) Holds(req *transcript.Body) recovery.Hold {
	if !m.judged(req) {
		return recovery.Hold{}
	}
	form, _ := req.ContentForm()
	structured := form == transcript.FormObject || form == transcript.FormSchema
	return recovery.Hold{
		Calls: req.HasTools(),
		Text:  structured && (!req.Streaming() || m.cfg.JSONStream == JSONHold),
	}
}

// Watch implements recovery.Mender. No answer shorter than a repetition has one.
func (m *Mender) Watch(req *transcript.Body, size int) recovery.Watch {
	if !m.cfg.Repetition.Enabled || size >= 0 && size < m.cfg.Repetition.Bytes || !m.judged(req) {
		return nil
	}
	return newWatch(m.cfg.Repetition)
}

// job is the judgement of one answer.
type job struct {
	*Mender
	req     *transcript.Body
	tools   tools
	draft   recovery.Draft
	close   bool // the answer ended by itself: nothing but brackets can be missing
	repairs []recovery.Repair
	text    *string
	finish  recovery.Finish
	leaked  bool // calls came out of the text
	read    int  // bytes of arguments that were judged
	work    int  // that is left, see maxJudged
}

// Mend implements recovery.Mender. Whether the answers of the request are judged is
// looked up where something is wrong: nothing is with most.
func (m *Mender) Mend(req *transcript.Body, d recovery.Draft) recovery.Verdict {
	if !m.cfg.Enabled || req.N() > 1 {
		return recovery.Verdict{}
	}
	v := m.verdict(req, d)
	if v.Judgement != recovery.JudgePass && !m.judged(req) {
		return recovery.Verdict{}
	}
	return v
}

// verdict is the judgement of an answer.
func (m *Mender) verdict(req *transcript.Body, d recovery.Draft) recovery.Verdict {
	if flaw := imitation(req, d); flaw != nil {
		return ask(flaw)
	}
	j := &job{Mender: m, req: req, tools: m.offered(req), draft: d, work: maxJudged}
	j.close = d.Finish != recovery.FinishLength && d.Finish != recovery.FinishNone && d.Finish != recovery.FinishFilter
	calls := d.Calls
	wanted := j.tools.some && j.tools.choice.Choice != transcript.ChoiceNone
	if len(calls) == 0 && wanted {
		var flaw *recovery.Flaw
		if calls, flaw = j.leaks(); flaw != nil {
			return ask(flaw)
		}
	}
	if len(calls) > 0 && wanted && len(calls) <= maxCalls {
		var flaw *recovery.Flaw
		if calls, flaw = j.calls(calls); flaw != nil {
			return ask(flaw)
		}
	}
	if len(calls) > 0 && wanted {
		if flaw := j.another(calls); flaw != nil {
			return ask(flaw)
		}
	}
	if len(calls) == 0 {
		if flaw := j.missing(); flaw != nil {
			return ask(flaw)
		}
		if flaw := j.unsaid(); flaw != nil {
			return ask(flaw)
		}
		if flaw := j.content(); flaw != nil {
			return ask(flaw)
		}
	}
	j.ending(len(calls))
	if len(j.repairs) == 0 {
		return recovery.Verdict{}
	}
	return recovery.Verdict{Judgement: recovery.JudgeReplace, Calls: calls, Text: j.text, Finish: j.finish, Repairs: j.repairs}
}

func ask(f *recovery.Flaw) recovery.Verdict {
	f.Quote, f.Problem = trajectory.Shorten(f.Quote, maxQuote), trajectory.Shorten(f.Problem, maxProblem)
	return recovery.Verdict{Judgement: recovery.JudgeAsk, Flaw: f}
}

func (j *job) mended(tool string, rules ...string) {
	for _, rule := range rules {
		j.repairs = append(j.repairs, recovery.Repair{Rule: rule, Tool: tool})
	}
}

// calls judges all calls of the answer. They are copied before the first change.
func (j *job) calls(list []recovery.DraftCall) ([]recovery.DraftCall, *recovery.Flaw) {
	if unpacked, ok := j.unpack(list); ok {
		list = unpacked
	}
	var out []recovery.DraftCall // nil as long as nothing is mended
	for i, c := range list {
		mended, rules, flaw := j.call(c, i == len(list)-1)
		parts := []recovery.DraftCall{mended}
		if flaw != nil {
			if parts = j.joined(c); parts == nil {
				return nil, flaw
			}
			rules = []string{ruleJoined}
		}
		if len(rules) > 0 && out == nil {
			out = slices.Clone(list[:i])
		}
		if out != nil {
			out = append(out, parts...)
			j.mended(parts[0].Name, rules...)
		}
	}
	if out == nil {
		out = list
	}
	return j.ids(out), nil
}

// joined are the calls whose arguments stand in one string, nil if it is not made
// of whole ones. Two that are equal may be one that was repeated.
func (j *job) joined(c recovery.DraftCall) (out []recovery.DraftCall) {
	tool, text := j.tools.named(c.Name), strings.TrimSpace(c.Arguments)
	if tool == nil || !tool.Callable() || c.Kind != transcript.KindFunction && c.Kind != "" || len(text) > maxArguments || j.read > maxRead ||
		!j.req.ParallelCalls() {
		return nil
	}
	schema := j.schema(tool)
	var values []*value
	for len(text) > 0 {
		v, rules, n, err := readPrefix(text)
		if err != nil || len(rules) > 0 || len(v.members) == 0 || len(values) == maxJoined || slices.ContainsFunc(values, v.equal) ||
			!declared(v, schema.doc, &j.work) {
			return nil
		}
		c.Arguments = text[:n]
		if !j.judge(tool, schema, c.Arguments).valid(c.Arguments) {
			return nil
		}
		values, out = append(values, v), append(out, c)
		text, c.ID = strings.TrimLeft(text[n:], " \t\r\n"), ""
	}
	if len(out) < 2 {
		return nil
	}
	return out
}

// call judges one call.
func (j *job) call(c recovery.DraftCall, last bool) (recovery.DraftCall, []string, *recovery.Flaw) {
	function := c.Kind == transcript.KindFunction || c.Kind == ""
	if !function && j.tools.named(c.Name) != nil {
		return c, nil, nil // free text, or the server's own
	}
	tool, rule, near := j.resolve(&j.tools, c.Name)
	if tool == nil && near != nil && function && j.fits(near, c.Arguments) {
		tool = near
	}
	switch {
	case tool == nil && (j.tools.opaque() || !function):
		return c, nil, nil
	case tool == nil:
		return c, nil, &recovery.Flaw{Kind: recovery.FlawName, Quote: c.Name + "(" + c.Arguments + ")", Problem: j.unknown(c.Name)}
	}
	var rules []string
	if rule != "" {
		rules = append(rules, rule)
		c.Name = tool.Name
	}
	if !function || !tool.Callable() {
		return c, rules, nil
	}
	schema := j.schema(tool)
	if schema.certainly(c.Arguments) {
		return c, rules, nil // as nearly all are
	}
	a := j.judge(tool, schema, c.Arguments)
	args, ok := a.mend(c.Arguments)
	if !ok {
		f := &recovery.Flaw{Kind: recovery.FlawArguments, Tool: tool.Name, Quote: c.Arguments,
			Problem: "the arguments of " + strconv.Quote(tool.Name) + " cannot be used: " + a.problem}
		switch {
		case !complete(c.Arguments):
			f.Kind = recovery.FlawJSON
		case strings.Contains(a.problem, lacks):
			f.Kind = recovery.FlawField
		}
		if j.draft.Finish == recovery.FinishLength && last && f.Kind == recovery.FlawJSON {
			f.Kind = recovery.FlawTruncated
			f.Problem = "the output limit cut the call of " + strconv.Quote(tool.Name) + "; make it shorter, or split it into several calls"
		}
		return c, nil, f
	}
	c.Arguments = args
	return c, append(rules, a.rules...), nil
}

// judge is for some arguments of a tool; those behind too many of an answer are not mended.
func (j *job) judge(t *transcript.Tool, s *schema, text string) *arguments {
	j.read += len(text)
	return &arguments{mender: j.Mender, tool: t, schema: s, close: j.close, work: &j.work, late: j.read > maxRead || j.work <= 0}
}

// schema is that of a tool's arguments.
func (j *job) schema(t *transcript.Tool) *schema { return j.schemas.get(t.Parameters, &j.work) }

// complete reports whether text is JSON that was not cut.
func complete(text string) bool { return transcript.Valid([]byte(text), maxDepth) == nil }

// fits reports whether arguments are, or can be made, right for a tool.
func (j *job) fits(t *transcript.Tool, args string) bool {
	_, ok := j.judge(t, j.schema(t), args).mend(args)
	return ok
}

// unknown tells the model which tools there are.
func (j *job) unknown(name string) string {
	var known []string
	for _, t := range j.tools.list() {
		if t.Name != "" && j.tools.allowed(t.Name) {
			known = append(known, t.Name)
		}
	}
	if strings.TrimSpace(name) == "" {
		return "the call names no tool; the tools are " + names(known)
	}
	return "there is no tool " + strconv.Quote(trajectory.Shorten(name, 100)) + "; the tools are " + names(known)
}

// leaks makes calls of those that stand in the text.
func (j *job) leaks() ([]recovery.DraftCall, *recovery.Flaw) {
	f := j.seeker(j.req).leaks(j.draft.Text)
	before, found, marked := f.before, f.calls, f.marked
	if len(found) == 0 && !marked || f.at < j.draft.Shown {
		return nil, nil
	}
	if len(found) == 0 {
		f := &recovery.Flaw{Kind: recovery.FlawArguments, Quote: j.draft.Text, Problem: "the text holds a tool call that is not well formed; make the call " +
			"as a tool call"}
		if j.draft.Finish == recovery.FinishLength {
			f.Kind = recovery.FlawTruncated
		}
		return nil, f
	}
	if form, _ := j.req.ContentForm(); !marked && form != transcript.FormText {
		return nil, nil // JSON that was asked for
	}
	calls := make([]recovery.DraftCall, 0, len(found))
	for _, l := range found {
		tool, _, near := j.resolve(&j.tools, l.name)
		if tool == nil && marked && !l.tagged && near != nil && j.fits(near, l.args) {
			tool = near
		}
		switch {
		case !marked && (tool == nil || tool.Name != l.name && bare(l.name) != tool.Name):
			return nil, nil // a text about calls
		case tool == nil:
			return nil, &recovery.Flaw{Kind: recovery.FlawName, Quote: j.draft.Text[len(before):], Problem: j.unknown(l.name)}
		case l.loose && j.guarded(tool):
			f := &recovery.Flaw{Kind: recovery.FlawArguments, Tool: tool.Name, Quote: j.draft.Text[len(before):],
				Problem: "the call stands in the text; make it as a tool call"}
			if before != "" {
				f.Tool, f.Problem = "", "a call stands in the text; make it as a tool call if it is meant, and only then" // it may be an example
			}
			return nil, f
		case !tool.Callable():
			return nil, nil
		}
		args := l.args
		if l.tagged {
			v := typed(l.params, j.schema(tool).doc, &j.work)
			if v == nil {
				return nil, &recovery.Flaw{Kind: recovery.FlawArguments, Tool: tool.Name, Quote: j.draft.Text[len(before):],
					Problem: "the call stands in the text, with parameters that may be read in two ways; make it as a tool call"}
			}
			args = v.render()
		}
		calls = append(calls, recovery.DraftCall{Kind: transcript.KindFunction, Name: l.name, Arguments: args})
	}
	j.leaked = true
	j.mended("", ruleLeak)
	text := strings.TrimRight(before[min(j.draft.Shown, len(before)):], " \t\r\n")
	j.text = &text
	return calls, nil
}
