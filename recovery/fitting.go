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

// Fitter makes requests fit their target's context window.
type Fitter interface {
	// Matters reports whether Prepare may have to do anything. It is cheap: most
	// requests are far below every limit.
	Matters(x *Exchange) bool
	// Prepare is asked before the first attempt. It returns a fitted copy where
	// the session already has edits, or where the count is sure to exceed a known
	// limit; nil where the client's bytes go as they are. Store trouble is nil.
	Prepare(ctx context.Context, x *Exchange) *Fitted
	// Fit makes x smaller after f, a context_length_exceeded of candidate c. It
	// may make extra calls through a Completer, within ctx. nil means that it
	// cannot: the failure stands.
	Fit(ctx context.Context, x *Exchange, c *Choice, f *Failure) *Fitted
	// Commit is called before an answer reaches the client, whose next request may
	// then come at once, to any replica: what that needs to be rewritten in the
	// same way is stored when it returns, or the request's time with the store is
	// over. The attempt has usually taken longer than that.
	Commit(ctx context.Context, x *Exchange)
	// Settle learns from an answer: what the upstream counted, and that the edits
	// of x are to be kept. It never blocks.
	Settle(x *Exchange, c *Choice, u Usage)
}

// Completer asks a model for a text, once: a summary. It goes through the
// targets' breakers and cool-downs, and is bounded by the caller's ctx.
type Completer interface {
	Complete(ctx context.Context, p Prompt) (text string, u Usage, err error)
}

// Prompt is an extra call to a model.
type Prompt struct {
	System    string
	User      string
	MaxOutput int    // tokens
	Target    Target // where to ask: an upstream and a model
}

// Conformer carries out the edits that a target needs beyond single fields: of
// the history, of tool schemas, of content parts. It is pure and safe for concurrent use.
type Conformer interface {
	// Conform adds to e what the edit changes in b; false where b needs nothing.
	Conform(b *transcript.Body, e *transcript.Edit, ed Edit) bool
}

// prepare makes the history smaller before the first attempt where the session
// or the target's known window demand it.
func (r *run) prepare(ctx context.Context) {
	x := r.x
	if r.Fitter == nil || x.Mode == ModeOff || x.Mode == ModeAnnotate {
		return
	}
	matters := false
	if !r.guard("fitter", func() { matters = r.Fitter.Matters(x) }) || !matters {
		return
	}
	var fitted *Fitted
	r.fitting(ctx, func(ctx context.Context) { fitted = r.Fitter.Prepare(ctx, x) })
	if fitted == nil {
		return
	}
	if x.Mode == ModeObserve {
		r.compressed(fitted, "known", true)
		return
	}
	x.Fitted = fitted
	x.act("fit")
	x.pay(fitted)
	if !fitted.Sticky {
		r.compressed(fitted, "known", false)
	}
}

// fit makes the history smaller after an overflow.
func (r *run) fit(ctx context.Context, a Action, f *Failure) bool {
	x := r.x
	if r.Fitter == nil {
		return false
	}
	var fitted *Fitted
	r.fitting(ctx, func(ctx context.Context) { fitted = r.Fitter.Fit(ctx, x, &x.Candidates[a.Target], f) })
	if fitted == nil {
		return false
	}
	x.Fitted = fitted
	x.pay(fitted)
	x.refits++
	for i := range x.Candidates {
		c := &x.Candidates[i]
		c.Small = c.Window > 0 && c.Window < fitted.After
	}
	r.compressed(fitted, string(f.Class()), false)
	return true
}

// maxFitting bounds how long one request waits for summaries.
const maxFitting = 2 * time.Minute

// fitting runs f, a part of the fitter, with the time that is left for it, and
// without a Completer where nothing is left for summaries.
func (r *run) fitting(ctx context.Context, f func(context.Context)) {
	x, began := r.x, time.Now()
	until := began.Add(maxFitting - r.fitted)
	if x.deadline.Before(until) {
		until = x.deadline
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer func() {
		cancel()
		r.fitted += time.Since(began)
	}()
	if x.extra >= r.Config.ExtraInput {
		defer func(c Completer) { x.Completer = c }(x.Completer)
		x.Completer = nil
	}
	r.guard("fitter", func() { f(ctx) })
}

// pay books the extra calls that fitting took.
func (x *Exchange) pay(f *Fitted) {
	if f.Extra == (Usage{}) {
		return
	}
	x.spent = x.spent.Add(f.Extra)
	x.extra += (f.Extra.Input + f.Before/2) / max(1, f.Before) // in units of the request's input, rounded
}

func (r *run) compressed(c *Fitted, reason string, observed bool) {
	ev := r.event(EventCompressed, nil)
	ev.Target = r.x.Candidates[0].Target
	ev.Cause, ev.Observed, ev.Compressed = reason, observed, &c.Compression
	r.Observer.Observe(ev)
}
