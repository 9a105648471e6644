package doctor

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rebound-llm/rebound/proxy/upstream"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/fit/count"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

const (
	word     = "COPPER-52"
	opening  = "The code word of this conversation is " + word + ". Answer briefly and in plain words."
	recall   = "What is the code word of this conversation? Answer with the code word alone."
	numbers  = "Write the numbers from one to twenty as English words, separated by spaces, and nothing else."
	weather  = "What is the weather in Paris and in Rome? Call the tool for both cities at once."
	toolName = "get_weather"

	fewTokens  = 100         // the output limit of the questions,
	forThought = 400         // and where the model was seen to reason
	hugeLimit  = 100_000_000 // an output limit that no model has
)

// notChat are parts of the names of models that do not answer questions.
var notChat = []string{"embed", "tts", "whisper", "dall-e", "moderation", "audio", "realtime", "image", "rerank", "transcri", "babbage", "davinci", "turbo-instruct", "sora"}

// examine asks the questions, in order. What answers nothing is not asked further.
func (p *probe) examine(ctx context.Context) {
	if !p.models(ctx) || !p.plain(ctx) {
		return
	}
	p.stream(ctx)
	p.tools(ctx)
	p.continuation(ctx)
	p.limits(ctx)
	if p.Window {
		p.fullWindow(ctx)
	} else if p.told == 0 && p.window == 0 {
		p.say(Unknown, "window", "the target tells none; --window finds out, for a price that it names first")
	}
}

// models asks for the list of models, and whether anybody is there. False ends the probe.
func (p *probe) models(ctx context.Context) bool {
	cameBack := listenForLoop(p.Config.Listen(), func(r *http.Request) bool { return strings.HasSuffix(r.UserAgent(), p.nonce) })
	a := p.get(ctx, "/models")
	if looped := cameBack(); looped || a.failure != nil && (a.failure.Signal.Code == "gateway_loop" || strings.Contains(string(a.body), `"gateway_loop"`)) {
		p.say(Problem, "loop", "requests come back to the gateway's own address, %s: every request would fail; correct the upstream's url", p.Config.Listen())
		return false
	}
	if a.status == 0 {
		p.say(Problem, "reach", "no answer: %s", a.reason())
		return false
	}
	p.clock(a)
	if a.header.Get("X-Rebound-Request") != "" {
		p.say(Note, "reach", "another Rebound stands behind this address: what it recovers is not seen here, and both spend retries")
	}
	if p.server = a.header; a.failure != nil {
		p.say(Note, "models", "no list of models (%s)", a.reason())
	} else {
		p.list = a.body
	}
	ids, window := p.listed()
	if p.target.Model == "" {
		if len(ids) == 0 {
			p.say(Unknown, "model", "nobody names a model: rebound doctor MODEL")
			return false
		}
		p.target.Model = ids[max(0, slices.IndexFunc(ids, func(id string) bool {
			return !slices.ContainsFunc(notChat, func(part string) bool { return strings.Contains(strings.ToLower(id), part) })
		}))]
		p.report.Target = p.target.String()
		_, window = p.listed()
	}
	if window > 0 {
		p.told, p.source = window, "its list of models"
	}
	switch {
	case a.failure != nil:
	case slices.Contains(ids, p.target.Model):
		p.say(OK, "models", "%s listed, %s among them", plural(len(ids), "model"), p.target.Model)
	default:
		p.say(Note, "models", "%s is not among the %s listed", p.target.Model, plural(len(ids), "model"))
	}
	if p.noCredential != "" {
		p.say(Unknown, "credential", "clients bring their own, and %s is not set here: only the address was looked at", p.noCredential)
		return false
	}
	return true
}

// listed are the models of the list, and the window that it tells of the target's.
func (p *probe) listed() (ids []string, window int) {
	for id, n := range upstream.ListedModels(p.list) {
		if oneLine(id) != id {
			continue // it is printed
		}
		if ids = append(ids, id); id == p.target.Model {
			window = n
		}
	}
	return ids, window
}

// plain asks a question with the parameters that agents usually send. False ends the probe.
func (p *probe) plain(ctx context.Context) bool {
	more := map[string]any{"temperature": 0, "top_p": 0.9, "stop": []string{"\n\n\n\n"}, "seed": 7, "user": "rebound-doctor"}
	if p.cfg.Messages() {
		more = map[string]any{"temperature": 0, "top_p": 0.9, "stop_sequences": []string{"<end>"}, "metadata": map[string]any{"user_id": "rebound-doctor"}}
	}
	q := p.question(opening, recall, fewTokens, more)
	a := p.ask(ctx, q)
	switch class := a.class(); {
	case a.spent:
		p.say(Problem, "answer", "ten requests were not enough to find parameters that it takes")
		return false
	case class == recovery.Auth || class == recovery.Permission || class == recovery.QuotaExhausted:
		p.say(Problem, "credential", "refused: %s", a.reason())
		return false
	case class == recovery.RateLimit || class == recovery.Overloaded:
		p.say(Unknown, "answer", "not at the moment: %s", a.reason())
		return false
	case class == recovery.ModelNotFound:
		p.say(Problem, "model", "%s", a.reason())
		return false
	case class != "":
		p.say(Problem, "answer", "%s", a.reason())
		return false
	}
	p.answers = true
	p.reasons, p.recalled = a.reasoned, strings.Contains(a.text, word)
	switch {
	case p.up.Spends() || p.secret != "":
		p.say(OK, "credential", "accepted")
	default:
		p.say(OK, "credential", "none is sent, and none is asked for")
	}
	switch took := a.took.Round(time.Millisecond); {
	case a.text == "" && a.finish == "length", a.text == "" && a.finish == "max_tokens":
		p.reasons = true
		p.say(Note, "answer", "after %v, without text: the model spent %d tokens on reasoning", took, fewTokens)
	case a.text == "":
		p.say(Problem, "answer", "after %v, and empty", took)
	default:
		p.say(OK, "answer", "complete after %v", took)
	}
	p.parameters()
	p.usage(q, a)
	return true
}

// output is the output limit of a question.
func (p *probe) output() int {
	if p.reasons {
		return forThought
	}
	return fewTokens
}

// parameters says which were refused.
func (p *probe) parameters() {
	if len(p.edits) > 0 {
		var list []string
		for _, ed := range p.edits {
			list = append(list, ed.String())
		}
		p.say(Note, "parameters", "the target %s: the gateway adapts requests after the first refusal of each", strings.Join(list, ", "))
	}
	if len(p.without) > 0 {
		p.say(Note, "parameters", "refused, and the gateway does not leave it out: %s", strings.Join(p.without, ", "))
	}
	if len(p.edits)+len(p.without) == 0 {
		p.say(OK, "parameters", "all are taken that agents usually send")
	}
}

// usage compares what the target says it has read with what was sent.
func (p *probe) usage(q map[string]any, a *answer) {
	n := p.tokens(q)
	switch {
	case a.prompt == 0:
		p.say(Note, "usage", "not reported: tokens and costs are estimated")
	case a.prompt*5 < n*2 && !p.recalled:
		p.cuts = a.prompt
		p.say(Problem, "window", "the target read %d of about %d tokens, without a word: every prompt is cut", a.prompt, n)
	default:
		p.say(OK, "usage", "%d tokens were read, about %d were sent", a.prompt, n)
	}
}

// tokens counts a question.
func (p *probe) tokens(q map[string]any) int {
	raw, err := p.body(q, "", "")
	if err != nil {
		return 0
	}
	b, err := transcript.Parse(raw, p.format(), transcript.Limits{})
	if err != nil {
		return 0
	}
	return count.NewMeter().Measure(b, p.target.Model).Total
}

// stream asks for a streamed answer, whose text may be continued later.
func (p *probe) stream(ctx context.Context) {
	more := map[string]any{"temperature": 0, "stream": true}
	if !p.cfg.Messages() {
		more["stream_options"] = map[string]any{"include_usage": true}
	}
	q := p.question("", numbers, p.output(), more)
	a := p.ask(ctx, q)
	switch {
	case a.spent:
		p.say(Unknown, "stream", "%s", a.reason())
	case a.failure != nil && a.pieces > 0:
		p.say(Problem, "stream", "broken after %s of text: %s", plural(a.pieces, "piece"), a.reason())
	case a.failure != nil:
		p.say(Problem, "stream", "%s", a.reason())
	case a.body != nil:
		p.say(Problem, "stream", "the answer is no stream, though one was asked for")
	default:
		p.streams, p.begun, p.asked = true, a, q
		p.reasons = p.reasons || a.reasoned
		switch total := a.took.Round(time.Millisecond); {
		case a.pieces == 0:
			p.say(Note, "stream", "complete, without text")
		case a.pieces == 1 || a.took > time.Second && a.first > a.took*9/10:
			p.say(Note, "stream", "complete, but its text arrives at once after %v: something in between collects it, so that a cut loses everything", total)
		default:
			p.say(OK, "stream", "%s of text, the first after %v, the end after %v", plural(a.pieces, "piece"), a.first.Round(time.Millisecond), total)
		}
		if a.finish == "" {
			p.say(Note, "stream", "without a finish reason: the gateway adds it, once it has seen that the target never sends one")
		}
		if a.prompt == 0 {
			p.say(Note, "stream", "without usage: costs of streams are estimated")
		}
	}
}

// tools offers one tool for two things.
func (p *probe) tools(ctx context.Context) {
	schema := map[string]any{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}, "required": []string{"city"}}
	const about = "The current weather of one city."
	more := map[string]any{"temperature": 0, "stream": true, "tools": []any{map[string]any{"name": toolName, "description": about, "input_schema": schema}}}
	if !p.cfg.Messages() {
		more["tools"] = []any{map[string]any{"type": "function", "function": map[string]any{"name": toolName, "description": about, "parameters": schema}}}
		more["parallel_tool_calls"] = true
	}
	refused := len(p.without)
	a := p.ask(ctx, p.question("", weather, p.output(), more))
	if len(p.without) > refused {
		p.say(Note, "tools", "refused, and the gateway does not leave it out: %s", strings.Join(p.without[refused:], ", "))
	}
	if a.spent {
		p.say(Unknown, "tools", "%s", a.reason())
		return
	}
	broken := slices.ContainsFunc(a.calls, func(c call) bool { return !c.usable() })
	switch {
	case a.failure != nil && a.failure.Spec.Class.Retryable():
		p.say(Unknown, "tools", "not at the moment: %s", a.reason())
	case a.failure != nil:
		p.say(Problem, "tools", "agents cannot use it: %s", a.reason())
	case len(a.calls) == 0 && strings.Contains(a.text, toolName):
		p.say(Note, "tools", "the call stands in the text: the gateway makes a call of it where it knows the dialect; does the server parse tool calls?")
	case len(a.calls) == 0 && (a.finish == "length" || a.finish == "max_tokens"):
		p.say(Unknown, "tools", "no call within %d tokens", p.output())
	case len(a.calls) == 0:
		p.say(Note, "tools", "the model answered in words instead of a call")
	case broken:
		p.say(Note, "tools", "%s, not all with usable arguments: the gateway mends them or asks again", plural(len(a.calls), "call"))
	case a.merged:
		p.say(OK, "tools", "%s in one answer, under one index: the gateway tells them apart", plural(len(a.calls), "call"))
	case len(a.calls) == 1:
		p.say(OK, "tools", "1 call with usable arguments; for two things at once, still one: no parallel calls")
	default:
		p.say(OK, "tools", "%s in one answer, with usable arguments", plural(len(a.calls), "call"))
	}
}

// continuation finds out how the target continues an answer that broke off: it is given the first
// half of the one it has just written.
func (p *probe) continuation(ctx context.Context) {
	set := p.cfg.Prefills()
	known := set
	if known == recovery.PrefillAuto {
		known = upstream.ServerPrefill(p.server, p.list)
	}
	if p.begun == nil || utf8.RuneCountInString(p.begun.text) < 30 {
		p.say(Unknown, "prefill", "there is no text of some length to continue")
		return
	}
	cut := len(p.begun.text) / 2
	cut = max(strings.LastIndexAny(p.begun.text[:cut], " \n"), len(p.begun.text)/4)
	given := recovery.Head(p.begun.text, cut)
	rest := p.begun.text[len(given):]
	last := ""
	for _, way := range p.ways(known) {
		body, err := p.body(p.asked, given, way)
		if err != nil {
			continue
		}
		a := p.post(ctx, body, 0)
		if a.spent && last != "" {
			break // the likelier ways were tried
		}
		if a.spent || a.class().Retryable() {
			p.say(Unknown, "prefill", "%s", a.reason())
			return
		}
		if last = verdict(a, given, rest); last != "" && !(last == otherWords && way == known) {
			continue
		}
		p.prefill = way
		switch {
		case way == set:
			p.say(OK, "prefill", "the target goes on from a given beginning (prefill: %s, as set or known)", way)
		case way == known:
			p.say(OK, "prefill", "the target goes on from a given beginning (%s); prefill: auto finds that out after the first cut", way)
		default:
			p.say(Note, "prefill", "the target goes on from a given beginning: set prefill: %s", way)
		}
		return
	}
	p.prefill = recovery.PrefillNone
	if set != recovery.PrefillNone && set != recovery.PrefillAuto {
		p.say(Problem, "prefill", "prefill: %s is set or known, and the target does not go on: %s", set, last)
		return
	}
	p.say(Note, "prefill", "the target does not go on from a given beginning (%s)", last)
}

// ways are the ways of prefill that are tried, the likeliest first.
func (p *probe) ways(known recovery.Prefill) []recovery.Prefill {
	all := []recovery.Prefill{recovery.PrefillAssistant, recovery.PrefillContinue, recovery.PrefillPrefix}
	if p.cfg.Messages() || p.cfg.Prefills() == recovery.PrefillNone {
		return all[:1]
	}
	if i := slices.Index(all, known); i >= 0 {
		return append([]recovery.Prefill{known}, slices.Delete(all, i, i+1)...)
	}
	return all
}

// verdict says why an answer does not go on from a given beginning to the rest of a text, "" if it does.
// Some servers (llama.cpp) send the beginning along in the first piece; the gateway takes it out.
func verdict(a *answer, given, rest string) string {
	const sure = 12 // bytes that are no coincidence
	got := strings.TrimSpace(a.text)
	begins := func(want string) bool {
		want = strings.TrimSpace(want)
		n := min(sure, len(want))
		return len(got) >= n && strings.EqualFold(got[:n], want[:n])
	}
	switch {
	case a.failure != nil:
		return a.reason()
	case got == "":
		return "it answers with nothing"
	case begins(rest), strings.HasPrefix(a.opening, given) && a.pieces > 1:
		return ""
	case begins(given):
		return "it begins anew"
	}
	return otherWords
}

// otherWords is the verdict on an answer that neither goes on nor begins anew as the first one did: of a
// server that is known to go on it proves nothing, for a beginning in other tokens may end otherwise.
const otherWords = "it says something else"

// limits asks for more output than any model gives: a refusal names the limit and costs nothing.
// Where it is accepted, a few pieces of the answer are read.
func (p *probe) limits(ctx context.Context) {
	if p.told == 0 {
		q := p.question("", "Answer with the one word: ready.", hugeLimit, map[string]any{"temperature": 0, "stream": true})
		body, err := p.body(q, "", "")
		if err != nil {
			return
		}
		a := p.post(ctx, body, enough)
		switch f := a.failure; {
		case f == nil || a.class().Retryable():
		case f.Facts.LimitTokens > 0:
			p.told, p.source = f.Facts.LimitTokens, "its refusal of a huge output"
		case f.Facts.MaxOutputLimit > 0:
			p.say(OK, "output", "at most %s tokens an answer: a larger limit is lowered after the first refusal", number(f.Facts.MaxOutputLimit))
		default:
			p.say(Note, "output", "a huge output limit is refused: %s", a.reason())
		}
	}
	switch {
	case p.told == 0 && p.window > 0:
		p.say(OK, "window", "%s tokens are configured; the target tells none", number(p.window))
	case p.told > 0 && p.window > p.told:
		p.say(Note, "window", "%s tokens are configured, and %s tells %s: longer prompts are refused before they are shortened", number(p.window), p.source, number(p.told))
	case p.told > 0:
		p.say(OK, "window", "%s tokens, says %s", number(p.told), p.source)
	}
}

// clock compares the server's clock with this one.
func (p *probe) clock(a *answer) {
	switch skew := a.skew.Abs().Round(time.Second); {
	case !a.dated && p.up.Local(): // llama.cpp's server; what names no time needs no clock
	case !a.dated:
		p.say(Unknown, "clock", "the answer has no date")
	case skew > time.Minute:
		p.say(Problem, "clock", "this machine is off by %v against the server: waits that name a time are wrong, and signatures fail", skew)
	default:
		p.say(OK, "clock", "within %v of the server's", max(skew, time.Second))
	}
}
