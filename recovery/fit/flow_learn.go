package fit

import (
	"cmp"
	"math"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/fit/count"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// keepEdits keeps new edits before the attempt that carries them has an answer:
// the client's next request may go to another replica as soon as it has that.
// The store copies them beside the attempt. That the upstream has refused the
// request for its length, or answered the session before, shows that it accepts
// the credential; where neither has happened yet, the answer is waited for. If the client's own bytes are answered instead, Settle takes
// the edits back.
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
		next.Window, next.Target = uint32(min(d.learnedWindow, maxWindow)), targetHash(d.learnedTarget)
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
	here, kept := f.memory.turns.follows(x.Session, d.place())
	if here || d.storeRead || !f.large(x) { // else others may know more
		f.memory.turns.note(x.Session, d.place(), kept || d.session != nil || d.next != nil)
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
			f.windows.LearnWindow(c.Target, 0, x.ID) // a window that matters is not forgotten
		}
	}
	if d.next != nil {
		n := count.Prompt(u)
		if sent != d.outgoing || n > 0 && d.answersOriginal(sent, c.Model, n) {
			sent = x.Body // the client's own bytes were answered
			d.retract()
		} else if d.guessedPrompt > 0 {
			d.lowerGuessedWindow(c.Model, n)
		}
	}
	next := cmp.Or(f.memory.local(x.Session), d.next, d.session, &session{})
	x.Retain()
	id, request, target, model := x.Session, x.ID, c.Target, c.Model
	window := f.window(c, next)
	f.memory.enqueue(func() { f.learn(id, request, target, model, window, sent, next, u) })
}

// retract takes the edits back that were made for an exchange, unless there are
// newer ones. What was learned of the window stays.
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

// lowerGuessedWindow lowers a window that was guessed from counts of ours, where the first report of
// what was fitted to it shows that they are too high, unless there are newer edits.
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

// answersOriginal reports whether the reported prompt is the original rather than what
// was made of it.
func (d *draft) answersOriginal(sent *transcript.Body, model string, reported int) bool {
	fitted := d.scale.upstream(d.fitter.parts.Meter.Measure(sent, model).Total)
	whole := d.scale.upstream(d.fitter.parts.Meter.Measure(d.x.Body, model).Total)
	return math.Abs(float64(reported-whole)) < math.Abs(float64(reported-fitted))
}

// learn anchors the session on a report and stores it, where it may soon matter
// to another replica: for a session with edits, or at half of the window. known
// is the session where it is not held any more. It runs off the request's path.
func (f *Fitter) learn(id, request string, t recovery.Target, model string, window int, sent *transcript.Body, known *session,
	u recovery.Usage) {
	if now := f.memory.local(id); now != nil {
		known = now
	}
	anchor, short := f.parts.Meter.Observe(sent, model, known.Anchor, u)
	if short && f.parts.Truncated != nil {
		f.parts.Truncated(request, id, t, f.parts.Meter.Measure(sent, model).Total, count.Prompt(u))
	}
	f.memory.addReport(id, known, report{short, anchor}, known.edited() || short || window > 0 && 2*count.Prompt(u) >= window)
}
