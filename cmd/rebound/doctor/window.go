package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
)

const (
	// maxPrompt is the largest prompt that --window sends, in tokens.
	maxPrompt = 200_000
	// windowShare is the size of the prompt in percent of a known window.
	windowShare = 75
)

// windowSizes are the prompt sizes, in tokens, for a target with an unknown window: about twice the
// usual windows of local servers (4,096, 8,192 and 16,384 tokens).
var windowSizes = []int{8_000, 18_000, 36_000}

// fullWindow tests whether the target reads long prompts completely, if the user accepts the cost.
func (p *probe) fullWindow(ctx context.Context) {
	sizes := windowSizes
	if n := max(p.statedWindow, p.configuredWindow); n > 0 {
		sizes = []int{min(n*windowShare/100, maxPrompt)}
	}
	if !p.Ask(p.costQuestion(sizes)) {
		p.say(Unknown, "window", "not tested: the cost was not accepted")
		return
	}
	p.extra = len(sizes)
	for _, size := range sizes {
		q := p.longQuestion(size)
		n := p.tokens(q)
		a := p.ask(ctx, q)
		switch class := a.class(); {
		case class == recovery.ContextLengthExceeded || class == recovery.PayloadTooLarge:
			if p.statedWindow == 0 {
				p.statedWindow, p.windowSource = a.failure.Facts.LimitTokens, "its refusal of a long prompt"
			}
			p.say(OK, "window", "the target refuses a prompt of about %s tokens with an error: %s", number(n), a.reason())
			return
		case class != "" || a.skipped:
			p.say(Unknown, "window", "a prompt of about %s tokens: %s", number(n), a.reason())
			return
		case truncated(a, n, p.recalled):
			p.truncatedTo = a.Usage.Input
			p.say(Problem, "window", "of about %s tokens the target silently read only %s: agents would forget their task", number(n), number(a.Usage.Input))
			return
		case strings.Contains(a.Text, codeWord):
			p.say(OK, "window", "the target reads all of about %s tokens", number(n))
		case p.recalled && a.Text != "":
			p.say(Note, "window", "about %s tokens are accepted, but the model does not recall their beginning", number(n))
			return
		default:
			p.say(Note, "window", "about %s tokens are accepted; whether all are read is unknown", number(n))
		}
	}
}

// truncated reports whether a target has read only a part of about n tokens: it reports below 60 %,
// or below 90 % and the model forgot the beginning. Counts of tokenizers differ by less.
func truncated(a *answer, n int, recalled bool) bool {
	forgot := recalled && a.Text != "" && !strings.Contains(a.Text, codeWord)
	return a.Usage.Input > 0 && (a.Usage.Input*10 < n*6 || forgot && a.Usage.Input*10 < n*9)
}

// costQuestion asks whether to send prompts of these sizes, with their maximum cost.
func (p *probe) costQuestion(sizes []int) string {
	sum := 0
	for _, n := range sizes {
		sum += n
	}
	money := "; the configuration has no price for it (prices)"
	if v := p.Config.Proxy.Prices.Spent(recovery.Usage{Input: sum, Output: outputTokens * len(sizes)}, p.target.Model); v > 0 {
		money = fmt.Sprintf(", for %.4f in the currency of prices", v)
	}
	return fmt.Sprintf("--window sends up to %s with about %s tokens in total to %s%s. Continue?", plural(len(sizes), "request"), number(sum), p.target, money)
}

// longQuestion returns a conversation of about size tokens, whose end asks for the code word at its beginning.
func (p *probe) longQuestion(size int) map[string]any {
	const perLine, lines = 18, 60 // tokens of a line, lines of a turn
	turn := func(role, text string) map[string]any { return map[string]any{"role": role, "content": text} }
	var list []any
	var b strings.Builder
	b.WriteString(codeWordPrompt + " A long list follows; you need not answer it.\n")
	for n := 1; n*perLine < size; n++ {
		fmt.Fprintf(&b, "Line %d: the harbour keeps its lamps lit until the last boat is home.\n", n)
		if n%lines == 0 {
			list = append(list, turn("user", b.String()), turn("assistant", "Noted."))
			b.Reset()
		}
	}
	list = append(list, turn("user", b.String()+recallPrompt))
	return p.question("", "", outputTokens, map[string]any{"messages": list, "temperature": 0})
}
