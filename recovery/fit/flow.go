package fit

import (
	"cmp"
	"context"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/fit/count"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// From a request that is too long to the body that goes upstream, in the order of the calls:
//
//	Prepare          before the first attempt; most requests end at mayNeedFitting
//	  loadSession    reads the session                                   memory
//	  reapply        makes its edits again, the same bytes               revision
//	  fitEarly       fits further if it is still sure to overflow        meter
//	Fit              after a refusal
//	  readStore      reads edits that another process made               memory
//	  readRefusal    learns the window, and how far our counts are off   limits
//	  reapply
//	fitBytes         from either, for a limit of bytes                   flow_bytes
//	fitTokens        from either, for a limit of tokens                  check
//	  shrink         adds edits, the first that suffice                  shrink, protect, recipe, digest, summary
//	  accept         keeps the edits for the session                     flow_learn
//	Commit           stores the edits before the answer leaves           flow_learn
//	Learn            learns the upstream's token count                   flow_learn

// Prepare implements recovery.Stage. It fits the request if the session already has
// edits, or if its count is sure to exceed a known limit. If the store fails, the
// session is used as this process holds it.
func (f *Fitter) Prepare(ctx context.Context, x *recovery.Exchange) error {
	if x.Mode != recovery.ModeAct && x.Mode != recovery.ModeObserve || x.Reply != nil || len(x.Candidates) == 0 || !f.applies(x) || !x.Body.State().MayFit() {
		return nil
	}
	d := &draft{fitter: f, x: x}
	if x.Fitting = d; d.mayNeedFitting() {
		x.Fitted = d.prepare(ctx)
	}
	return nil
}

func (d *draft) prepare(ctx context.Context) *recovery.Fitted {
	f, x, c := d.fitter, d.x, &d.x.Candidates[0]
	if x.Session != "" {
		d.loadSession(ctx)
	}
	if d.session == nil && (!f.mayFarExceed(x) && !f.exceedsByteLimit(x) || isSide(x)) {
		return nil
	}
	if d.session.edited() && d.needsEdits(c) {
		d.reapply(c.Model)
	}
	if limit := f.byteLimits.of(c.Target); limit > 0 && len(d.currentBody().Raw()) > limit {
		if fitted := d.fitBytes(ctx, c, limit, 0, false); fitted != nil {
			return fitted
		}
	}
	if window := f.window(x, c, d.session); window > 0 {
		if fitted := d.fitEarly(ctx, c, window); fitted != nil {
			return fitted
		}
	}
	if d.body == nil {
		return nil
	}
	return d.fitted(f.scaleFor(c.Model, d.session, d.body))
}

// loadSession reads the exchange's session, from the store at most once.
func (d *draft) loadSession(ctx context.Context) {
	s, ask := d.localSession()
	if !ask && s == nil || !d.fitter.large(d.x) || isSide(d.x) {
		return
	}
	if d.session = s; ask {
		d.readStore(ctx)
	}
}

// readStore reads the session from the store.
func (d *draft) readStore(ctx context.Context) {
	d.session, d.storeRead = d.fitter.memory.get(ctx, d.x), true
}

// needsEdits reports whether a target needs the session's edits: they were made for it, or it takes no more than they
// leave. Those that a smaller fallback needed once would only harm at the target before it, or at a larger model to
// which the user has switched.
func (d *draft) needsEdits(c *recovery.Choice) bool {
	f, x, s := d.fitter, d.x, d.session
	if s.Target == 0 || s.Target == targetHash(x, c.Target) || f.exceedsByteLimit(x) {
		return true
	}
	window := f.window(x, c, s)
	if window == 0 {
		return f.parts.Windows.Overflowed(x.Windowed(c.Target))
	}
	tokens, _ := f.parts.Meter.Estimate(x.Body, c.Model, s.Anchor)
	return float64(tokens+cappedReserve(x.Body, window)) > f.config().TriggerShare*float64(window)
}

// reapply makes the session's edits again. It reports whether that gave a body to send.
func (d *draft) reapply(model string) bool {
	if !d.session.edited() {
		return false
	}
	k := d.unedited(model, d.fitter.parts.Meter)
	if !k.apply(d.session) {
		return false
	}
	b, ok := k.buildChecked()
	if !ok {
		return false
	}
	k.total = d.fitter.parts.Meter.Measure(b, model).Total
	d.revision, d.body, d.outgoing, d.sticky = k, b, b, true
	return true
}

// unedited returns the history without edits, with sizes by w.
func (d *draft) unedited(model string, w Counter) *revision {
	if d.history == nil {
		d.history = newHistory(d.x.Body, d.fitter.parsed, []byte(d.x.Secret))
	}
	return newRevision(d.history, w, model)
}

// fitEarly fits a request that would surely overflow: its count is anchored on
// the upstream's report, or scaled by an earlier refusal of the session, or it is
// far above the configured window. It returns nil if the request can be tried.
func (d *draft) fitEarly(ctx context.Context, c *recovery.Choice, window int) *recovery.Fitted {
	f, s, body := d.fitter, cmp.Or(d.session, &session{}), d.currentBody()
	raw := f.parts.Meter.Measure(body, c.Model).Total
	tokens, basis := f.parts.Meter.Estimate(body, c.Model, s.Anchor)
	sure := true
	switch {
	case basis == count.BasisAnchored && s.Anchor.Reported > window && window != c.Window && !c.Local:
		return nil // a longer prompt was answered: the window is that of another account, or an old one; a local server may have cut it
	case basis == count.BasisAnchored || s.Truncated:
	case d.body != nil || s.Scale > 0:
		tokens = f.scaleFor(c.Model, s, body).upstream(raw)
		sure = d.body != nil || float64(tokens) >= estimateMargin*float64(window)
	case c.Window > 0 && float64(tokens) >= estimateMargin*float64(window):
	default:
		return nil
	}
	share := f.config().TriggerShare * float64(window)
	if float64(tokens+cappedReserve(d.x.Body, window)) > share {
		if !sure {
			return nil
		}
		return d.fitTokens(ctx, c, window, ratio{tokens, raw}, false)
	}
	if limit := outputReserve(d.x.Body, window); float64(tokens+limit) > share {
		if d.revision == nil {
			d.revision, d.sticky = d.unedited(c.Model, d.fitter.parts.Meter), true
		}
		d.limitOutput(remainingOutput(window, tokens, basis == count.BasisAnchored, 1))
		return d.fitted(ratio{tokens, raw})
	}
	return nil
}

// remainingOutput returns how many tokens a prompt leaves for the answer. It subtracts
// what the count may be wrong by, and divides the rest by the number of the try.
func remainingOutput(window, tokens int, sure bool, try int) int {
	doubt := tokens / 4
	if sure {
		doubt = tokens/50 + 32
	}
	return max(minOutput, (window-tokens-doubt)/max(1, try))
}

// Fit implements recovery.Fitting. A payload_too_large is fitted by bytes.
func (d *draft) Fit(ctx context.Context, c *recovery.Choice, fail *recovery.Failure) *recovery.Fitted {
	f, x := d.fitter, d.x
	if fail == nil || isSide(x) || d.fitCalls > f.config().MaxRefits {
		return nil
	}
	d.fitCalls++
	refused := x.Body
	if d.outgoing != nil {
		refused = d.outgoing
	}
	if !d.storeRead && x.Session != "" {
		had := d.session
		if d.readStore(ctx); had != nil && d.session != nil && d.session.Gen > had.Gen {
			d.revision, d.body, d.outgoing = nil, nil, nil // another process has made newer edits
		}
	}
	if fail.Class() == recovery.PayloadTooLarge {
		limit := byteLimit(fail.Facts, len(refused.Raw()), f.byteLimits.of(c.Target))
		if fail.Facts.LimitChars == 0 {
			if !fail.Quoted {
				f.byteLimits.learn(c.Target, limit, x.ID)
			}
		} else {
			limit = len(refused.Raw())
		}
		return d.fitBytes(ctx, c, limit, fail.Facts.LimitChars, true)
	}
	window, scale := d.readRefusal(c, fail, refused)
	d.fittedWindow = window
	if d.body == nil && d.reapply(c.Model) && scale.upstream(d.revision.total)+cappedReserve(x.Body, window) < window {
		d.limitOutput(remainingOutput(window, scale.upstream(d.revision.total), d.promptStated, d.fitCalls)) // the session's edits suffice
		if d.session.Target != targetHash(x, c.Target) && x.Mode == recovery.ModeAct {
			d.scale, d.learnedWindow, d.learnedTarget = scale, window, c.Target
			d.keepEdits() // this target needs them, too
		}
		return d.fitted(scale)
	}
	return d.fitTokens(ctx, c, window, scale, true)
}

// readRefusal returns the target's window as a refusal states or implies it, and how our
// counts convert to the target's tokens.
func (d *draft) readRefusal(c *recovery.Choice, fail *recovery.Failure, refused *transcript.Body) (window int, scale ratio) {
	f := d.fitter
	counts := f.parts.Meter.Measure(refused, c.Model)
	raw := counts.Total
	scale = f.scaleFor(c.Model, d.session, refused)
	window, stated := limitFrom(fail)
	if d.quoted = fail.Quoted || fail.Facts.PerTime; !d.quoted {
		f.parts.Windows.LearnWindow(d.x.Windowed(c.Target), window, d.x.ID)
	}
	if !stated {
		window = f.window(d.x, c, d.session)
		guessed := f.parts.Windows.Window(d.x.Windowed(c.Target)) == 0 && c.Window == 0 && scale.upstream(raw) < window // after an earlier refusal of this session
		if window == 0 || guessed || d.fitCalls > 1 && d.fittedWindow > 0 && window >= d.fittedWindow {
			// The window is unknown, or larger than a refused prompt: take the refused prompt
			// for the limit. The reserve for the answer is added, since too small a window would
			// shorten results to nothing useful.
			most := scale.upstream(raw)
			if n := scale.upstream(counts.AnsweredPrompt(refused)); d.fitCalls == 1 && n > most-most/4 {
				most = (n + most) / 2 // the limit lies between the last answered prompt and this one
			}
			window, d.guessedPrompt = most+outputReserve(refused, most), most
		}
	}
	if n := statedPrompt(fail.Facts, refused, raw); n > 0 {
		d.promptStated = true
		f.parts.Meter.LearnRefusal(refused, c.Model, n)
		return window, ratio{n, raw}
	}
	if reserve := outputReserve(refused, window); scale.upstream(raw) < window-reserve { // it was refused, so our count is too low
		scale = ratio{window - reserve, raw}
	}
	return window, scale
}

// statedPrompt returns the prompt's tokens as a refusal states them; 0 if it does not, or
// if the number is too far from raw, our count. "Requested" tokens include the answer's if
// the refusal names those, or if subtracting the output limit brings them closer to raw.
func statedPrompt(facts recovery.Facts, sent *transcript.Body, raw int) int {
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

// fitTokens adds edits and returns the fitted request; nil if it cannot be made to fit. An output
// limit that takes up much of the window is lowered before the history is edited, and down
// to minOutput if the history cannot be cut far enough.
func (d *draft) fitTokens(ctx context.Context, c *recovery.Choice, window int, scale ratio, refused bool) *recovery.Fitted {
	k, x := d.revision, d.x
	if k == nil {
		k = d.unedited(c.Model, d.fitter.parts.Meter)
	}
	full, reserve := outputReserve(x.Body, window), cappedReserve(x.Body, window)
	var names []string
	if scale.upstream(k.total)+reserve > window || full == reserve {
		var ok bool
		k, names, ok = d.shrink(ctx, c, k, window, reserve, scale, refused)
		if !ok && refused && d.revision != nil { // a text is cut once only: start again without edits
			k, names, ok = d.shrink(ctx, c, d.unedited(c.Model, d.fitter.parts.Meter), window, reserve, scale, refused)
		}
		if !ok && reserve > minOutput {
			k, names, ok = d.shrink(ctx, c, k, window, minOutput, scale, refused)
		}
		if !ok {
			return nil
		}
	}
	if len(names) > 0 {
		body, ok := k.buildChecked()
		if !ok {
			return nil
		}
		d.body = body
	}
	if d.limitOutput(remainingOutput(window, scale.upstream(k.total), d.promptStated || !refused, d.fitCalls)) {
		names = append(names, TierOutput)
	}
	if len(names) == 0 {
		return nil
	}
	if refused {
		d.learnedWindow, d.learnedTarget = window, c.Target
	}
	return d.accept(k, names, scale, refused)
}

// shrink adds edits to a copy of k until it fits the window with reserve tokens left for the
// answer. It returns the copy, the tiers that were used, and whether it fits.
func (d *draft) shrink(ctx context.Context, c *recovery.Choice, k *revision, window, reserve int, scale ratio, refused bool) (*revision, []string, bool) {
	f, x := d.fitter, d.x
	budget := scale.local(window - reserve)
	if budget < 256 {
		return k, nil, false
	}
	cfg := f.config()
	p := &shrinker{cfg: cfg, goal: cfg.goalFor(budget, scale.local(int(cfg.TriggerShare*float64(window))-reserve))}
	if cfg.Summarize && x.MayComplete() && x.Mode == recovery.ModeAct && (refused || !f.memory.backingOff(x.Session)) {
		w := d.summarizer(c, k, window)
		had := w.budget
		defer func() {
			d.spent += had - w.budget
			d.cost = d.cost.Add(w.cost)
			if w.failed {
				f.memory.backOff(x.Session)
			}
		}()
		p.summarizer = w
	}
	was := k
	k = k.clone()
	ok := p.run(ctx, k)
	return k, k.tiers(was), ok
}

// summarizer returns a summariser for the exchange. All its calls together may read as many
// tokens as the request itself has.
func (d *draft) summarizer(c *recovery.Choice, k *revision, window int) *summarizer {
	w := &summarizer{completer: d.x, counter: d.fitter.parts.Meter, target: c.Target, window: window,
		budget: max(0, k.counts.Total-d.spent)}
	if s := d.fitter.config().Summarizer; s.Model != "" {
		w.target = recovery.Target{Upstream: s.Upstream, Model: s.Model}
		if n := d.fitter.parts.Windows.Window(w.target); n > 0 {
			w.window = n
		}
	}
	return w
}

// accept makes k the exchange's edits. The session keeps them at once if the upstream is known to
// accept the credential, by a refusal for length or an earlier answer; else when it answers.
func (d *draft) accept(k *revision, names []string, scale ratio, refused bool) *recovery.Fitted {
	d.revision, d.scale, d.sticky = k, scale, false
	d.tiers = append(d.tiers, names...)
	if d.x.Session != "" && d.x.Mode == recovery.ModeAct {
		if d.awaitsAnswer = !refused && d.session == nil; !d.awaitsAnswer {
			d.keepEdits()
		}
	}
	return d.fitted(scale)
}
