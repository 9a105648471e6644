package fit

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
	"github.com/rebound-llm/rebound/store"
)

// Parts are what a Fitter works with. Only Meter is required.
type Parts struct {
	Meter *Meter
	// Store keeps sessions for all replicas; nil keeps the recent ones in the
	// process only. A store of this process alone has nothing to add to that.
	Store Values
	// StoreTime bounds the time that one request spends with the store; 0 is
	// what the store's own operations take at most by default.
	StoreTime time.Duration
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
	cfg     atomic.Pointer[Config]
	parts   Parts
	memory  *memory
	windows Windows
	bytes   *windows    // how many bytes targets take, as refusals of this process showed
	weighty atomic.Bool // bytes knows something
	watch   watch       // of servers of one's own that may truncate in silence
	read    *readings
}

var (
	_ recovery.Stage   = (*Fitter)(nil)
	_ recovery.Fitting = (*draft)(nil)
)

// New starts a fitter.
func New(cfg Config, p Parts) *Fitter {
	f := &Fitter{parts: p, windows: p.Windows, bytes: newWindows(cfg.TTL), watch: watch{store.NewCache[recovery.Target, time.Time](maxWindows)}, read: newReadings()}
	f.cfg.Store(&cfg)
	f.memory = newMemory(p.Store, cmp.Or(p.StoreTime, store.SharedDefaults().Timeout), func() time.Duration { return f.config().TTL })
	if f.windows == nil {
		f.windows = newWindows(cfg.TTL)
	}
	return f
}

// Reconfigure applies other settings to requests from now on.
func (f *Fitter) Reconfigure(cfg Config) { f.cfg.Store(&cfg) }

func (f *Fitter) config() *Config { return f.cfg.Load() }

// Close writes what is queued, until ctx ends.
func (f *Fitter) Close(ctx context.Context) error { return f.memory.close(ctx) }

// on reports whether there is a conversation to fit.
func (f *Fitter) on(x *recovery.Exchange) bool {
	return f.config().Enabled && x.Body != nil && (len(x.Body.Messages()) > 1 || len(x.Body.Messages()) == 1 && x.Body.Outside() != "")
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

// least is the smallest window that is known of the candidates, 0 for none.
func (f *Fitter) least(x *recovery.Exchange) (least int) {
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
	if least := f.least(x); least > 0 {
		from = (least - Reserve(x.Body, least)) / 2
	}
	return len(x.Body.Raw()) >= from
}

// worthKeeping reports whether what an upstream counted is worth keeping: a window is
// known, or was exceeded lately, and the request is not far below it.
func (f *Fitter) worthKeeping(x *recovery.Exchange) bool {
	exceeded := func(c recovery.Choice) bool { return f.windows.Overflowed(c.Target) }
	return (f.least(x) > 0 || slices.ContainsFunc(x.Candidates, exceeded)) && f.large(x)
}

// known is what this process knows of the exchange's session, and whether the
// store has to be asked. While this process serves every turn of a conversation,
// nobody can know more of it than is held here. Else the conversation comes from
// another replica, or this process was started anew, or has forgotten it.
func (f *Fitter) known(x *recovery.Exchange) (s *session, ask bool) {
	s = f.memory.local(x.Session)
	if f.memory.store == nil {
		return s, false
	}
	here, kept := f.memory.turns.follows(x.Session, answersIn(x.Body))
	return s, !here || kept && s == nil
}

// matters reports whether there may be anything to fit before the first attempt. It
// is cheap: most requests are far below every limit.
func (f *Fitter) matters(x *recovery.Exchange) bool {
	if f.overflows(x) || f.heavy(x) {
		return true
	}
	if x.Session == "" {
		return false
	}
	s, ask := f.known(x)
	return (s != nil || ask) && f.large(x)
}

// surely is how many times as large as a window that the operator states a mere
// estimate must be to be believed: vocabularies differ by less.
const surely = 1.3

// overflows reports whether a request may be so much larger than a window that
// the operator states that no refusal has to be waited for. Hardly any text has
// fewer than three bytes to a token, so what fits is not counted for this.
func (f *Fitter) overflows(x *recovery.Exchange) bool {
	window := x.Candidates[0].Window
	return window > 0 && float64(len(x.Body.Raw())) >= 3*surely*float64(window)
}

// recall reads what is known of the exchange's session. The store is asked once.
func (f *Fitter) recall(ctx context.Context, x *recovery.Exchange, d *draft) {
	s, ask := f.known(x)
	if !ask && s == nil || !f.large(x) || side(x) {
		return
	}
	if d.session = s; ask {
		f.ask(ctx, x, d)
	}
}

// ask looks the session up in the store.
func (f *Fitter) ask(ctx context.Context, x *recovery.Exchange, d *draft) {
	began := time.Now()
	d.session, d.asked = f.memory.get(ctx, x.Session, f.memory.time-d.used), true
	d.used += time.Since(began)
}

// Prepare implements recovery.Stage. It fits the request where the session already
// has edits, or where its count is sure to exceed a known limit. Trouble with the
// store leaves the client's bytes.
func (f *Fitter) Prepare(ctx context.Context, x *recovery.Exchange) error {
	if x.Mode != recovery.ModeAct && x.Mode != recovery.ModeObserve || x.Reply != nil || len(x.Candidates) == 0 || !f.on(x) || !x.Body.State().MayFit() {
		return nil
	}
	d := &draft{fitter: f, x: x}
	if x.Fitting = d; f.matters(x) {
		x.Fitted = f.prepare(ctx, x, d)
	}
	return nil
}

func (f *Fitter) prepare(ctx context.Context, x *recovery.Exchange, d *draft) *recovery.Fitted {
	if x.Session != "" {
		f.recall(ctx, x, d)
	}
	if d.session == nil && (!f.overflows(x) && !f.heavy(x) || side(x)) {
		return nil
	}
	c := &x.Candidates[0]
	f.resume(x, d, c.Model)
	if limit := f.bytes.Window(c.Target); limit > 0 && len(d.sent(x.Body).Raw()) > limit {
		if fitted := f.fitBytes(ctx, x, c, d, limit, 0, false); fitted != nil {
			return fitted
		}
	}
	if window := f.window(c, d.session); window > 0 {
		if fitted := f.ahead(ctx, x, c, d, window); fitted != nil {
			return fitted
		}
	}
	if d.body == nil {
		return nil
	}
	return d.fitted(x, f.tokensFor(c.Model, d.session, d.body))
}

// resume makes the edits of the session that are remembered; false without any.
func (f *Fitter) resume(x *recovery.Exchange, d *draft, model string) bool {
	if !d.session.edited() {
		return false
	}
	k := f.begin(x, d, model)
	if !k.apply(d.session, d.keys) {
		return false
	}
	b, err := k.build()
	if err != nil || check(x.Body, b, k.v.readings) != nil {
		return false
	}
	k.total = f.parts.Meter.Measure(b, model).Total
	d.work, d.body, d.out, d.sticky = k, b, b, true
	return true
}

// begin is the history without edits.
func (f *Fitter) begin(x *recovery.Exchange, d *draft, model string) *work {
	if d.history == nil {
		d.keys = f.keys(x)
		d.history = newHistory(x.Body, f.read)
		d.history.keyed(d.keys)
	}
	return newWork(d.history, f.parts.Meter, model)
}

// ahead fits a request that would overflow, if that is known: its count is
// anchored on what the upstream reported, or the session was refused before, or
// it is far above what the operator states.
func (f *Fitter) ahead(ctx context.Context, x *recovery.Exchange, c *recovery.Choice, d *draft, window int) *recovery.Fitted {
	s, body := d.session, d.sent(x.Body)
	if s == nil {
		s = &session{}
	}
	raw := f.parts.Meter.Measure(body, c.Model).Total
	tokens, basis := f.parts.Meter.Estimate(body, c.Model, s.Anchor)
	sure := true
	switch {
	case basis == BasisAnchored || s.Short:
	case d.body != nil || s.Scale > 0:
		tokens = f.tokensFor(c.Model, s, body).of(raw)
		sure = d.body != nil || float64(tokens) >= surely*float64(window)
	case c.Window > 0 && float64(tokens) >= surely*float64(window):
	default:
		return nil
	}
	share := f.config().TriggerShare * float64(window)
	if float64(tokens+room(x.Body, window)) > share {
		if !sure {
			return nil
		}
		return f.plan(ctx, x, c, d, window, ratio{tokens, raw}, false)
	}
	if limit := Reserve(x.Body, window); float64(tokens+limit) > share {
		if d.work == nil {
			d.work, d.sticky = f.begin(x, d, c.Model), true
		}
		d.limit(x.Body, spare(window, tokens, basis == BasisAnchored, 1))
		return d.fitted(x, ratio{tokens, raw})
	}
	return nil
}

// spare is the room for an answer that a prompt of so many tokens leaves, with
// some for what the count may be wrong by, and half for each further try.
func spare(window, tokens int, sure bool, try int) int {
	doubt := tokens / 4
	if sure {
		doubt = tokens/50 + 32
	}
	return max(leastOutput, (window-tokens-doubt)/max(1, try))
}

// Fit implements recovery.Fitting. A payload_too_large is fitted by bytes.
func (d *draft) Fit(ctx context.Context, c *recovery.Choice, fail *recovery.Failure) *recovery.Fitted {
	f, x := d.fitter, d.x
	if fail == nil || side(x) {
		return nil
	}
	if d.fits > f.config().MaxRefits {
		return nil
	}
	d.fits++
	sent := x.Body
	if d.out != nil {
		sent = d.out
	}
	if !d.asked && x.Session != "" {
		had := d.session
		if f.ask(ctx, x, d); had != nil && d.session != nil && d.session.Gen > had.Gen {
			d.work, d.body, d.out = nil, nil, nil // there are edits that were not known here
		}
	}
	if fail.Class() == recovery.PayloadTooLarge {
		limit := limitBytes(fail.Facts, len(sent.Raw()))
		if fail.Facts.LimitChars == 0 {
			f.bytes.LearnWindow(c.Target, limit, x.ID)
			f.weighty.Store(true)
		} else {
			limit = len(sent.Raw())
		}
		return f.fitBytes(ctx, x, c, d, limit, fail.Facts.LimitChars, true)
	}
	counts := f.parts.Meter.Measure(sent, c.Model)
	raw := counts.Total
	scale := f.tokensFor(c.Model, d.session, sent)
	window, stated := LimitFrom(fail)
	f.windows.LearnWindow(c.Target, window, x.ID)
	if !stated {
		window = f.window(c, d.session)
		guessed := f.windows.Window(c.Target) == 0 && c.Window == 0 && scale.of(raw) < window // from a refusal of this session
		if window == 0 || guessed || d.fits > 1 && d.window > 0 && window >= d.window {
			// Nobody says how large the window is, or what was said is not true: it
			// is smaller than what was refused. The room for the answer is not taken off,
			// for a window that is told too small cuts results to less than what they say.
			most := scale.of(raw)
			if n := scale.of(counts.answered(sent)); d.fits == 1 && n > most-most/4 {
				most = (n + most) / 2 // it is between the two; where more came since, the answer says little
			}
			window, d.guessed = most+Reserve(sent, most), most
		}
	}
	if n := promptIn(fail.Facts, sent, raw); n > 0 {
		scale, d.sure = ratio{n, raw}, true
		f.parts.Meter.Refused(sent, c.Model, n)
	} else if reserve := Reserve(sent, window); scale.of(raw) < window-reserve { // it was refused, so it is larger than the count says
		scale = ratio{window - reserve, raw}
	}
	d.window = window
	if d.body == nil && f.resume(x, d, c.Model) && scale.of(d.work.total)+room(x.Body, window) < window {
		d.limit(x.Body, spare(window, scale.of(d.work.total), d.sure, d.fits)) // what is remembered suffices
		return d.fitted(x, scale)
	}
	return f.plan(ctx, x, c, d, window, scale, true)
}

// promptIn is the size of the prompt as the refusal states it, 0 if it does not,
// or states what cannot be true of a prompt that was counted as raw. What was
// requested is the prompt and the room for the answer, where the text names that
// or the prompt alone would be too far from its count.
func promptIn(facts recovery.Facts, sent *transcript.Body, raw int) int {
	n := facts.InputTokens
	if n == 0 {
		n = facts.RequestedTokens
		output := max(facts.RequestedOutput, facts.MaxOutputTokens)
		if _, limit, ok := sent.OutputLimit(); ok && output == 0 && abs(n-limit-raw) < abs(n-raw) {
			output = limit
		}
		n -= output
	}
	if n <= 0 || n >= 4*raw || n <= raw/4 {
		return 0
	}
	return n
}

func abs(n int) int { return max(n, -n) }

// plan looks for further edits and makes the fitted request of them. A limit of
// the answer that takes up much of the window is lowered first; the history gives
// way for the rest of it, and where that does not suffice, for the least.
func (f *Fitter) plan(ctx context.Context, x *recovery.Exchange, c *recovery.Choice, d *draft, window int, scale ratio, refused bool) *recovery.Fitted {
	k := d.work
	if k == nil {
		k = f.begin(x, d, c.Model)
	}
	full, reserve := Reserve(x.Body, window), room(x.Body, window)
	var names []string
	if scale.of(k.total)+reserve > window || full == reserve {
		var ok bool
		k, names, ok = f.shrink(ctx, x, c, d, k, window, reserve, scale, refused)
		if !ok && refused && d.work != nil { // what was cut once is not cut shorter: all anew
			k, names, ok = f.shrink(ctx, x, c, d, f.begin(x, d, c.Model), window, reserve, scale, refused)
		}
		if !ok && reserve > leastOutput {
			k, names, ok = f.shrink(ctx, x, c, d, k, window, leastOutput, scale, refused)
		}
		if !ok {
			return nil
		}
	}
	if len(names) > 0 {
		body, err := k.build()
		if err != nil || check(x.Body, body, k.v.readings) != nil {
			return nil
		}
		d.body = body
	}
	if lowered := d.limit(x.Body, spare(window, scale.of(k.total), d.sure || !refused, d.fits)); lowered {
		names = append(names, TierOutput)
	}
	if len(names) == 0 {
		return nil
	}
	d.work, d.scale, d.sticky = k, scale, false
	d.names = append(d.names, names...)
	if refused {
		d.learned, d.target = window, c.Target
	}
	if x.Session != "" && x.Mode == recovery.ModeAct {
		if d.later = !refused && d.session == nil; !d.later {
			f.remember(x, d)
		}
	}
	return d.fitted(x, scale)
}

// shrink adds edits to a copy of k until it fits the window beside the reserve.
func (f *Fitter) shrink(ctx context.Context, x *recovery.Exchange, c *recovery.Choice, d *draft, k *work, window, reserve int, scale ratio,
	refused bool) (*work, []string, bool) {
	budget := scale.raw(window - reserve)
	if budget < 256 {
		return k, nil, false
	}
	p := &planner{cfg: f.config(), secret: d.keys, goal: f.goal(budget, scale.raw(int(f.config().TriggerShare*float64(window))-reserve))}
	if f.config().Summarize && x.MayComplete() && x.Mode == recovery.ModeAct && (refused || !f.memory.rests(x.Session)) {
		w := f.summarizer(x, c, d, k, window)
		had := w.budget
		defer func() {
			d.spent += had - w.budget
			d.cost = d.cost.Add(w.cost)
			if w.failed {
				f.memory.rest(x.Session)
			}
		}()
		p.summarizer = w
	}
	was := k
	k = k.clone()
	ok := p.run(ctx, k)
	return k, k.tiers(was), ok
}

// summarizer is who writes summaries for the exchange: within what is left of its
// budget, which is the request's own input, once.
func (f *Fitter) summarizer(x *recovery.Exchange, c *recovery.Choice, d *draft, k *work, window int) *summarizer {
	w := &summarizer{completer: x, w: f.parts.Meter, target: c.Target, window: window,
		budget: max(0, k.counts.Total-d.spent)}
	if s := f.config().Summarizer; s.Model != "" {
		w.target = recovery.Target{Upstream: s.Upstream, Model: s.Model}
		if n := f.windows.Window(w.target); n > 0 {
			w.window = n
		}
	}
	return w
}
