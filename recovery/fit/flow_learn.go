package fit

import (
	"cmp"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/fit/count"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// keepEdits gives new edits to the session before their attempt is answered, since the
// client's next request may go to another replica right after the answer. The store copies
// them beside the attempt. An upstream that refused the request for its length, or
// answered the session before, accepts the credential; without either, Commit calls
// keepEdits. If the client's own bytes are answered instead, Learn retracts the edits.
func (d *draft) keepEdits() {
	f, x := d.fitter, d.x
	next := *cmp.Or(d.session, &session{})
	if now := f.memory.local(x.Session); now != nil {
		next.Gen = max(next.Gen, now.Gen)
	}
	next.Gen++
	d.revision.saveTo(&next)
	next.Scale = d.scale.permille()
	if d.learnedWindow > 0 {
		next.Window, next.Target = uint32(min(d.learnedWindow, maxWindow)), targetHash(x, d.learnedTarget)
	}
	d.next, d.awaitsAnswer = &next, false
	f.memory.putEdits(x.Session, d.next)
	x.Changed = append(x.Changed, editsKey(x.Session))
}

// Commit implements recovery.Fitting.
func (d *draft) Commit() {
	f, x := d.fitter, d.x
	if x.Session == "" {
		return
	}
	if d.awaitsAnswer {
		d.keepEdits()
	}
	if f.memory.store == nil {
		return
	}
	here, hadSession := f.memory.turns.follows(x.Session, d.place())
	if here || d.storeRead || !f.large(x) { // else another process may know more
		f.memory.turns.note(x.Session, d.place(), hadSession || d.session != nil || d.next != nil)
	}
}

// Learn implements recovery.Fitting.
func (d *draft) Learn(c *recovery.Choice, u recovery.Usage) {
	f, x := d.fitter, d.x
	if x.Session == "" {
		return
	}
	known := d.session != nil || d.next != nil
	if !known && !f.reportsMatter(x) && !(c.Local && len(x.Body.Raw()) > count.TruncatedFrom && f.watch.due(c.Target)) || isSide(x) {
		return
	}
	sent := x.Body
	if x.Fitted != nil {
		sent = x.Fitted.Body
		if !d.quoted {
			f.parts.Windows.LearnWindow(x.Windowed(c.Target), 0, x.ID) // renews the window's lifetime
		}
	}
	if d.next != nil {
		n := count.Prompt(u)
		if sent != d.outgoing || n > 0 && d.answersOriginal(sent, c.Model, n) {
			sent = x.Body // the upstream answered the client's own bytes
			d.retract()
		} else if d.guessedPrompt > 0 {
			d.lowerGuessedWindow(c.Model, n)
		}
	}
	next := cmp.Or(f.memory.local(x.Session), d.next, d.session, &session{})
	id, request, target, model, release := x.Session, x.ID, c.Target, c.Model, x.Retain()
	window := f.window(x, c, next)
	f.memory.enqueue(func() {
		f.learn(id, request, target, model, window, sent, next, u)
		release()
	})
}

// retract withdraws the edits that were made for the exchange, unless there are newer ones.
// The learned window stays.
func (d *draft) retract() {
	f, x := d.fitter, d.x
	now := f.memory.local(x.Session)
	if now == nil || now.Gen != d.next.Gen {
		return
	}
	s := *now
	s.Gen++
	s.Recipes, s.Sealed, s.Scale = nil, nil, 0
	if d.session != nil {
		s.Recipes, s.Sealed, s.Scale = d.session.Recipes, d.session.Sealed, d.session.Scale
	}
	d.next = nil
	f.memory.putEdits(x.Session, &s)
}

// lowerGuessedWindow corrects a window that was guessed from our counts, if the first report
// of a request fitted to it shows that they are too high, unless there are newer edits.
func (d *draft) lowerGuessedWindow(model string, reported int) {
	f, x := d.fitter, d.x
	now, counted := f.memory.local(x.Session), d.scale.upstream(f.parts.Meter.Measure(d.outgoing, model).Total)
	if now == nil || now.Gen != d.next.Gen || reported < counted/2 || reported >= counted {
		return
	}
	s := *now
	s.Gen++
	s.Window = uint32(max(0, int(s.Window)+ratio{reported, counted}.upstream(d.guessedPrompt)-d.guessedPrompt))
	d.next = &s
	f.memory.putEdits(x.Session, &s)
}

// answersOriginal reports whether the reported token count is closer to the client's body
// than to the fitted one.
func (d *draft) answersOriginal(sent *transcript.Body, model string, reported int) bool {
	fitted := d.scale.upstream(d.fitter.parts.Meter.Measure(sent, model).Total)
	whole := d.scale.upstream(d.fitter.parts.Meter.Measure(d.x.Body, model).Total)
	return abs(reported-whole) < abs(reported-fitted)
}

// learn anchors the session on the upstream's report. The store gets the report if another
// replica may soon need it: for a session with edits, or from half of the window on. known
// is the session in case it was evicted. learn runs off the request's path.
func (f *Fitter) learn(id, request string, t recovery.Target, model string, window int, sent *transcript.Body, known *session,
	u recovery.Usage) {
	known = cmp.Or(f.memory.local(id), known)
	anchor, short := f.parts.Meter.Observe(sent, model, known.Anchor, u)
	if short && f.parts.Truncated != nil {
		f.parts.Truncated(request, id, t, f.parts.Meter.Measure(sent, model).Total, count.Prompt(u))
	}
	f.memory.addReport(id, known, report{short, anchor}, known.edited() || short || window > 0 && 2*count.Prompt(u) >= window)
}
