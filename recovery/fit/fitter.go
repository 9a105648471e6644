package fit

import (
	"context"
	"math"
	"sync/atomic"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Parts are what a Fitter works with. Only Meter is required.
type Parts struct {
	Meter *Meter
	// Store keeps sessions; nil keeps the recent ones in the process only.
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
	// LearnWindow remembers an overflow, and the window if it was stated; 0
	// leaves what is known.
	LearnWindow(t recovery.Target, tokens int)
}

// Fitter implements recovery.Fitter. Safe for concurrent use; Close ends its goroutine.
type Fitter struct {
	cfg     atomic.Pointer[Config]
	parts   Parts
	memory  *memory
	windows Windows
	watch   watch // of servers of one's own that may truncate in silence
	drafts  drafts
	read    *readings
	bare    bool // summaries without the program's lists: for measuring
}

var _ recovery.Fitter = (*Fitter)(nil)

// New starts a fitter.
func New(cfg Config, p Parts) *Fitter {
	f := &Fitter{parts: p, memory: newMemory(p.Store, cfg.TTL), windows: p.Windows, read: newReadings()}
	if f.windows == nil {
		f.windows = newWindows(cfg.TTL)
	}
	f.cfg.Store(&cfg)
	return f
}

// Reconfigure applies other settings to requests from now on. How long sessions
// are remembered stays.
func (f *Fitter) Reconfigure(cfg Config) { f.cfg.Store(&cfg) }

func (f *Fitter) config() *Config { return f.cfg.Load() }

// Close writes what is queued, until ctx ends.
func (f *Fitter) Close(ctx context.Context) error { return f.memory.close(ctx) }

// on reports whether there is a conversation to fit.
func (f *Fitter) on(x *recovery.Exchange) bool {
	return f.config().Enabled && x.Body != nil && len(x.Body.Messages()) > 1
}

// side reports whether the request is the client's own, for a title, a summary
// or a probe: those are left alone. It reads the request, so it is asked last.
func side(x *recovery.Exchange) bool { return x.Side != nil && x.Side() }

func (f *Fitter) keys(x *recovery.Exchange) keys {
	if f.parts.Secret != nil {
		return newKeys(f.parts.Secret(x))
	}
	return newKeys([]byte(x.Credential))
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
	if c.Window > 0 {
		return c.Window
	}
	return 0
}

// matters reports whether the session may have, or need, edits: only then the
// store is asked. Where no window is known and nothing overflowed lately,
// nobody has edited anything. Half of the smallest window is below every size
// at which something was. Few bytes are few tokens: they need no look.
func (f *Fitter) matters(x *recovery.Exchange) bool {
	least, overflowed := 0, false
	for i := range x.Candidates {
		c := &x.Candidates[i]
		if n := f.window(c, nil); n > 0 && (least == 0 || n < least) {
			least = n
		}
		overflowed = overflowed || f.windows.Overflowed(c.Target)
	}
	from := f.config().MinTokens
	switch {
	case least > 0:
		from = least / 2
	case !overflowed:
		return false
	}
	return len(x.Body.Raw()) >= from && Bound(x.Body) >= from
}

// Matters implements recovery.Fitter.
func (f *Fitter) Matters(x *recovery.Exchange) bool {
	return x.Session != "" && len(x.Candidates) > 0 && f.on(x) && f.matters(x)
}

// Prepare implements recovery.Fitter.
func (f *Fitter) Prepare(ctx context.Context, x *recovery.Exchange) *recovery.Fitted {
	if !f.Matters(x) || side(x) {
		return nil
	}
	s := f.memory.get(ctx, x.Session)
	d := f.drafts.of(x)
	d.session, d.loaded = s, true
	if s == nil {
		return nil
	}
	c := &x.Candidates[0]
	window := f.window(c, s)
	if len(s.Recipes)+len(s.Sealed) == 0 && window == 0 {
		return nil
	}
	body := x.Body
	k := f.resume(x, d, c.Model)
	if k != nil {
		if b, err := k.build(); err == nil && check(x.Body, b, k.v.reader) == nil {
			body, d.work, d.body = b, k, b
			k.total = f.parts.Meter.Measure(b, c.Model).Total
		} else {
			k = nil
		}
	}
	if window > 0 {
		if fitted := f.ahead(ctx, x, c, d, k, body, window); fitted != nil {
			return fitted
		}
	}
	if k == nil {
		return nil
	}
	out := d.fitted(x, f.tokensFor(c.Model, s, body))
	out.Sticky = true
	return out
}

// resume is the history with the edits that are remembered; nil without any.
func (f *Fitter) resume(x *recovery.Exchange, d *draft, model string) *work {
	if d.session == nil || len(d.session.Recipes)+len(d.session.Sealed) == 0 {
		return nil
	}
	k := f.begin(x, d, model)
	if !k.apply(d.session, d.keys) {
		return nil
	}
	return k
}

// begin is the history without edits.
func (f *Fitter) begin(x *recovery.Exchange, d *draft, model string) *work {
	if d.view == nil {
		d.keys = f.keys(x)
		d.view = newView(x.Body, f.read)
		d.view.keyed(d.keys)
	}
	return newWork(d.view, f.parts.Meter, model)
}

// ahead fits a request that would overflow, if that is known: its count is
// anchored on what the upstream reported, or the session was refused before.
func (f *Fitter) ahead(ctx context.Context, x *recovery.Exchange, c *recovery.Choice, d *draft, k *work, body *transcript.Body, window int) *recovery.Fitted {
	s := d.session
	tokens, basis := f.parts.Meter.Estimate(body, c.Model, s.Anchor)
	switch {
	case basis == BasisAnchored || s.Short:
	case k == nil:
		return nil
	default:
		tokens = f.tokensFor(c.Model, s, body).of(f.parts.Meter.Measure(body, c.Model).Total)
	}
	reserve := Reserve(x.Body, window)
	if float64(tokens+reserve) <= f.config().TriggerShare*float64(window) {
		return nil
	}
	raw := f.parts.Meter.Measure(body, c.Model).Total
	scale := ratio{tokens, raw}
	if k == nil {
		k = f.begin(x, d, c.Model)
	} else {
		k = k.clone()
	}
	return f.plan(ctx, x, c, d, k, window, reserve, scale, false)
}

// Fit implements recovery.Fitter.
func (f *Fitter) Fit(ctx context.Context, x *recovery.Exchange, c *recovery.Choice, fail *recovery.Failure) *recovery.Fitted {
	if !f.on(x) || fail == nil || side(x) {
		return nil
	}
	d := f.drafts.of(x)
	if d.fits > f.config().MaxRefits {
		return nil
	}
	d.fits++
	if !d.loaded && x.Session != "" {
		d.session, d.loaded = f.memory.get(ctx, x.Session), true
	}
	sent := x.Body
	if d.body != nil {
		sent = d.body
	}
	raw := f.parts.Meter.Measure(sent, c.Model).Total
	scale := f.tokensFor(c.Model, d.session, sent)
	window, stated := LimitFrom(fail)
	f.windows.LearnWindow(c.Target, window)
	if !stated {
		window = f.window(c, d.session)
		if window == 0 || d.fits > 1 && d.window > 0 && window >= d.window {
			// Nobody says how large the window is, or what was said is not true: it
			// is smaller than what was refused.
			window = scale.of(raw) + Reserve(x.Body, scale.of(raw))
		}
	}
	reserve := Reserve(x.Body, window)
	if n := promptIn(fail.Facts); n > 0 && raw > 0 && n < 4*raw && n > raw/4 {
		scale = ratio{n, raw}
	}
	if scale.of(raw) < window-reserve { // it was refused, so it is larger than the count says
		scale = ratio{window - reserve, raw}
	}
	d.window = window
	k := f.begin(x, d, c.Model)
	if d.work != nil {
		k = d.work.clone()
	} else if d.session != nil {
		k.apply(d.session, d.keys)
	}
	return f.plan(ctx, x, c, d, k, window, reserve, scale, true)
}

// promptIn is the size of the prompt as the refusal states it, 0 if it does not.
// What was requested is the prompt and the room for the answer, where the text
// names that.
func promptIn(facts recovery.Facts) int {
	if facts.InputTokens > 0 {
		return facts.InputTokens
	}
	return max(0, facts.RequestedTokens-max(facts.RequestedOutput, facts.MaxOutputTokens))
}

// plan looks for further edits and makes the fitted request of them.
func (f *Fitter) plan(ctx context.Context, x *recovery.Exchange, c *recovery.Choice, d *draft, k *work, window, reserve int, scale ratio, refused bool) *recovery.Fitted {
	budget := scale.raw(window - reserve)
	if budget < 256 {
		return nil
	}
	p := &planner{cfg: f.config(), secret: d.keys, session: x.Session != "", goal: f.goal(budget, scale.raw(int(f.config().TriggerShare*float64(window))-reserve))}
	var w *writer
	if f.config().Summarize && x.Completer != nil && x.Mode == recovery.ModeAct && (refused || !f.memory.rests(x.Session)) {
		w = f.writer(x, c, d, k, window)
		p.scribe = w
	}
	before := k.counts.Total
	body, ok := p.run(ctx, k)
	if w != nil {
		d.spent = max(d.spent, before-w.budget)
		d.cost = d.cost.Add(w.cost)
		if w.failed {
			f.memory.rest(x.Session)
		}
	}
	// What is remembered may suffice, where it was not looked for before.
	remembered := len(p.names) == 0 && d.body == nil && k.steps() > 0
	if !ok || len(p.names) == 0 && !remembered {
		return nil
	}
	if err := check(x.Body, body, k.v.reader); err != nil {
		return nil
	}
	d.work, d.body, d.fresh = k, body, !remembered || d.fresh
	d.names = append(d.names, p.names...)
	if refused {
		d.learned = window
		d.target = c.Target
	}
	d.scale = scale
	out := d.fitted(x, scale)
	out.Before, out.Sticky = scale.of(before), remembered
	return out
}

// writer is who writes summaries for the exchange: within what is left of its
// budget, which is the request's own input, once.
func (f *Fitter) writer(x *recovery.Exchange, c *recovery.Choice, d *draft, k *work, window int) *writer {
	w := &writer{completer: x.Completer, w: f.parts.Meter, target: c.Target, window: window,
		budget: max(0, k.counts.Total-d.spent), bare: f.bare}
	if s := f.config().Summarizer; s.Model != "" {
		w.target = recovery.Target{Upstream: s.Upstream, Model: s.Model}
		if n := f.windows.Window(w.target); n > 0 {
			w.window = n
		}
	}
	return w
}

// Settle implements recovery.Fitter.
func (f *Fitter) Settle(x *recovery.Exchange, c *recovery.Choice, u recovery.Usage) {
	if !f.on(x) || x.Session == "" {
		return
	}
	d := f.drafts.find(x)
	if d == nil && !f.matters(x) && !(c.Local && len(x.Body.Raw()) > truncatedFrom && f.watch.due(c.Target)) || side(x) {
		return
	}
	if d == nil {
		d = &draft{}
	}
	sent := x.Body
	if x.Fitted != nil {
		sent = x.Fitted.Body
		f.windows.LearnWindow(c.Target, 0) // while sessions have edits, they are looked for
	}
	base := d.session
	if now := f.memory.local(x.Session); now != nil && (base == nil || now.Gen >= base.Gen) {
		base = now
	}
	next := &session{}
	if base != nil {
		*next = *base
	}
	if d.fresh && d.work != nil && sent == d.body {
		if n := Prompt(u); n > 0 && f.plainly(d, sent, x, c.Model, n) {
			sent = x.Body // the client's own bytes were answered
		} else {
			next.Gen++
			d.work.keep(next)
			next.Scale = d.scale.permille()
		}
		if d.learned > 0 {
			next.Window, next.Target = uint32(min(d.learned, maxWindow)), targetHash(d.target)
		}
		f.memory.hold(x.Session, next)
	}
	x.Retain()
	id, request, target, model := x.Session, x.ID, c.Target, c.Model
	f.memory.later(func(ctx context.Context) { f.learn(ctx, id, request, target, model, sent, next, u) })
}

// plainly reports whether the reported prompt is the original rather than what
// was made of it.
func (f *Fitter) plainly(d *draft, sent *transcript.Body, x *recovery.Exchange, model string, reported int) bool {
	fitted := d.scale.of(f.parts.Meter.Measure(sent, model).Total)
	whole := d.scale.of(f.parts.Meter.Measure(x.Body, model).Total)
	return math.Abs(float64(reported-whole)) < math.Abs(float64(reported-fitted))
}

// learn anchors the session on a report and stores it. It runs off the
// request's path.
func (f *Fitter) learn(ctx context.Context, id, request string, t recovery.Target, model string, sent *transcript.Body, next *session, u recovery.Usage) {
	anchor, truncated := f.parts.Meter.Observe(sent, model, next.Anchor, u)
	s := *next
	s.Anchor, s.Short = anchor, truncated
	if truncated && f.parts.Truncated != nil {
		f.parts.Truncated(request, id, t, f.parts.Meter.Measure(sent, model).Total, Prompt(u))
	}
	if now := f.memory.local(id); now == nil || now.Gen <= s.Gen {
		f.memory.hold(id, &s)
	}
	f.memory.write(ctx, id, &s)
}
