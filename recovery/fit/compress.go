package fit

import (
	"context"
	"unicode/utf8"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Report describes an offline fitting. Sizes are of the request body.
type Report struct {
	TokensBefore int      `json:"tokens_before"`
	TokensAfter  int      `json:"tokens_after"`
	Tiers        []string `json:"tiers"`
	Steps        int      `json:"steps_compressed"` // messages that were compressed
	CharsBefore  int      `json:"original_chars"`
	CharsAfter   int      `json:"compressed_chars"`
}

// Compress fits a request to a window of limit tokens, of which reserve are kept for the
// answer, without a summariser and without a session. A negative reserve stands for the
// request's own output limit, at most a quarter of the window; then the output limit is
// lowered to what is left. A request that fits is returned unchanged; ok is false if it
// cannot be made to fit.
func Compress(cfg Config, b *transcript.Body, w Counter, model string, limit, reserve int) (out *transcript.Body, r Report, ok bool) {
	chars := utf8.RuneCount(b.Raw())
	total := w.Measure(b, model).Total
	r = Report{TokensBefore: total, TokensAfter: total, Tiers: []string{}, CharsBefore: chars, CharsAfter: chars}
	free := reserve < 0
	if free {
		reserve = cappedReserve(b, limit)
	}
	d := &draft{x: &recovery.Exchange{Request: recovery.Request{Body: b}}}
	if budget := limit - reserve; total > budget {
		if budget <= 0 {
			return b, r, false
		}
		v := newHistory(b, newParseCache(), nil)
		k, plain := newRevision(v, w, model), newRevision(v, w, model)
		// A request that barely fits overflows with the next turn, so the limit is lower.
		p := &shrinker{cfg: &cfg, goal: cfg.goalFor(budget, budget*85/100)}
		if !p.run(context.Background(), k) {
			return b, r, false
		}
		body, ok := k.buildChecked()
		if !ok {
			return b, r, false
		}
		d.body = body
		r.TokensAfter, r.Tiers, r.Steps = k.total, k.tiers(plain), k.steps()
	}
	if d.outgoing = d.currentBody(); free && d.limitOutput(max(minOutput, limit-r.TokensAfter)) {
		r.Tiers = append(r.Tiers, TierOutput)
	}
	r.CharsAfter = utf8.RuneCount(d.outgoing.Raw())
	return d.outgoing, r, true
}
