package fit

import (
	"cmp"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/fit/count"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// draft is the state of fitting one exchange, from Prepare to Learn. It belongs to the
// goroutine that owns the exchange.
type draft struct {
	fitter        *Fitter
	x             *recovery.Exchange
	session       *session // as it was found, nil if there was none
	storeRead     bool     // the store was read for it
	cachedPlace   *place   // set by place
	history       *history
	revision      *revision        // the history with the edits so far
	body          *transcript.Body // built from revision, nil for the client's own
	outgoing      *transcript.Body // what goes upstream: body, perhaps with a lower output limit
	sticky        bool             // no new edits, only those of the session
	promptStated  bool             // the refusal stated the size of the prompt
	tiers         []string         // all new edits, by tier
	fitCalls      int              // calls of Fit
	spent         int              // input tokens of summaries
	cost          recovery.Usage   // of summaries, as reported by the upstream; not yet in a Fitted
	fittedWindow  int              // the window of the last fitting
	learnedWindow int              // the window to store with the session, and its target
	learnedTarget recovery.Target
	quoted        bool // the refusal may only quote the request, or is about one account: nothing is learned for others
	guessedPrompt int  // the prompt size, in tokens, that a guessed window is made from
	scale         ratio
	next          *session // the session with the new edits, nil without any
	awaitsAnswer  bool     // next is set when the upstream has answered
}

// currentBody returns the edited history, or the client's body without edits.
func (d *draft) currentBody() *transcript.Body {
	if d.body != nil {
		return d.body
	}
	return d.x.Body
}

// limitOutput sets outgoing to the current body, with the output limit lowered to tokens. It
// returns false if the limit was not lowered: it is low enough, or there is none.
func (d *draft) limitOutput(tokens int) bool {
	d.outgoing = d.currentBody()
	field, now, ok := d.outgoing.OutputLimit()
	if !ok || now <= tokens {
		return false
	}
	lowered, err := d.outgoing.Edit().LowerOutput(field, tokens).Body()
	if err != nil {
		return false
	}
	d.outgoing = lowered
	return true
}

// fitted returns the outgoing body with its report for events.
func (d *draft) fitted(scale ratio) *recovery.Fitted {
	cost := d.cost
	d.cost = recovery.Usage{} // reported once
	return &recovery.Fitted{Body: d.outgoing, Sticky: d.sticky, Compression: recovery.Compression{
		Before: scale.upstream(d.revision.counts.Total), After: scale.upstream(d.revision.total),
		Tiers: d.tiers, Steps: d.revision.steps(), BytesBefore: len(d.x.Body.Raw()), BytesAfter: len(d.outgoing.Raw()),
		Extra: cost,
	}}
}

// ratio converts between our counts and the upstream's. Both are positive: every count includes the priming of the answer.
type ratio struct{ reported, counted int }

// upstream converts a count of ours into the upstream's tokens.
func (r ratio) upstream(raw int) int {
	return int(float64(raw) * float64(r.reported) / float64(r.counted))
}

// local converts the upstream's tokens into our count.
func (r ratio) local(tokens int) int {
	return int(float64(tokens) * float64(r.counted) / float64(r.reported))
}

func (r ratio) permille() uint32 { return uint32(min(max(r.upstream(1_000_000)/1000, 100), 10_000)) }

// scaleFor returns the best known ratio for a body: by the session's last report, else by
// its last refusal, else by the model's calibration.
func (f *Fitter) scaleFor(model string, s *session, b *transcript.Body) ratio {
	raw := f.parts.Meter.Measure(b, model).Total
	s = cmp.Or(s, &session{})
	tokens, basis := f.parts.Meter.Estimate(b, model, s.Anchor)
	if basis < count.BasisSession && s.Scale > 0 {
		return ratio{int(s.Scale), 1000}
	}
	return ratio{tokens, raw}
}
