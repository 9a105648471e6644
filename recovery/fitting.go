package recovery

import (
	"context"
	"time"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Fitted is a request with a smaller history: the copy that goes upstream in
// place of the client's bytes.
type Fitted struct {
	Body *transcript.Body
	Compression
	Sticky bool // made by remembered edits only
}

// Compression is what fitting did, for events. It is never changed afterwards.
type Compression struct {
	Tiers       []string // in the order of application
	Steps       int      // messages that were compressed
	Before      int      // tokens, estimated or exact
	After       int
	BytesBefore int
	BytesAfter  int
	Extra       Usage // of the extra calls that it took
}

// Fitting is what the fit step does for one exchange after its stage, which sets it.
// The goroutine that owns the exchange calls it. Where it cannot help it returns nil.
type Fitting interface {
	// Fit makes the history smaller after f, a refusal by candidate c for its length
	// or its bytes. It may make extra calls through the exchange's Complete.
	Fit(ctx context.Context, c *Choice, f *Failure) *Fitted
	// Commit is called before an answer reaches the client, whose next request may
	// then come at once, to any replica: what that needs to be rewritten in the
	// same way is stored when it returns, or the request's time with the store is
	// over. The attempt has usually taken longer than that.
	Commit(ctx context.Context)
	// Settle learns from an answer: what the upstream counted, and that the edits
	// are to be kept. It never blocks.
	Settle(c *Choice, u Usage)
}

// Completer asks a model for a text, once: a summary, a plan. It goes through the
// targets' breakers and cool-downs, and is bounded by the caller's ctx.
type Completer interface {
	Complete(ctx context.Context, p Prompt) (text string, u Usage, err error)
}

// Detacher is a Completer from which one can be made that outlives its exchange: it
// reads nothing of the request any more, and what it uses is charged by itself.
// Safe for concurrent use.
type Detacher interface {
	Detach() Completer
}

// Prompt is an extra call to a model.
type Prompt struct {
	System    string
	User      string
	MaxOutput int    // tokens
	Target    Target // where to ask: an upstream and a model
	// Form is what the answer must look like; the zero Form is text.
	Form Form
}

// Form asks for an answer in JSON. What of it the target refuses is left out.
type Form struct {
	Name        string
	Schema      []byte  // JSON schema
	Temperature float64 // of sampling; a model that reasons gets none
	// Reasoning is the output limit in tokens for a model that reasons, instead of
	// MaxOutput; it is asked for its lowest effort.
	Reasoning int
}

// Spend books an extra call that is made off the client's sight, of about so many
// tokens of input.
func (x *Exchange) Spend(tokens int) {
	own := max(1, x.Body.EstimateTokens())
	x.extra += (tokens + own/2) / own // in units of the request's input, rounded
}

// Spendable is what is left of the exchange's budget for extra calls, in units of its input.
func (x *Exchange) Spendable() int {
	if x.config == nil {
		return maxExtraInput
	}
	return max(0, x.config.ExtraInput-x.extra)
}

// MayComplete reports whether anything is left of the exchange's budget for extra calls.
func (x *Exchange) MayComplete() bool {
	return x.Completer != nil && (x.config == nil || x.extra < x.config.ExtraInput)
}

// maxCompleting bounds how long one request waits for extra calls.
const maxCompleting = 2 * time.Minute

// Complete makes an extra call within the time that is left for them.
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

// known puts in force what the stages fitted before the first attempt.
func (r *run) known() {
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

// fit makes the history smaller after a refusal.
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

// pay books the extra calls that fitting took.
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
