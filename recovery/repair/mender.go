package repair

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// The repairs of an answer as a whole, as named in events.
const (
	ruleIDs      = "call_ids"
	ruleFinish   = "finish"
	ruleLeak     = "call_in_text"
	ruleParallel = "parallel_wrapper"
	ruleJoined   = "joined_calls"
)

// Mender implements recovery.Mender. It is safe for concurrent use.
type Mender struct {
	cfg       Config
	schemas   memo[*schema]           // compiled schemas
	toolLists memo[[]transcript.Tool] // parsed lists of tools, by format
}

var _ recovery.Mender = (*Mender)(nil)

// New returns a Mender. cfg must be valid.
func New(cfg Config) *Mender {
	return &Mender{
		cfg:       cfg,
		schemas:   newMemo[*schema](maxCachedSchemas, maxCachedBytes),
		toolLists: newMemo[[]transcript.Tool](maxCachedToolLists, maxCachedTools),
	}
}

// judges reports whether answers to the request are judged at all.
func (m *Mender) judges(req *transcript.Body) bool {
	return m.cfg.Enabled && req.N() <= 1 && !req.Logprobs() && !req.Audio()
}

// Holds implements recovery.Mender. It holds calls if the request offers tools, and
// the text if it must be JSON, unless a stream passes it on (Config.JSONStream).
func (m *Mender) Holds(req *transcript.Body) recovery.Hold {
	if !m.judges(req) {
		return recovery.Hold{}
	}
	form, _ := req.ContentForm()
	structured := form == transcript.FormObject || form == transcript.FormSchema
	return recovery.Hold{
		Calls: req.HasTools(),
		Text:  structured && (!req.Streaming() || m.cfg.JSONStream == JSONHold),
	}
}

// Watch implements recovery.Mender. Answers shorter than the shortest runaway get no watch.
func (m *Mender) Watch(req *transcript.Body, size int) recovery.Watch {
	if !m.cfg.Repetition.Enabled || size >= 0 && size < m.cfg.Repetition.Bytes || !m.judges(req) {
		return nil
	}
	return newWatch(m.cfg.Repetition)
}

// job is the judgement of one answer.
type job struct {
	*Mender
	req           *transcript.Body
	tools         offeredTools
	draft         recovery.Draft
	cut           bool // the output limit ended the answer, or may have
	canClose      bool // the answer ended by itself, so missing brackets may be added
	repairs       []recovery.Repair
	text          *string
	finish        recovery.Finish
	fromText      bool // the calls were found in the text
	argumentBytes int  // bytes of arguments judged so far
	workLeft      int  // see maxAnswerWork
}

// Mend implements recovery.Mender. It looks up log probabilities and audio in the request
// only if something is wrong: nothing is with most answers.
func (m *Mender) Mend(req *transcript.Body, d recovery.Draft) recovery.Verdict {
	if !m.cfg.Enabled || req.N() > 1 {
		return recovery.Verdict{}
	}
	v := m.verdict(req, d)
	if v.Judgement != recovery.JudgePass && !m.judges(req) {
		return recovery.Verdict{}
	}
	if v.Flaw != nil && v.Flaw.Kind == recovery.FlawTruncated && probes(req) {
		return recovery.Verdict{} // no call fits
	}
	return v
}

// verdict judges an answer without asking judges.
func (m *Mender) verdict(req *transcript.Body, d recovery.Draft) recovery.Verdict {
	j := &job{Mender: m, req: req, tools: m.offeredTools(req), draft: d, workLeft: maxAnswerWork}
	j.cut = j.reachedLimit()
	j.canClose = !j.cut && d.Finish != recovery.FinishNone && d.Finish != recovery.FinishFilter
	calls, flaw := j.mend()
	if flaw != nil {
		return askAgain(flaw)
	}
	j.mendFinish(len(calls))
	if len(j.repairs) == 0 {
		return recovery.Verdict{}
	}
	return recovery.Verdict{Judgement: recovery.JudgeReplace, Calls: calls, Text: j.text, Finish: j.finish, Repairs: j.repairs}
}

// mend returns the answer's calls, repaired, or the first flaw that needs another answer.
func (j *job) mend() (calls []recovery.DraftCall, flaw *recovery.Flaw) {
	if flaw = compressionMark(j.req, j.draft); flaw != nil {
		return nil, flaw
	}
	calls = j.draft.Calls
	wanted := j.tools.some && j.tools.choice.Choice != transcript.ChoiceNone
	if len(calls) == 0 && wanted {
		if calls, flaw = j.callsInText(); flaw != nil {
			return nil, flaw
		}
	}
	if len(calls) > 0 && wanted && len(calls) <= maxCalls {
		if calls, flaw = j.mendCalls(calls); flaw != nil {
			return nil, flaw
		}
	}
	switch {
	case len(calls) > 0 && wanted:
		return calls, j.wrongTool(calls)
	case len(calls) > 0:
		return calls, nil
	}
	if flaw = j.missingCall(); flaw != nil {
		return nil, flaw
	}
	if flaw = j.reasoningOnly(); flaw != nil {
		return nil, flaw
	}
	return nil, j.mendContent()
}

// reachedLimit reports whether the output limit may have ended the answer. Some servers, such as vLLM, give a call as the
// reason where it was the limit. A token has at least one byte, so an answer with fewer bytes than the limit was not cut.
func (j *job) reachedLimit() bool {
	switch j.draft.Finish {
	case recovery.FinishLength:
		return true
	case recovery.FinishCalls:
		size := len(j.draft.Text)
		for _, c := range j.draft.Calls {
			size += len(c.Arguments)
		}
		_, limit, set := j.req.OutputLimit()
		return set && size >= limit
	}
	return false
}

func askAgain(f *recovery.Flaw) recovery.Verdict {
	f.Quote, f.Problem = trajectory.Shorten(f.Quote, maxQuote), trajectory.Shorten(f.Problem, maxProblem)
	return recovery.Verdict{Judgement: recovery.JudgeAsk, Flaw: f}
}

func (j *job) addRepairs(tool string, rules ...string) {
	for _, rule := range rules {
		j.repairs = append(j.repairs, recovery.Repair{Rule: rule, Tool: tool})
	}
}

// mendCalls judges all calls of the answer, and copies the list before the first change.
func (j *job) mendCalls(list []recovery.DraftCall) ([]recovery.DraftCall, *recovery.Flaw) {
	if unpacked, ok := j.unpackParallel(list); ok {
		list = unpacked
	}
	var out []recovery.DraftCall // nil until something is mended
	for i, c := range list {
		mended, rules, flaw := j.mendCall(c, i == len(list)-1)
		parts := []recovery.DraftCall{mended}
		if flaw != nil {
			if parts = j.splitJoined(c); parts == nil {
				return nil, flaw
			}
			rules = []string{ruleJoined}
		}
		if len(rules) > 0 && out == nil {
			out = slices.Clone(list[:i])
		}
		if out != nil {
			out = append(out, parts...)
			j.addRepairs(parts[0].Name, rules...)
		}
	}
	if out == nil {
		out = list
	}
	return j.fillIDs(out), nil
}

// splitJoined splits a call whose arguments are several JSON objects into one call for
// each. It returns nil unless all are complete and valid, and no two equal: equal objects
// may be one call that the model repeated.
func (j *job) splitJoined(c recovery.DraftCall) (out []recovery.DraftCall) {
	tool, text := j.tools.byName(c.Name), strings.TrimSpace(c.Arguments)
	if tool == nil || !tool.Callable() || c.Kind != transcript.KindFunction && c.Kind != "" || len(text) > maxArguments || j.argumentBytes > maxTotalArguments ||
		!j.req.ParallelCalls() {
		return nil
	}
	schema := j.schemaOf(tool)
	var values []*value
	for len(text) > 0 {
		v, rules, n, err := readPrefix(text)
		if err != nil || len(rules) > 0 || len(v.members) == 0 || len(values) == maxJoined || slices.ContainsFunc(values, v.equal) ||
			!onlyDeclared(v, schema.doc, &j.workLeft) {
			return nil
		}
		c.Arguments = text[:n]
		if !j.argumentMender(tool, schema, c.Arguments).valid(c.Arguments) {
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

// mendCall judges one call and returns it repaired, with the rules that were applied.
func (j *job) mendCall(c recovery.DraftCall, last bool) (recovery.DraftCall, []string, *recovery.Flaw) {
	function := c.Kind == transcript.KindFunction || c.Kind == ""
	if !function && j.tools.byName(c.Name) != nil {
		return c, nil, nil // free text, or a tool that the server runs
	}
	tool, rule := j.tools.resolve(c.Name, func(t *transcript.Tool) bool { return function && j.argumentsFit(t, c.Arguments) })
	switch {
	case tool == nil && (!function || j.tools.mayBeUnlisted(c.Name)):
		return c, nil, nil
	case tool == nil:
		return c, nil, &recovery.Flaw{Kind: recovery.FlawName, Quote: c.Name + "(" + c.Arguments + ")", Problem: j.unknownTool(c.Name)}
	}
	var rules []string
	if rule != "" {
		rules = append(rules, rule)
		c.Name = tool.Name
	}
	if !function || !tool.Callable() {
		return c, rules, nil
	}
	schema := j.schemaOf(tool)
	if schema.certainlyAccepts(c.Arguments) {
		return c, rules, nil // the usual case
	}
	a := j.argumentMender(tool, schema, c.Arguments)
	args, ok := a.mend(c.Arguments)
	if !ok {
		f := &recovery.Flaw{Kind: recovery.FlawArguments, Tool: tool.Name, Quote: c.Arguments,
			Problem: "the arguments of " + strconv.Quote(tool.Name) + " cannot be used: " + a.problem}
		switch {
		case !complete(c.Arguments):
			f.Kind = recovery.FlawJSON
		case strings.Contains(a.problem, lacksRequired):
			f.Kind = recovery.FlawField
		}
		if j.cut && last && f.Kind == recovery.FlawJSON {
			f.Kind = recovery.FlawTruncated
			f.Problem = "the output limit cut the call of " + strconv.Quote(tool.Name) + "; make it shorter, or split it into several calls"
		}
		return c, nil, f
	}
	c.Arguments = args
	return c, append(rules, a.rules...), nil
}

// argumentMender returns a mender for the arguments of one call. Arguments beyond the
// answer's bounds are not mended.
func (j *job) argumentMender(t *transcript.Tool, s *schema, text string) *argumentMender {
	j.argumentBytes += len(text)
	over := j.argumentBytes > maxTotalArguments || j.workLeft <= 0
	return &argumentMender{mender: j.Mender, tool: t, schema: s, canClose: j.canClose, workLeft: &j.workLeft, overBudget: over}
}

// schemaOf returns the compiled schema of a tool's arguments.
func (j *job) schemaOf(t *transcript.Tool) *schema { return j.schema(t.Parameters, &j.workLeft) }

// complete reports whether text is one valid JSON value.
func complete(text string) bool { return transcript.Valid([]byte(text), maxDepth) == nil }

// argumentsFit reports whether the arguments match the tool's schema, as they are or repaired.
func (j *job) argumentsFit(t *transcript.Tool, args string) bool {
	_, ok := j.argumentMender(t, j.schemaOf(t), args).mend(args)
	return ok
}

// unknownTool returns the problem of a call of an unknown tool: it lists the tools that exist.
func (j *job) unknownTool(name string) string {
	var known []string
	for _, t := range j.tools.list() {
		if t.Name != "" && j.tools.choice.Allows(t.Name) {
			known = append(known, t.Name)
		}
	}
	if strings.TrimSpace(name) == "" {
		return "the call names no tool; the tools are " + quoteList(known)
	}
	return "there is no tool " + strconv.Quote(trajectory.Shorten(name, 100)) + "; the tools are " + quoteList(known)
}

// callsInText returns the calls that the model wrote into the text.
func (j *job) callsInText() ([]recovery.DraftCall, *recovery.Flaw) {
	f := j.callFinder(j.req).find(j.draft.Text)
	before, found, marked := f.before, f.calls, f.marked
	if len(found) == 0 && !marked || f.at < j.draft.Shown {
		return nil, nil
	}
	if len(found) == 0 {
		f := &recovery.Flaw{Kind: recovery.FlawArguments, Quote: j.draft.Text, Problem: "the text holds a tool call that is not well formed; make the call " +
			"as a tool call"}
		if j.cut {
			f.Kind = recovery.FlawTruncated
		}
		return nil, f
	}
	if form, _ := j.req.ContentForm(); !marked && form != transcript.FormText {
		return nil, nil // the request asked for JSON
	}
	calls := make([]recovery.DraftCall, 0, len(found))
	for _, l := range found {
		tool, _ := j.tools.resolve(l.name, func(t *transcript.Tool) bool { return marked && !l.tagged && j.argumentsFit(t, l.args) })
		switch {
		case !marked && (tool == nil || tool.Name != l.name && stripName(l.name) != tool.Name):
			return nil, nil // the text is about calls
		case tool == nil:
			return nil, &recovery.Flaw{Kind: recovery.FlawName, Quote: j.draft.Text[len(before):], Problem: j.unknownTool(l.name)}
		case l.uncertain && j.guarded(tool):
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
			v := objectFromParams(l.params, j.schemaOf(tool).doc, &j.workLeft)
			if v == nil {
				return nil, &recovery.Flaw{Kind: recovery.FlawArguments, Tool: tool.Name, Quote: j.draft.Text[len(before):],
					Problem: "the call stands in the text, with parameters that may be read in two ways; make it as a tool call"}
			}
			args = v.render()
		}
		calls = append(calls, recovery.DraftCall{Kind: transcript.KindFunction, Name: l.name, Arguments: args})
	}
	j.fromText = true
	j.addRepairs("", ruleLeak)
	text := strings.TrimRight(before[min(j.draft.Shown, len(before)):], " \t\r\n")
	j.text = &text
	return calls, nil
}
