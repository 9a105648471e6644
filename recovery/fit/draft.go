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
	fitter        *Fitter
	x             *recovery.Exchange
	session       *session // as it was remembered, nil if nothing was
	storeRead     bool     // the store was asked for it
	cachedPlace   *place   // see place, nil until that is needed
	history       *history
	revision      *revision        // the edits so far
	body          *transcript.Body // the history with those edits, nil for the client's own
	outgoing      *transcript.Body // what goes upstream: body, with the answer's limit as it was lowered
	sticky        bool             // there are no edits but those that were remembered
	promptStated  bool             // the refusal stated the size of the prompt
	tiers         []string         // of the tiers
	fitCalls      int              // how often Fit was asked
	spent         int              // tokens spent on summaries
	cost          recovery.Usage   // of summaries, as reported and not yet told
	fittedWindow  int              // that was fitted to
	learnedWindow int              // the window that a refusal told, and of which target
	learnedTarget recovery.Target
	quoted        bool // the refusal said no more than the request itself says: nothing is learned from it
	guessedPrompt int  // the prompt that fits, where it did not say how large the window is
	scale         ratio
	next          *session // the session with the edits made now, nil without any
	awaitsAnswer  bool     // these are kept once the upstream has answered
}

// currentBody is the history as it goes upstream.
func (d *draft) currentBody() *transcript.Body {
	if d.body != nil {
		return d.body
	}
	return d.x.Body
}

// limitOutput makes what goes upstream of the history, with a limit of the answer of at
// most so many tokens; false where it had that already.
func (d *draft) limitOutput(tokens int) bool {
	d.outgoing = d.currentBody()
	field, now, ok := d.outgoing.OutputLimit()
	if !ok || now <= tokens {
		return false
	}
	lowered, err := d.outgoing.Edit().SetInt(field, tokens).Body()
	if err != nil {
		return false
	}
	d.outgoing = lowered
	return true
}

// fitted describes what goes upstream.
func (d *draft) fitted(scale ratio) *recovery.Fitted {
	cost := d.cost
	d.cost = recovery.Usage{} // told once
	return &recovery.Fitted{Body: d.outgoing, Sticky: d.sticky, Compression: recovery.Compression{
		Before: scale.upstream(d.revision.counts.Total), After: scale.upstream(d.revision.total),
		Tiers: d.tiers, Steps: d.revision.steps(), BytesBefore: len(d.x.Body.Raw()), BytesAfter: len(d.outgoing.Raw()),
		Extra: cost,
	}}
}

// ratio converts between what is counted and what upstreams count.
type ratio struct{ reported, counted int }

func (r ratio) upstream(raw int) int {
	if r.counted <= 0 || r.reported <= 0 {
		return raw
	}
	return int(float64(raw) * float64(r.reported) / float64(r.counted))
}

func (r ratio) local(tokens int) int {
	if r.counted <= 0 || r.reported <= 0 {
		return tokens
	}
	return int(float64(tokens) * float64(r.counted) / float64(r.reported))
}

func (r ratio) permille() uint32 { return uint32(min(max(r.upstream(1_000_000)/1000, 100), 10_000)) }

// scaleFor is how a body's count converts, by the best that is known.
func (f *Fitter) scaleFor(model string, s *session, b *transcript.Body) ratio {
	raw := f.parts.Meter.Measure(b, model).Total
	s = cmp.Or(s, &session{})
	tokens, basis := f.parts.Meter.Estimate(b, model, s.Anchor)
	if basis < count.BasisSession && s.Scale > 0 {
		return ratio{int(s.Scale), 1000}
	}
	return ratio{tokens, raw}
}
