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

// Parts are the dependencies of a Fitter. Meter and Windows are required.
type Parts struct {
	Meter   *count.Meter
	Windows Windows
	// Store shares sessions between replicas. With nil, only this process keeps
	// them; a store that nobody shares adds nothing.
	Store Values
	// Truncated reports a server that read only a part of a prompt. It is called
	// off the request's path and must not block. May be nil.
	Truncated func(request, session string, t recovery.Target, counted, reported int)
}

// Windows remember the context windows that targets stated in a refusal. Safe
// for concurrent use; no I/O.
type Windows interface {
	// Window returns a window in tokens, 0 if it is unknown or has expired.
	Window(t recovery.Target) int
	// Overflowed reports whether the target refused a request as too long lately.
	Overflowed(t recovery.Target) bool
	// LearnWindow records that a target refused a request as too long, and the window
	// that it stated, in tokens; 0 keeps a known window and renews its lifetime.
	LearnWindow(t recovery.Target, tokens int, request string)
}

// Fitter is the stage that makes requests fit their target. Safe for concurrent use; Close ends its goroutine.
type Fitter struct {
	cfg        atomic.Pointer[Config]
	parts      Parts
	memory     *memory
	byteLimits byteLimits
	watch      watch // limits how often a local server's answers are checked for silent truncation
	parsed     *parseCache
}

var (
	_ recovery.Stage   = (*Fitter)(nil)
	_ recovery.Fitting = (*draft)(nil)
)

// New returns a fitter and starts its goroutine.
func New(cfg Config, p Parts) *Fitter {
	f := &Fitter{parts: p, byteLimits: newByteLimits(cfg.TTL), watch: watch{store.NewCache[recovery.Target, time.Time](maxTargets)}, parsed: newParseCache()}
	f.cfg.Store(&cfg)
	f.memory = newMemory(p.Store, func() time.Duration { return f.config().TTL })
	return f
}

// Reconfigure applies other settings to requests from now on.
func (f *Fitter) Reconfigure(cfg Config) { f.cfg.Store(&cfg) }

func (f *Fitter) config() *Config { return f.cfg.Load() }

// Close runs the queued jobs, until ctx ends.
func (f *Fitter) Close(ctx context.Context) error { return f.memory.close(ctx) }

// applies reports whether there is a conversation to fit.
func (f *Fitter) applies(x *recovery.Exchange) bool {
	return f.config().Enabled && x.Body != nil && (len(x.Body.Messages()) > 1 || len(x.Body.Messages()) == 1 && x.Body.Instructions() != "")
}

// isSide reports whether the client makes the request for itself, for a title, a summary
// or a probe: those are left alone. It reads the request, so callers check it last.
func isSide(x *recovery.Exchange) bool { return x.Side != nil && x.Side() }

// window returns the context window of a target in tokens: as a refusal stated it, else as this
// session's last refusal showed, else as configured; 0 if it is unknown.
func (f *Fitter) window(x *recovery.Exchange, c *recovery.Choice, s *session) int {
	if n := f.parts.Windows.Window(x.Windowed(c.Target)); n > 0 {
		return n
	}
	if s != nil && s.Window > 0 && s.Target == targetHash(x, c.Target) {
		return int(s.Window)
	}
	return max(0, c.Window)
}

// smallestWindow returns the smallest known window of the candidates, 0 if none is known.
func (f *Fitter) smallestWindow(x *recovery.Exchange) (least int) {
	for i := range x.Candidates {
		if n := f.window(x, &x.Candidates[i], nil); n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	return least
}

// large reports whether a request is so large that its session may have edits, or need
// them. Below half of the smallest window, less the answer's reserve, nothing is ever edited;
// if no window is known, MinTokens is the limit. It compares bytes with tokens: text has fewer
// tokens than bytes, and for images a wrong yes only costs a read of the store.
func (f *Fitter) large(x *recovery.Exchange) bool {
	from := f.config().MinTokens
	if least := f.smallestWindow(x); least > 0 {
		from = (least - outputReserve(x.Body, least)) / 2
	}
	return len(x.Body.Raw()) >= from
}

// reportsMatter reports whether the upstream's token count is worth keeping: a window is
// known, or was exceeded lately, and the request is not far below it.
func (f *Fitter) reportsMatter(x *recovery.Exchange) bool {
	exceeded := func(c recovery.Choice) bool { return f.parts.Windows.Overflowed(x.Windowed(c.Target)) }
	return (f.smallestWindow(x) > 0 || slices.ContainsFunc(x.Candidates, exceeded)) && f.large(x)
}

// localSession returns the session as this process holds it, and whether the store may know
// more. While this process serves every turn of a conversation, no other process does.
// Otherwise the last turn went to another replica, or this process restarted or dropped it.
func (d *draft) localSession() (s *session, ask bool) {
	s = d.fitter.memory.local(d.x.Session)
	if d.fitter.memory.store == nil {
		return s, false
	}
	here, hadSession := d.fitter.memory.turns.follows(d.x.Session, d.place())
	return s, !here || hadSession && s == nil
}

// place returns the request's place in its conversation. It is computed once.
func (d *draft) place() place {
	if d.cachedPlace == nil {
		at := d.fitter.memory.turns.placeOf(d.x.Body)
		d.cachedPlace = &at
	}
	return *d.cachedPlace
}

// mayNeedFitting reports whether the request may have to be fitted before the first attempt.
// It is cheap: most requests are far below every limit.
func (d *draft) mayNeedFitting() bool {
	f, x := d.fitter, d.x
	if f.mayFarExceed(x) || f.exceedsByteLimit(x) {
		return true
	}
	if x.Session == "" || !f.large(x) {
		return false
	}
	s, ask := d.localSession()
	return s != nil || ask
}

// estimateMargin is the factor by which an uncalibrated estimate must exceed the configured
// window for a request to be fitted before any refusal. Vocabularies differ by less.
const estimateMargin = 1.3

// mayFarExceed reports whether a request may exceed the configured window by so much
// that it is fitted without waiting for a refusal. It only compares bytes: hardly any text
// has fewer than three bytes per token.
func (f *Fitter) mayFarExceed(x *recovery.Exchange) bool {
	window := x.Candidates[0].Window
	return window > 0 && float64(len(x.Body.Raw())) >= 3*estimateMargin*float64(window)
}
