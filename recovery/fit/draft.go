package fit

import (
	"cmp"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/fit/count"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// draft is what the fitter does to one exchange, from Prepare to Settle. The
// goroutine that owns the exchange owns it.
type draft struct {
	fitter  *Fitter
	x       *recovery.Exchange
	session *session // as it was remembered, nil if nothing was
	asked   bool     // the store was asked for it
	at      *place   // see place, nil until that is needed
	history *history
	work    *work            // the edits so far
	body    *transcript.Body // the history with those edits, nil for the client's own
	out     *transcript.Body // what goes upstream: body, with the answer's limit as it was lowered
	sticky  bool             // there are no edits but those that were remembered
	sure    bool             // the refusal stated the size of the prompt
	names   []string         // of the tiers
	fits    int              // how often Fit was asked
	spent   int              // tokens spent on summaries
	cost    recovery.Usage   // of summaries, as reported and not yet told
	window  int              // that was fitted to
	learned int              // the window that a refusal told, and of which target
	target  recovery.Target
	quoted  bool // the refusal said no more than the request itself says: nothing is learned from it
	guessed int  // the prompt that fits, where it did not say how large the window is
	scale   ratio
	next    *session // the session with the edits made now, nil without any
	later   bool     // these are kept once the upstream has answered
}

// sent is the history as it goes upstream.
func (d *draft) sent() *transcript.Body {
	if d.body != nil {
		return d.body
	}
	return d.x.Body
}

// limit makes what goes upstream of the history, with a limit of the answer of at
// most so many tokens; false where it had that already.
func (d *draft) limit(tokens int) bool {
	d.out = d.sent()
	field, now, ok := d.out.OutputLimit()
	if !ok || now <= tokens {
		return false
	}
	lowered, err := d.out.Edit().SetInt(field, tokens).Body()
	if err != nil {
		return false
	}
	d.out = lowered
	return true
}

// fitted describes what goes upstream.
func (d *draft) fitted(scale ratio) *recovery.Fitted {
	cost := d.cost
	d.cost = recovery.Usage{} // told once
	return &recovery.Fitted{Body: d.out, Sticky: d.sticky, Compression: recovery.Compression{
		Before: scale.of(d.work.counts.Total), After: scale.of(d.work.total),
		Tiers: d.names, Steps: d.work.steps(), BytesBefore: len(d.x.Body.Raw()), BytesAfter: len(d.out.Raw()),
		Extra: cost,
	}}
}

// ratio converts between what is counted and what upstreams count.
type ratio struct{ tokens, raw0 int }

func (r ratio) of(raw int) int {
	if r.raw0 <= 0 || r.tokens <= 0 {
		return raw
	}
	return int(float64(raw) * float64(r.tokens) / float64(r.raw0))
}

func (r ratio) raw(tokens int) int {
	if r.raw0 <= 0 || r.tokens <= 0 {
		return tokens
	}
	return int(float64(tokens) * float64(r.raw0) / float64(r.tokens))
}

func (r ratio) permille() uint32 { return uint32(min(max(r.of(1_000_000)/1000, 100), 10_000)) }

// tokensFor is how a body's count converts, by the best that is known.
func (f *Fitter) tokensFor(model string, s *session, b *transcript.Body) ratio {
	raw := f.parts.Meter.Measure(b, model).Total
	s = cmp.Or(s, &session{})
	tokens, basis := f.parts.Meter.Estimate(b, model, s.Anchor)
	if basis < count.BasisSession && s.Scale > 0 {
		return ratio{int(s.Scale), 1000}
	}
	return ratio{tokens, raw}
}
