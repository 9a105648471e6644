package fit

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/fit/count"
	"github.com/rebound-llm/rebound/store"
)

// Parts are what a Fitter works with. Only Meter is required.
type Parts struct {
	Meter *count.Meter
	// Store keeps sessions for all replicas; nil keeps the recent ones in the
	// process only. A store of this process alone has nothing to add to that.
	Store Values
	// Secret is the client's credential, which seals what is stored; nil takes
	// the credential's label.
	Secret func(x *recovery.Exchange) []byte
	// Windows remember what refusals say of targets' context windows; nil
	// remembers it in the process only.
	Windows Windows
	// Truncated is told that a server read only a part of a prompt. It is called
	// off the request's path and must not block. May be nil.
	Truncated func(request, session string, t recovery.Target, counted, reported int)
}

// Windows remember the context windows that targets stated in a refusal. Safe
// for concurrent use; no I/O.
type Windows interface {
	// Window is 0 where nothing is known, or not any more.
	Window(t recovery.Target) int
	// Overflowed reports whether the target refused a request as too long lately.
	Overflowed(t recovery.Target) bool
	// LearnWindow remembers an overflow of a request, which is named by its id, and
	// the window if it was stated; 0 leaves what is known.
	LearnWindow(t recovery.Target, tokens int, request string)
}

// Fitter is the stage that makes requests fit their target. Safe for concurrent use; Close ends its goroutine.
type Fitter struct {
	cfg           atomic.Pointer[Config]
	parts         Parts
	memory        *memory
	windows       Windows
	byteLimits    *learnedLimits // how many bytes targets take, as refusals of this process showed
	hasByteLimits atomic.Bool    // bytes knows something
	watch         watch          // of servers of one's own that may truncate in silence
	parsed        *parseCache
}

var (
	_ recovery.Stage   = (*Fitter)(nil)
	_ recovery.Fitting = (*draft)(nil)
)

// New starts a fitter.
func New(cfg Config, p Parts) *Fitter {
	f := &Fitter{parts: p, windows: p.Windows, byteLimits: newLearnedLimits(cfg.TTL), watch: watch{store.NewCache[recovery.Target, time.Time](maxWindows)}, parsed: newParseCache()}
	f.cfg.Store(&cfg)
	f.memory = newMemory(p.Store, func() time.Duration { return f.config().TTL })
	if f.windows == nil {
		f.windows = newLearnedLimits(cfg.TTL)
	}
	return f
}

// Reconfigure applies other settings to requests from now on.
func (f *Fitter) Reconfigure(cfg Config) { f.cfg.Store(&cfg) }

func (f *Fitter) config() *Config { return f.cfg.Load() }

// Close writes what is queued, until ctx ends.
func (f *Fitter) Close(ctx context.Context) error { return f.memory.close(ctx) }

// applies reports whether there is a conversation to fit.
func (f *Fitter) applies(x *recovery.Exchange) bool {
	return f.config().Enabled && x.Body != nil && (len(x.Body.Messages()) > 1 || len(x.Body.Messages()) == 1 && x.Body.Instructions() != "")
}

// isSide reports whether the request is the client's own, for a title, a summary
// or a probe: those are left alone. It reads the request, so it is asked last.
func isSide(x *recovery.Exchange) bool { return x.Side != nil && x.Side() }

// secret is what seals what is stored of the exchange's session.
func (f *Fitter) secret(x *recovery.Exchange) []byte {
	if f.parts.Secret != nil {
		return f.parts.Secret(x)
	}
	return []byte(x.Credential)
}

// window is the context window of a target, 0 when unknown: what it said
// itself, what this session met, what is configured.
func (f *Fitter) window(c *recovery.Choice, s *session) int {
	if n := f.windows.Window(c.Target); n > 0 {
		return n
	}
	if s != nil && s.Window > 0 && s.Target == targetHash(c.Target) {
		return int(s.Window)
	}
	return max(0, c.Window)
}

// smallestWindow is the smallest window that is known of the candidates, 0 for none.
func (f *Fitter) smallestWindow(x *recovery.Exchange) (least int) {
	for i := range x.Candidates {
		if n := f.window(&x.Candidates[i], nil); n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	return least
}

// large reports whether a request is of a size at which its session may have
// edits, or need them. Half of what the smallest window leaves beside the answer
// is below every size at which something was edited; where none is known, few
// tokens do. Few bytes are few tokens, and pictures, which may be fewer still, cost no
// more than a look at the store.
func (f *Fitter) large(x *recovery.Exchange) bool {
	from := f.config().MinTokens
	if least := f.smallestWindow(x); least > 0 {
		from = (least - Reserve(x.Body, least)) / 2
	}
	return len(x.Body.Raw()) >= from
}

// reportsMatter reports whether what an upstream counted is worth keeping: a window is
// known, or was exceeded lately, and the request is not far below it.
func (f *Fitter) reportsMatter(x *recovery.Exchange) bool {
	exceeded := func(c recovery.Choice) bool { return f.windows.Overflowed(c.Target) }
	return (f.smallestWindow(x) > 0 || slices.ContainsFunc(x.Candidates, exceeded)) && f.large(x)
}

// localSession returns what this process knows of the exchange's session, and whether the
// store has to be asked. While this process serves every turn of a conversation,
// no other one knows more of it. Otherwise the conversation comes from another
// replica, or this process has restarted or forgotten it.
func (d *draft) localSession() (s *session, ask bool) {
	s = d.fitter.memory.local(d.x.Session)
	if d.fitter.memory.store == nil {
		return s, false
	}
	here, kept := d.fitter.memory.turns.follows(d.x.Session, d.place())
	return s, !here || kept && s == nil
}

// place returns where the request stands in its conversation. It is read once.
func (d *draft) place() place {
	if d.cachedPlace == nil {
		at := d.fitter.memory.turns.placeOf(d.x.Body)
		d.cachedPlace = &at
	}
	return *d.cachedPlace
}

// mayNeedFitting reports whether there may be anything to fit before the first attempt. It
// is cheap: most requests are far below every limit.
func (d *draft) mayNeedFitting() bool {
	f, x := d.fitter, d.x
	if f.surelyOverflows(x) || f.exceedsByteLimit(x) {
		return true
	}
	if x.Session == "" || !f.large(x) {
		return false
	}
	s, ask := d.localSession()
	return s != nil || ask
}

// estimateMargin is how many times as large as a window that the operator states a mere
// estimate must be to be believed: vocabularies differ by less.
const estimateMargin = 1.3

// surelyOverflows reports whether a request may be so much larger than a window that
// the operator states that no refusal has to be waited for. Hardly any text has
// fewer than three bytes to a token, so what fits is not counted for this.
func (f *Fitter) surelyOverflows(x *recovery.Exchange) bool {
	window := x.Candidates[0].Window
	return window > 0 && float64(len(x.Body.Raw())) >= 3*estimateMargin*float64(window)
}
