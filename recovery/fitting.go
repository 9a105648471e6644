package recovery

import (
	"context"
	"time"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Fitted is a request with a shortened history, which goes upstream in place of the
// client's bytes.
type Fitted struct {
	Body *transcript.Body
	Compression
	Sticky bool // remembered edits alone produced it
}

// Compression describes for events how a history was shortened. It is immutable.
type Compression struct {
	Tiers       []string // in the order of application
	Steps       int      // messages that were compressed
	Before      int      // tokens, estimated or exact
	After       int
	BytesBefore int
	BytesAfter  int
	Extra       Usage // of the extra calls for summaries
}

// Fitting is the part of package fit that runs after its stage, which sets it. The goroutine that owns the exchange
// calls it.
type Fitting interface {
	// Fit shortens the history after f, a refusal by candidate c for the request's length or bytes. It may make
	// extra calls through the exchange's Complete. It returns nil if it cannot help.
	Fit(ctx context.Context, c *Choice, f *Failure) *Fitted
	// Commit keeps the edits that the client's next request needs. It is called before an answer reaches the client,
	// and never blocks.
	Commit()
	// Learn records the upstream's token count of a successful answer, and remembers the edits. It never blocks.
	Learn(c *Choice, u Usage)
}

// Completer asks a model once for a text: a summary, a plan. It respects the targets' breakers and cool-downs, and ends
// with the caller's ctx.
type Completer interface {
	Complete(ctx context.Context, p Prompt) (text string, u Usage, err error)
}

// Detacher is a Completer that can return another one for background work: it outlives the exchange, does not read the
// request, and charges its usage itself. Safe for concurrent use.
type Detacher interface {
	Detach() Completer
}

// Prompt is an extra call to a model.
type Prompt struct {
	System    string
	User      string
	MaxOutput int    // tokens
	Target    Target // upstream and model
	// Form is the form of the answer; the zero Form is text.
	Form Form
}

// Form requests an answer in JSON. Options that the target refuses are left out.
type Form struct {
	Name        string
	Schema      []byte  // JSON schema
	Temperature float64 // not sent to a model that reasons
	// Reasoning replaces MaxOutput for a model that reasons, in tokens. Such a model gets its lowest reasoning effort.
	Reasoning int
}

// Spend charges an extra call in the background to the exchange; tokens is its estimated input.
func (x *Exchange) Spend(tokens int) {
	own := max(1, x.Body.EstimateTokens())
	x.extra += (tokens + own/2) / own // in multiples of the request's input, rounded
}

// Spendable returns the rest of the exchange's budget for extra calls, in multiples of its input.
func (x *Exchange) Spendable() int {
	if x.config == nil {
		return maxExtraInput
	}
	return max(0, x.config.ExtraInput-x.extra)
}

// MayComplete reports whether the budget allows another extra call.
func (x *Exchange) MayComplete() bool {
	return x.Completer != nil && (x.config == nil || x.extra < x.config.ExtraInput)
}

// maxCompleting limits how long one request waits for extra calls.
const maxCompleting = 2 * time.Minute

// Complete makes an extra call within the time left for such calls.
func (x *Exchange) Complete(ctx context.Context, p Prompt) (string, Usage, error) {
	began := time.Now()
	until := began.Add(maxCompleting - x.completing)
	if !x.deadline.IsZero() && x.deadline.Before(until) {
		until = x.deadline
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	defer func() { x.completing += time.Since(began) }()
	return x.Completer.Complete(ctx, p)
}

// applyFitted charges and reports the request that the stages have shortened before the first attempt. Outside act mode
// it is reported only.
func (r *run) applyFitted() {
	x := r.x
	fitted := x.Fitted
	if fitted == nil {
		return
	}
	if x.Mode != ModeAct {
		x.Fitted = nil
		r.compressed(fitted, "known")
		return
	}
	x.Did("fit")
	x.pay(fitted)
	if !fitted.Sticky {
		r.compressed(fitted, "known")
	}
}

// fit shortens the history after a refusal.
func (r *run) fit(ctx context.Context, a Action, f *Failure) bool {
	x := r.x
	var fitted *Fitted
	if x.Fitting != nil {
		r.guard("fitter", func() { fitted = x.Fitting.Fit(ctx, &x.Candidates[a.Target], f) })
	}
	if fitted == nil {
		return false
	}
	x.Fitted = fitted
	x.pay(fitted)
	for i := range x.Candidates {
		c := &x.Candidates[i]
		c.Small = c.Window > 0 && c.Window < fitted.After
	}
	r.compressed(fitted, string(f.Class()))
	return true
}

// pay records the extra calls of fitting.
func (x *Exchange) pay(f *Fitted) {
	x.spent = x.spent.Add(f.Extra)
	x.extra += (f.Extra.Input + f.Before/2) / max(1, f.Before) // in units of the request's input, rounded
}

func (r *run) compressed(c *Fitted, reason string) {
	ev := r.event(EventCompressed, nil)
	ev.Target = r.x.Candidates[0].Target
	ev.Cause, ev.Observed, ev.Compressed = reason, r.x.Mode != ModeAct, &c.Compression
	r.Observer.Observe(ev)
}
