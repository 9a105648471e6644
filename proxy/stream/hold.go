package stream

import (
	"io"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// hold keeps back content that must be complete before the client sees it, such as calls. From the
// first such event on all events wait in order. When the choice has ended they are judged together and
// sent in one write.
type hold struct {
	o      *Options
	mender recovery.Mender
	holds  recovery.Hold
	watch  runaway
	look   recovery.Lookout // nil if text cannot contain calls

	state   state
	queue   queue           // the held events
	finish  recovery.Finish // of the choice
	repairs []recovery.Repair

	// The draft so far.
	calls calls
	text  []byte
	shown int  // bytes of text that the client has, or gets before the held events
	long  bool // the text is too long to be judged
	most  Kind // KindReasoning if there was only reasoning and blank text
}

// state is how far the judgement of an answer is.
type state uint8

const (
	flowing state = iota // events are passed on
	holding              // content waits for the end of the choice
	onlyEnd              // only the end of the choice waits; content may still follow
	ended                // content and the end of the choice wait; more may follow
	passed               // judged: the client gets what was held, or nothing has to be judged
	changed              // judged: the client gets something else
	asked                // judged: the model is asked again
)

func (s state) judged() bool { return s >= passed }

// with returns the state after an event that may contain content that must wait, and the end of the
// choice. There are two other ways on: from onlyEnd back to flowing, if content follows an end, and
// from holding or ended to flowing, if text turns out not to be a call.
func (s state) with(waits, ends bool) state {
	switch {
	case waits && !ends && s <= holding:
		return holding
	case waits, ends && s == holding:
		return ended
	case ends && s == flowing:
		return onlyEnd
	}
	return s
}

// judges reports whether the answer is judged.
func (o *Options) judges() bool { return o.Mender != nil && o.Request != nil && o.Choices <= 1 }

// mends reports whether the answer may be changed. It parses parts of the request, so callers use it
// only if there is something to change.
func (o *Options) mends() bool { return o.judges() && !o.Request.Logprobs() && !o.Request.Audio() }

// Guard runs a part of the judgement. If that panics it returns false, and the answer is passed on
// unchanged.
func (o *Options) Guard(f func()) (ok bool) { return recovery.Guard("mender", f, o.Broke) }

// newHold returns nil if nothing has to be held or watched.
func newHold(o *Options) *hold {
	h := &hold{o: o, calls: calls{}}
	if o.mends() && o.Guard(func() {
		h.holds, h.watch.watch, h.look = o.Mender.Holds(o.Request), o.Mender.Watch(o.Request, -1), o.Mender.Lookout(o.Request)
	}) {
		h.mender, h.calls.known = o.Mender, o.Request.HasTool
		if o.Config.MidStream == MidStreamBuffer && h.holds.Calls {
			h.holds.Text = true // nothing is delivered before the end
		}
	}
	if o.Resume != nil {
		if h.holds.Calls = h.holds.Calls || o.Resume.Calls; o.onlyCalls() {
			h.look = nil
		} else {
			h.text = append(h.text, o.Resume.Sent...)
		}
	}
	h.shown = len(h.text)
	if h.holds.Calls || h.holds.Text {
		return h
	}
	if h.state = passed; h.mender == nil {
		return nil
	}
	return h
}

// onlyCalls reports whether the client has the whole text and gets only the calls.
func (o *Options) onlyCalls() bool { return o.Resume != nil && o.Resume.Calls }

// follow records an event, whether or not it is passed on.
func (h *hold) follow(d *Delta) {
	switch {
	case d.Kind == KindReasoning, d.Kind == KindNothing && d.reasons:
		h.most = max(h.most, KindReasoning)
	case d.Kind == KindCall, d.Kind == KindText && strings.TrimSpace(d.Text) != "":
		h.most = KindCall
	}
	if d.Kind == KindReasoning && h.watch.watch != nil {
		h.feed(recovery.PartReasoning, transcript.Text(d.reasoning))
	}
}

// screen returns the part of an admitted event that is passed on now. For a flawed answer it returns
// the held piece.
func (a *Answer) screen(ev *Event, p Piece, d *Delta) (Piece, *Broken) {
	h := a.h
	if len(p.Bytes) == 0 && d.Kind == KindNothing && d.Finishes == 0 {
		return p, nil // nothing to write
	}
	if a.repeats(ev, d) {
		p.Bytes, _ = encode(h.o.Format, p.Bytes, &edit{recall: true})
		p.Released, d.Kind = recovery.ReleasedNothing, KindNothing
	}
	if a.contradicts(d) {
		p.Bytes, _ = encode(h.o.Format, p.Bytes, &edit{unfinish: true})
	}
	if h.state == passed && h.most == KindReasoning && d.Finishes > 0 {
		h.finish = d.finish
		h.queue.add(p)
		return a.judge() // nothing was held, and the answer has only reasoning
	}
	if !h.state.judged() {
		h.note(d.Text, a.o.Config.MaxAnswer)
		if !h.flows(d) {
			return a.sift(ev, p, d)
		}
		h.shown = len(h.text)
	}
	h.feed(recovery.PartText, d.Text)
	if broken := a.ranAway(); broken != nil {
		return Piece{}, broken
	}
	return p, nil
}

// flows reports whether an event has plain text that is passed on at once, as most events have.
func (h *hold) flows(d *Delta) bool {
	return d.Kind == KindText && d.Text != "" && d.Finishes == 0 && !d.Several &&
		!h.holds.Text && h.state == flowing && !h.leaks()
}

// sift is screen for an event that may have to be held, or that ends the holding.
func (a *Answer) sift(ev *Event, p Piece, d *Delta) (Piece, *Broken) {
	h := a.h
	var free Piece // passed on before this event
	content := d.Kind >= KindReasoning && d.Kind <= KindCall && d.item.event != eventEnd
	if content && h.state == onlyEnd {
		free = h.release() // the choice had not ended
	}
	var called bool
	switch {
	case d.Kind == KindDone:
		return a.judgeRest(p)
	case d.Several:
		return h.stopJudging(free, p), nil
	case d.Kind == KindCall || d.Finishes > 0:
		if !h.o.Guard(func() { called = h.o.Format.calls(ev.Data, d, &h.calls) }) {
			return h.stopJudging(free, p), nil
		}
		if called {
			d.Kind, content = KindCall, d.item.event != eventEnd
			p.Released = recovery.ReleasedCall
			h.feed(recovery.PartArguments, viewString(h.calls.fresh))
		}
	}
	if d.Text != "" {
		free.join(h.holdPossibleCall())
	}
	if len(free.Bytes) > 0 {
		h.shown = len(h.text) - len(d.Text)
	}
	h.feed(recovery.PartText, d.Text)
	if broken := a.ranAway(); broken != nil {
		return Piece{}, broken
	}
	if h.state = h.state.with(called || d.Text != "" && h.holds.Text, d.Finishes > 0); h.state == flowing {
		h.shown = len(h.text)
		free.join(p)
		return free, nil
	}
	p, broken := a.keep(ev, p, d, content)
	free.join(p)
	return free, broken
}

// leaks reports whether the end of the text may turn out to be a call that the
// server did not recognise.
func (h *hold) leaks() bool {
	if h.look == nil || h.long {
		return false
	}
	free := len(h.text)
	if !h.o.Guard(func() { free = h.look.Free(viewString(h.text)) }) {
		h.look = nil
	}
	return h.shown <= free && free < len(h.text)
}

// holdPossibleCall starts to hold text that may be a call. free is held text that turned out not to be one.
func (h *hold) holdPossibleCall() (free Piece) {
	switch {
	case h.holds.Text || len(h.calls.list) > 0 || h.state == onlyEnd:
	case h.leaks():
		h.state = max(h.state, holding)
	case h.state > flowing:
		free = h.release()
	}
	return free
}

// release returns everything that is held; the answer flows again.
func (h *hold) release() Piece {
	h.state = flowing
	return h.queue.take()
}

// keep holds an event. If it was the last, keep has everything judged.
func (a *Answer) keep(ev *Event, p Piece, d *Delta, content bool) (Piece, *Broken) {
	h := a.h
	if int64(len(h.queue.Bytes)+len(p.Bytes)) > a.o.Config.MaxAnswer {
		return h.stopJudging(Piece{}, p), nil
	}
	h.queue.add(p)
	if d.Finishes > 0 {
		h.finish = d.finish
	}
	switch {
	case h.state == holding || !ev.HasData || content:
		return Piece{}, nil // more may follow
	case a.first.IsZero() && d.Kind == KindNothing && !d.Truthful && !a.o.AcceptEmpty && (a.seam == nil || !a.seam.done):
		return h.release(), nil // an empty answer is handled elsewhere
	}
	return a.judge()
}

// judgeRest judges what is held when the stream ends; rest follows it.
func (a *Answer) judgeRest(rest Piece) (Piece, *Broken) {
	if a.h == nil || a.h.state.judged() || a.first.IsZero() {
		return rest, nil
	}
	if !a.complete(io.EOF) {
		return Piece{}, nil
	}
	out, broken := a.judge()
	out.join(rest)
	return out, broken
}

// stopJudging stops judging the answer. It returns free, everything that is held, and p.
func (h *hold) stopJudging(free, p Piece) Piece {
	h.queue.add(p)
	free.join(h.release())
	h.state = passed
	return free
}

// note keeps text for the judgement, at most most bytes.
func (h *hold) note(text string, most int64) {
	if text == "" {
		return
	}
	if int64(len(h.text)+len(text)) > most {
		h.long = true
		return
	}
	if h.text == nil {
		h.text = make([]byte, 0, max(256, len(text)))
	}
	h.text = append(h.text, text...)
}

// judge has the complete choice judged, and returns the bytes for the client.
func (a *Answer) judge() (Piece, *Broken) {
	h := a.h
	h.state = passed
	held := h.queue.take()
	out, calls := held, len(h.calls.list)
	var flaw *recovery.Flaw
	if !a.o.Guard(func() { out, calls, flaw = a.mended(held) }) {
		h.repairs = nil
	}
	switch {
	case flaw != nil:
		h.state = asked
		return held, &Broken{Err: recovery.ErrFlawed, Flaw: flaw}
	case calls == 0 && a.o.onlyCalls():
		return Piece{}, &Broken{Diverged: true, Err: ErrReplay}
	}
	return out, nil
}

// mended returns the replacement of what is held and its number of calls, or a flaw that cannot be
// repaired.
func (a *Answer) mended(held Piece) (out Piece, calls int, flaw *recovery.Flaw) {
	h, only := a.h, a.o.onlyCalls()
	draft := recovery.Draft{Text: string(h.text), Calls: h.calls.draft(), Finish: h.finish, Unsaid: h.most == KindReasoning && !only, Shown: h.shown}
	if only {
		draft.Shown = len(h.text) // the client has another text
	}
	m := h.mender
	if h.long || h.calls.over {
		m = nil
	}
	v, flaw := h.o.verdict(m, &h.calls, draft)
	if flaw != nil || len(v.Repairs) == 0 && v.Judgement != recovery.JudgeReplace {
		return held, len(draft.Calls), flaw
	}
	if only {
		v.Text = nil
	}
	out, ok := a.rewritten(held, v)
	if !ok {
		return held, len(draft.Calls), nil
	}
	h.repairs, h.state = v.Repairs, changed
	return out, len(v.Calls), nil
}

// verdict returns the changes to an answer, or a flaw that cannot be repaired. m may be nil. A client that
// offers tools does not read function_call; one that offers none may read nothing else, and gets it as it came.
func (o *Options) verdict(m recovery.Mender, s *calls, draft recovery.Draft) (v recovery.Verdict, flaw *recovery.Flaw) {
	announced := o.announced(&draft)
	if m != nil {
		v = m.Mend(o.Request, draft)
	}
	switch {
	case v.Judgement == recovery.JudgeAsk && v.Flaw != nil:
		if announced {
			o.wasHollow()
		}
		return v, v.Flaw
	case v.Judgement == recovery.JudgeReplace:
		return v, nil
	}
	v = recovery.Verdict{Calls: draft.Calls}
	misread := s.odd
	if s.legacy {
		misread = o.Request != nil && len(o.Request.Tools()) > 0
	}
	if len(draft.Calls) > 0 && !s.over && misread {
		v.Judgement, v.Repairs = recovery.JudgeReplace, []recovery.Repair{{Rule: RepairAssembly, Tool: draft.Calls[0].Name}}
	}
	return v, nil
}

// rewritten returns what is held with the changes of a verdict; ok is false if they cannot be written.
func (a *Answer) rewritten(held Piece, v recovery.Verdict) (out Piece, ok bool) {
	h := a.h
	e := h.calls.edit(v)
	e.shown = string(h.text[:min(h.shown, len(h.text))])
	out = held
	if e.text != nil {
		out.Text = *e.text
	}
	switch {
	case len(v.Calls) > 0:
		out.Released = recovery.ReleasedCall
	case out.Released == recovery.ReleasedCall && h.calls.list != nil:
		out.Released = recovery.ReleasedText
	}
	out.Bytes, ok = encode(h.o.Format, held.Bytes, &e)
	return out, ok
}

// RepairAssembly is the repair rule of correct calls that were sent in a form that clients misread.
const RepairAssembly = "call_assembly"

// runaway detects answers that repeat themselves without end.
type runaway struct {
	watch recovery.Watch // nil: there is none, or it has found a repetition
	last  []byte         // the last piece
	found bool
}

// feed passes a piece of the answer to the repetition watch.
func (h *hold) feed(p recovery.Part, text string) {
	w := &h.watch
	if w.watch == nil || text == "" {
		return
	}
	w.last = append(w.last[:0], text...)
	if !h.o.Guard(func() { w.found = w.watch.Feed(p, w.last) }) || w.found {
		w.watch = nil
	}
}

// ranAway stops an answer that repeats itself if the client has no text of it, or if the configuration
// says so.
func (a *Answer) ranAway() *Broken {
	w := &a.h.watch
	if !w.found || w.last == nil {
		return nil
	}
	last := w.last
	w.last = nil
	if a.o.Sink.Released() >= recovery.ReleasedText && a.o.Config.Repetition != RepetitionStop {
		return nil
	}
	a.o.Cancel(recovery.ErrFlawed)
	return &Broken{Err: recovery.ErrFlawed, Flaw: repetition(last)}
}

// repetition returns the flaw of an answer that repeats itself; end is its end.
func repetition(end []byte) *recovery.Flaw {
	end = end[max(0, len(end)-200):]
	return &recovery.Flaw{Kind: recovery.FlawRepetition, Quote: strings.ToValidUTF8(string(end), ""), Problem: "the answer repeated itself without end"}
}

// Runaway reports whether the answer repeated itself endlessly and was not stopped.
func (a *Answer) Runaway() bool { return a.h != nil && a.h.watch.found }
