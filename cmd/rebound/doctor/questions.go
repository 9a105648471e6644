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
	codeWord       = "COPPER-52"
	codeWordPrompt = "The code word of this conversation is " + codeWord + ". Answer briefly and in plain words."
	recallPrompt   = "What is the code word of this conversation? Answer with the code word alone."
	numbersPrompt  = "Write the numbers from one to twenty as English words, separated by spaces, and nothing else."
	toolPrompt     = "What is the weather in Paris and in Rome? Call the tool for both cities at once."
	toolName       = "get_weather"

	outputTokens    = 100         // the output limit of questions
	reasoningTokens = 400         // the output limit for models that reason
	hugeLimit       = 100_000_000 // above the output limit of any model
)

// notChat lists parts of the names of models that are not for chat.
var notChat = []string{"embed", "tts", "whisper", "dall-e", "moderation", "audio", "realtime", "image", "rerank", "transcri", "babbage", "davinci", "turbo-instruct", "sora"}

// examine runs the tests in order. It stops early if the target does not answer.
func (p *probe) examine(ctx context.Context) {
	if !p.models(ctx) || !p.basic(ctx) {
		return
	}
	p.stream(ctx)
	p.tools(ctx)
	p.continuation(ctx)
	p.limits(ctx)
	if p.Window {
		p.fullWindow(ctx)
	} else if p.statedWindow == 0 && p.configuredWindow == 0 {
		p.say(Unknown, "window", "the target does not state its window; run with --window to measure it, which shows the cost first")
	}
}

// models tests whether the target answers, and gets its list of models. False ends the tests.
func (p *probe) models(ctx context.Context) bool {
	cameBack := listenForLoop(p.Config.Listen(), func(r *http.Request) bool { return strings.HasSuffix(r.UserAgent(), p.nonce) })
	a := p.get(ctx, "/models")
	if looped := cameBack(); looped || a.failure != nil && (a.failure.Signal.Code == "gateway_loop" || strings.Contains(string(a.body), `"gateway_loop"`)) {
		p.say(Problem, "loop", "requests return to the gateway's own address, %s, so every request would fail: correct the url of the upstream", p.Config.Listen())
		return false
	}
	if a.status == 0 {
		p.say(Problem, "reach", "no answer: %s", a.reason())
		return false
	}
	p.clock(a)
	if a.header.Get("X-Rebound-Request") != "" {
		p.say(Note, "reach", "another Rebound gateway answers at this address: its recoveries are hidden from this test, and both gateways retry")
	}
	if p.serverHeader = a.header; a.failure != nil {
		p.say(Note, "models", "no list of models (%s)", a.reason())
	} else {
		p.modelList = a.body
	}
	ids, window := p.listedModels()
	if p.target.Model == "" {
		if len(ids) == 0 {
			p.say(Unknown, "model", "there is no model to test: name one, as in \"rebound doctor MODEL\"")
			return false
		}
		p.target.Model = ids[max(0, slices.IndexFunc(ids, func(id string) bool {
			return !slices.ContainsFunc(notChat, func(part string) bool { return strings.Contains(strings.ToLower(id), part) })
		}))]
		p.report.Target = p.target.String()
		_, window = p.listedModels()
	}
	if window > 0 {
		p.statedWindow, p.windowSource = window, "its list of models"
	}
	switch {
	case a.failure != nil:
	case slices.Contains(ids, p.target.Model):
		p.say(OK, "models", "%s listed, including %s", plural(len(ids), "model"), p.target.Model)
	default:
		p.say(Note, "models", "%s is not among the %s listed", p.target.Model, plural(len(ids), "model"))
	}
	if p.noCredential != "" {
		p.say(Unknown, "credential", "clients send their own: set %s to test more than the address", p.noCredential)
		return false
	}
	return true
}

// listedModels returns the listed models, and the window that the list states for the target's model.
func (p *probe) listedModels() (ids []string, window int) {
	for id, n := range upstream.ListedModels(p.modelList) {
		if oneLine(id) != id {
			continue // not safe to print
		}
		if ids = append(ids, id); id == p.target.Model {
			window = n
		}
	}
	return ids, window
}

// basic asks a question with the parameters that agents usually send. False ends the tests.
func (p *probe) basic(ctx context.Context) bool {
	q := p.question(codeWordPrompt, recallPrompt, outputTokens, map[string]any{"temperature": 0, "top_p": 0.9}, p.wire().usual)
	a := p.ask(ctx, q)
	switch class := a.class(); {
	case a.skipped:
		p.say(Problem, "answer", "ten requests are not enough to find parameters that the target accepts")
		return false
	case class == recovery.Auth || class == recovery.Permission || class == recovery.QuotaExhausted:
		p.say(Problem, "credential", "refused: %s", a.reason())
		return false
	case class == recovery.RateLimit || class == recovery.Overloaded:
		p.say(Unknown, "answer", "temporarily unavailable: %s", a.reason())
		return false
	case class == recovery.ModelNotFound:
		p.say(Problem, "model", "%s", a.reason())
		return false
	case class != "":
		p.say(Problem, "answer", "%s", a.reason())
		return false
	}
	p.answers = true
	p.reasons, p.recalled = a.Reasons, strings.Contains(a.Text, codeWord)
	switch {
	case p.up.Spends() || p.secret != "":
		p.say(OK, "credential", "accepted")
	default:
		p.say(OK, "credential", "none is sent, and none is required")
	}
	switch took := a.took.Round(time.Millisecond); {
	case a.Text == "" && a.Finish == recovery.FinishLength:
		p.reasons = true
		p.say(Note, "answer", "no text after %v: the model uses all %d tokens for reasoning", took, outputTokens)
	case a.Text == "":
		p.say(Problem, "answer", "empty after %v", took)
	default:
		p.say(OK, "answer", "complete after %v", took)
	}
	p.parameters()
	p.usage(q, a)
	return true
}

// output returns the output limit of a question.
func (p *probe) output() int {
	if p.reasons {
		return reasoningTokens
	}
	return outputTokens
}

// parameters reports which parameters the target refuses.
func (p *probe) parameters() {
	if len(p.edits) > 0 {
		var list []string
		for _, ed := range p.edits {
			list = append(list, ed.String())
		}
		p.say(Note, "parameters", "the target %s: the gateway adapts requests after the first refusal", strings.Join(list, ", "))
	}
	if len(p.refused) > 0 {
		p.say(Note, "parameters", "refused, and the gateway does not remove it: %s", strings.Join(p.refused, ", "))
	}
	if len(p.edits)+len(p.refused) == 0 {
		p.say(OK, "parameters", "all that agents usually send are accepted")
	}
}

// usage compares the prompt tokens that the target reports with those that were sent.
func (p *probe) usage(q map[string]any, a *answer) {
	n := p.tokens(q)
	switch {
	case a.Usage.Input == 0:
		p.say(Note, "usage", "not reported: tokens and costs are estimated")
	case a.Usage.Input*5 < n*2 && !p.recalled:
		p.truncatedTo = a.Usage.Input
		p.say(Problem, "window", "the target silently read only %d of about %d tokens: it truncates every prompt", a.Usage.Input, n)
	default:
		p.say(OK, "usage", "the target reports %d tokens, about %d were sent", a.Usage.Input, n)
	}
}

// tokens counts the tokens of a question.
func (p *probe) tokens(q map[string]any) int {
	raw, err := p.body(q, "", "")
	if err != nil {
		return 0
	}
	b, err := transcript.Parse(raw, p.wire().format, transcript.Limits{})
	if err != nil {
		return 0
	}
	return count.NewMeter().Measure(b, p.target.Model).Total
}

// stream tests a streamed answer, which continuation uses later.
func (p *probe) stream(ctx context.Context) {
	q := p.question("", numbersPrompt, p.output(), map[string]any{"temperature": 0, "stream": true}, p.wire().streamed)
	a := p.ask(ctx, q)
	switch {
	case a.skipped:
		p.say(Unknown, "stream", "%s", a.reason())
	case a.failure != nil && a.pieces > 0:
		p.say(Problem, "stream", "broken after %s of text: %s", plural(a.pieces, "piece"), a.reason())
	case a.failure != nil:
		p.say(Problem, "stream", "%s", a.reason())
	case a.body != nil:
		p.say(Problem, "stream", "the answer is not a stream, although the request asks for one")
	default:
		p.streams, p.partial, p.partialQuestion = true, a, q
		p.reasons = p.reasons || a.Reasons
		switch total := a.took.Round(time.Millisecond); {
		case a.pieces == 0:
			p.say(Note, "stream", "complete, but without text")
		case a.pieces == 1 || a.took > time.Second && a.first > a.took*9/10:
			p.say(Note, "stream", "complete, but all text arrives at once after %v: something on the way buffers it, so a cut loses everything", total)
		default:
			p.say(OK, "stream", "%s of text, the first after %v, the end after %v", plural(a.pieces, "piece"), a.first.Round(time.Millisecond), total)
		}
		if a.Finish == recovery.FinishNone {
			p.say(Note, "stream", "no finish reason: the gateway adds one once it has learned that the target never sends any")
		}
		if a.Usage.Input == 0 {
			p.say(Note, "stream", "no usage: the costs of streams are estimated")
		}
	}
}

// tools offers one tool and asks for two calls.
func (p *probe) tools(ctx context.Context) {
	schema := map[string]any{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}, "required": []string{"city"}}
	before := len(p.refused)
	a := p.ask(ctx, p.question("", toolPrompt, p.output(), map[string]any{"temperature": 0, "stream": true}, p.wire().tool(toolName, "The current weather of one city.", schema)))
	if len(p.refused) > before {
		p.say(Note, "tools", "refused, and the gateway does not remove it: %s", strings.Join(p.refused[before:], ", "))
	}
	if a.skipped {
		p.say(Unknown, "tools", "%s", a.reason())
		return
	}
	calls, odd := a.Calls()
	broken := slices.ContainsFunc(calls, func(c recovery.DraftCall) bool { return !usable(c) })
	switch {
	case a.failure != nil && a.failure.Spec.Class.Retryable():
		p.say(Unknown, "tools", "temporarily unavailable: %s", a.reason())
	case a.failure != nil:
		p.say(Problem, "tools", "agents cannot use this target: %s", a.reason())
	case len(calls) == 0 && strings.Contains(a.Text, toolName):
		p.say(Note, "tools", "the call is in the text: the gateway extracts it if it knows the dialect; check that the server parses tool calls")
	case len(calls) == 0 && a.Finish == recovery.FinishLength:
		p.say(Unknown, "tools", "no tool call within %d tokens", p.output())
	case len(calls) == 0:
		p.say(Note, "tools", "the model answers with text instead of a tool call")
	case broken:
		p.say(Note, "tools", "%s, not all with usable arguments: the gateway repairs them or asks the model again", plural(len(calls), "call"))
	case odd:
		p.say(OK, "tools", "%s in one answer, in a form that clients may misread: the gateway corrects it", plural(len(calls), "call"))
	case len(calls) == 1:
		p.say(OK, "tools", "1 call with usable arguments, although the prompt asks for two: no parallel calls")
	default:
		p.say(OK, "tools", "%s in one answer, with usable arguments", plural(len(calls), "call"))
	}
}

// continuation tests which kind of prefill makes the target continue a cut answer. It sends the
// first half of the answer that the target has just streamed.
func (p *probe) continuation(ctx context.Context) {
	set := p.cfg.Prefills()
	known := set
	if known == recovery.PrefillAuto {
		known = upstream.ServerPrefill(p.serverHeader, p.modelList)
	}
	if p.partial == nil || utf8.RuneCountInString(p.partial.Text) < 30 {
		p.say(Unknown, "prefill", "the streamed answer is too short to continue")
		return
	}
	cut := len(p.partial.Text) / 2
	cut = max(strings.LastIndexAny(p.partial.Text[:cut], " \n"), len(p.partial.Text)/4)
	given := recovery.Head(p.partial.Text, cut)
	rest := p.partial.Text[len(given):]
	last := ""
	for _, way := range p.prefillOrder(known) {
		body, err := p.body(p.partialQuestion, given, way)
		if err != nil {
			continue
		}
		a := p.post(ctx, body, 0)
		if a.skipped && last != "" {
			break // the most likely ones are tested
		}
		if a.skipped || a.class().Retryable() {
			p.say(Unknown, "prefill", "%s", a.reason())
			return
		}
		if last = continuationFault(a, given, rest); last != "" && !(last == otherText && way == known) {
			continue
		}
		p.prefill = way
		switch {
		case way == set:
			p.say(OK, "prefill", "the target continues a given beginning (prefill: %s, as configured or known)", way)
		case way == known:
			p.say(OK, "prefill", "the target continues a given beginning (%s); prefill: auto detects this after the first cut", way)
		default:
			p.say(Note, "prefill", "the target continues a given beginning: set prefill: %s", way)
		}
		return
	}
	p.prefill = recovery.PrefillNone
	if set != recovery.PrefillNone && set != recovery.PrefillAuto {
		p.say(Problem, "prefill", "prefill: %s is configured or known, but the target does not continue: %s", set, last)
		return
	}
	p.say(Note, "prefill", "the target does not continue a given beginning (%s)", last)
}

// prefillOrder returns the kinds of prefill to test, the most likely first.
func (p *probe) prefillOrder(known recovery.Prefill) []recovery.Prefill {
	all := p.wire().prefills
	if p.cfg.Prefills() == recovery.PrefillNone {
		return all[:1]
	}
	if i := slices.Index(all, known); i >= 0 {
		return append([]recovery.Prefill{known}, slices.Delete(slices.Clone(all), i, i+1)...)
	}
	return all
}

// continuationFault returns "" if an answer continues the text given with rest, or else what it does instead.
// Some servers (llama.cpp) repeat the beginning in the first piece; the gateway removes it.
func continuationFault(a *answer, given, rest string) string {
	const sure = 12 // equal bytes that rule out a coincidence
	got := strings.TrimSpace(a.Text)
	begins := func(want string) bool {
		want = strings.TrimSpace(want)
		n := min(sure, len(want))
		return len(got) >= n && strings.EqualFold(got[:n], want[:n])
	}
	switch {
	case a.failure != nil:
		return a.reason()
	case got == "":
		return "its answer is empty"
	case begins(rest), strings.HasPrefix(a.opening, given) && a.pieces > 1:
		return ""
	case begins(given):
		return "it starts over"
	}
	return otherText
}

// otherText describes an answer that neither continues nor starts over. For a server that is known to
// continue it proves nothing: a beginning that is split into other tokens may lead to other text.
const otherText = "it writes something else"

// limits requests more output than any model allows: a refusal names the limit and costs nothing.
// If the target accepts it, limits reads only a few pieces of the answer.
func (p *probe) limits(ctx context.Context) {
	if p.statedWindow == 0 {
		q := p.question("", "Answer with the one word: ready.", hugeLimit, map[string]any{"temperature": 0, "stream": true})
		body, err := p.body(q, "", "")
		if err != nil {
			return
		}
		a := p.post(ctx, body, maxPieces)
		switch f := a.failure; {
		case f == nil || a.class().Retryable():
		case f.Facts.LimitTokens > 0:
			p.statedWindow, p.windowSource = f.Facts.LimitTokens, "its refusal of a huge output limit"
		case f.Facts.MaxOutputLimit > 0:
			p.say(OK, "output", "at most %s tokens per answer: the gateway lowers a larger limit after the first refusal", number(f.Facts.MaxOutputLimit))
		default:
			p.say(Note, "output", "a huge output limit is refused: %s", a.reason())
		}
	}
	switch {
	case p.statedWindow == 0 && p.configuredWindow > 0:
		p.say(OK, "window", "%s tokens are configured; the target does not state its window", number(p.configuredWindow))
	case p.statedWindow > 0 && p.configuredWindow > p.statedWindow:
		p.say(Note, "window", "%s tokens are configured, but according to %s the window is %s: the gateway shortens longer prompts only after a refusal",
			number(p.configuredWindow), p.windowSource, number(p.statedWindow))
	case p.statedWindow > 0:
		p.say(OK, "window", "%s tokens, according to %s", number(p.statedWindow), p.windowSource)
	}
}

// clock compares the server's clock with this machine's.
func (p *probe) clock(a *answer) {
	switch skew := a.skew.Abs().Round(time.Second); {
	case !a.dated && p.up.Local(): // llama.cpp sends no Date; without dates the clock does not matter
	case !a.dated:
		p.say(Unknown, "clock", "the answer has no date")
	case skew > time.Minute:
		p.say(Problem, "clock", "this machine's clock differs from the server's by %v: waits until a given time are wrong, and signatures fail", skew)
	default:
		p.say(OK, "clock", "within %v of the server's", max(skew, time.Second))
	}
}
