package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
)

const (
	// mostTokens is the largest prompt that --window sends, in tokens.
	mostTokens = 200_000
	// share of what a window is said to be that is sent, in percent.
	windowShare = 75
)

// windowSizes are the prompts for a target that tells no window: about twice what servers at home
// usually read (4,096, 8,192 and 16,384 tokens).
var windowSizes = []int{8_000, 18_000, 36_000}

// fullWindow sends long prompts, if the user agrees to their price: does the target read all of them?
func (p *probe) fullWindow(ctx context.Context) {
	sizes := windowSizes
	if n := max(p.told, p.window); n > 0 {
		sizes = []int{min(n*windowShare/100, mostTokens)}
	}
	if !p.Ask(p.price(sizes)) {
		p.say(Unknown, "window", "not tried: the price was not agreed to")
		return
	}
	p.extra = len(sizes)
	for _, size := range sizes {
		q := p.long(size)
		n := p.tokens(q)
		a := p.ask(ctx, q)
		switch class := a.class(); {
		case class == recovery.ContextLengthExceeded || class == recovery.PayloadTooLarge:
			if p.told == 0 {
				p.told, p.source = a.failure.Facts.LimitTokens, "its refusal of a long prompt"
			}
			p.say(OK, "window", "a prompt of about %s tokens is refused openly: %s", number(n), a.reason())
			return
		case class != "" || a.spent:
			p.say(Unknown, "window", "a prompt of about %s tokens: %s", number(n), a.reason())
			return
		case truncated(a, n, p.recalled):
			p.cuts = a.prompt
			p.say(Problem, "window", "of about %s tokens the target read %s, without a word: agents would forget their task", number(n), number(a.prompt))
			return
		case strings.Contains(a.text, word):
			p.say(OK, "window", "about %s tokens are read to their beginning", number(n))
		case p.recalled && a.text != "":
			p.say(Note, "window", "about %s tokens are taken, and the model does not know what stood at their beginning", number(n))
			return
		default:
			p.say(Note, "window", "about %s tokens are taken; whether all are read is not to be seen", number(n))
		}
	}
}

// truncated reports whether a target has read only a part of about n tokens: it says so, or it says
// that it has read somewhat less and does not know what stood at the beginning. Vocabularies
// differ by less.
func truncated(a *answer, n int, recalled bool) bool {
	forgot := recalled && a.text != "" && !strings.Contains(a.text, word)
	return a.prompt > 0 && (a.prompt*10 < n*6 || forgot && a.prompt*10 < n*9)
}

// price says what prompts of these sizes cost at most, as a question.
func (p *probe) price(sizes []int) string {
	sum := 0
	for _, n := range sizes {
		sum += n
	}
	money := "; there is no price for it in the configuration (prices)"
	if v := p.Config.Proxy.Prices.Spent(recovery.Usage{Input: sum, Output: fewTokens * len(sizes)}, p.target.Model); v > 0 {
		money = fmt.Sprintf(", %.4f in the currency of prices", v)
	}
	return fmt.Sprintf("--window sends up to %s with about %s tokens together to %s%s. Go on?", plural(len(sizes), "request"), number(sum), p.target, money)
}

// long is a conversation of about so many tokens, whose first words are asked for at its end.
func (p *probe) long(size int) map[string]any {
	const perLine, lines = 18, 60 // tokens of a line, lines of a turn
	turn := func(role, text string) map[string]any { return map[string]any{"role": role, "content": text} }
	var list []any
	var b strings.Builder
	b.WriteString(opening + " A long list follows; you need not answer it.\n")
	for n := 1; n*perLine < size; n++ {
		fmt.Fprintf(&b, "Line %d: the harbour keeps its lamps lit until the last boat is home.\n", n)
		if n%lines == 0 {
			list = append(list, turn("user", b.String()), turn("assistant", "Noted."))
			b.Reset()
		}
	}
	list = append(list, turn("user", b.String()+recall))
	return p.question("", "", fewTokens, map[string]any{"messages": list, "temperature": 0})
}
