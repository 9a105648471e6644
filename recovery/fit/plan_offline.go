package fit

import (
	"context"
	"unicode/utf8"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Report says what an offline fitting did. Sizes are of the request body.
type Report struct {
	TokensBefore int      `json:"tokens_before"`
	TokensAfter  int      `json:"tokens_after"`
	Tiers        []string `json:"tiers"`
	Steps        int      `json:"steps_compressed"` // messages that were compressed
	CharsBefore  int      `json:"original_chars"`
	CharsAfter   int      `json:"compressed_chars"`
}

// Compress fits a request to a window of limit tokens, of which reserve are kept
// for the answer, without a summariser and without a session. A request that
// fits is returned as it is; ok is false where it cannot be made to fit.
func Compress(cfg Config, b *transcript.Body, w Weigher, model string, limit, reserve int) (out *transcript.Body, r Report, ok bool) {
	chars := utf8.RuneCount(b.Raw())
	total := w.Measure(b, model).Total
	r = Report{TokensBefore: total, TokensAfter: total, Tiers: []string{}, CharsBefore: chars, CharsAfter: chars}
	budget := limit - reserve
	if total <= budget {
		return b, r, true
	}
	if budget <= 0 {
		return b, r, false
	}
	v := newView(b, nil)
	v.keyed(newKeys(nil))
	k := newWork(v, w, model)
	p := &planner{cfg: &cfg, goal: goal{budget: budget, target: int(cfg.TargetShare * float64(budget)), limit: budget - 1}}
	out, ok = p.run(context.Background(), k)
	if !ok || check(b, out, v.reader) != nil {
		return b, r, false
	}
	r.TokensAfter, r.Tiers, r.Steps, r.CharsAfter = k.total, p.names, k.steps(), utf8.RuneCount(out.Raw())
	return out, r, true
}
