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
	req    *transcript.Body
	holds  recovery.Hold
	watch  recovery.Watch
	look   recovery.Lookout // nil if text cannot contain calls

	calls    calls
	text     []byte
	unjudged bool // the text is too long to be judged
	reasoned bool
	more     bool // something other than reasoning or blank text has arrived
	only     bool // the client gets only the calls
	shown    int  // bytes of text that the client has, or gets before the held events
	runaway  bool // the watch found a repetition
	last     []byte

	holding bool
	closing bool // held only because of an end that came together with content
	queue   Piece
	said    []byte // text of the queue

	finish  recovery.Finish
	ended   bool // a finish reason has arrived, maybe with content, so more may follow
	judged  bool
	asked   bool // the judgement was to ask the model again
	changed bool // the client got something other than the held events
	repairs []recovery.Repair
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
		h.holds, h.watch, h.look = o.Mender.Holds(o.Request), o.Mender.Watch(o.Request, -1), o.Mender.Lookout(o.Request)
	}) {
		h.mender, h.req = o.Mender, o.Request
		h.calls.known = h.req.HasTool
		if o.Config.MidStream == MidStreamBuffer && h.holds.Calls {
			h.holds.Text = true // nothing is delivered before the end
		}
	}
	if o.Resume != nil {
		h.holds.Calls = h.holds.Calls || o.Resume.Calls
		if h.only = o.Resume.Calls; h.only {
			h.look = nil
		} else {
			h.text = append(h.text, o.Resume.Sent...)
		}
	}
	h.shown = len(h.text)
	h.judged = !h.holds.Calls && !h.holds.Text
	if h.judged && h.mender == nil {
		return nil
	}
	return h
}

// follow updates the state with an event, whether or not it is passed on.
func (h *hold) follow(d *Delta) {
	switch d.Kind {
	case KindNothing:
		h.reasoned = h.reasoned || d.reasons
	case KindReasoning:
		h.reasoned = true
		if h.watch != nil {
			h.feed(recovery.PartReasoning, transcript.Text(d.reasoning))
		}
	case KindText, KindCall:
		h.more = h.more || d.Kind == KindCall || strings.TrimSpace(d.Text) != ""
	}
}

// feed passes a piece of the answer to the repetition watch.
func (h *hold) feed(p recovery.Part, text string) {
	if h.watch == nil || text == "" {
		return
	}
	h.last = append(h.last[:0], text...)
	if !h.o.Guard(func() { h.runaway = h.watch.Feed(p, h.last) }) || h.runaway {
		h.watch = nil
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
	if h.judged && h.reasoned && !h.more && d.Finishes > 0 && !h.asked {
		h.finish = d.finish
		h.enqueue(p)
		return a.judge() // nothing was held, and the answer has only reasoning
	}
	if !h.judged {
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
		!h.holds.Text && !h.holding && !h.ended && !h.leaks()
}

// sift is screen for an event that may have to be held, or that ends the holding.
func (a *Answer) sift(ev *Event, p Piece, d *Delta) (Piece, *Broken) {
	h := a.h
	var free Piece // passed on before this event
	content := d.Kind >= KindReasoning && d.Kind <= KindCall && d.item.event != eventEnd
	var called bool
	if h.ended && content && h.closing {
		free = h.dequeue() // the choice had not ended
	}
	h.ended = h.ended && !(content && h.closing)
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
			if h.watch != nil {
				h.feed(recovery.PartArguments, string(h.calls.fresh))
			}
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
	if !h.holding && (called || d.Text != "" && h.holds.Text || d.Finishes > 0) {
		h.holding, h.closing = true, !called && !(d.Text != "" && h.holds.Text)
	} else if called || d.Text != "" && h.holds.Text {
		h.closing = false
	}
	if !h.holding {
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
	if h.look == nil || h.unjudged {
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
	case h.holds.Text || len(h.calls.list) > 0 || h.closing && h.holding:
	case h.leaks():
		h.holding, h.closing = true, false
	case h.holding:
		free = h.dequeue()
	}
	return free
}

// keep holds an event. If it was the last, keep has everything judged.
func (a *Answer) keep(ev *Event, p Piece, d *Delta, content bool) (Piece, *Broken) {
	h := a.h
	h.enqueue(p)
	if int64(len(h.queue.Bytes)) > a.o.Config.MaxAnswer {
		return Piece{}, &Broken{Err: ErrAnswerTooLong}
	}
	if d.Finishes > 0 {
		h.finish = d.finish
		h.ended = true
	}
	switch {
	case !h.ended || !ev.HasData || content:
		return Piece{}, nil // more may follow
	case a.first.IsZero() && d.Kind == KindNothing && !d.Truthful && !a.o.AcceptEmpty && (a.seam == nil || !a.seam.done):
		h.judged = true
		return h.dequeue(), nil // an empty answer is handled elsewhere
	}
	return a.judge()
}

// judgeRest judges what is held when the stream ends; rest follows it.
func (a *Answer) judgeRest(rest Piece) (Piece, *Broken) {
	if a.h == nil || a.h.judged {
		return rest, nil
	}
	if !a.complete(io.EOF) {
		return Piece{}, nil
	}
	out, broken := a.judge()
	out.join(rest)
	return out, broken
}

// join is add without copying if p is empty.
func (p *Piece) join(q Piece) {
	if len(p.Bytes) == 0 {
		*p = q
		return
	}
	p.add(q)
}

// add appends a copy of a piece.
func (p *Piece) add(q Piece) {
	p.Bytes = append(p.Bytes, q.Bytes...)
	p.Released = max(p.Released, q.Released)
	p.Text += q.Text
	p.Frame = append(p.Frame, q.Frame...)
	p.Seq = max(p.Seq, q.Seq)
	if p.ID.ID == "" {
		p.ID = q.ID
	}
}

func (h *hold) enqueue(p Piece) {
	h.said = append(h.said, p.Text...)
	p.Text = ""
	h.queue.add(p)
}

// dequeue returns everything that is held and empties the queue.
func (h *hold) dequeue() Piece {
	p := h.queue
	p.Text = string(h.said)
	h.queue, h.said, h.holding = Piece{}, nil, false
	return p
}

// stopJudging stops judging the answer. It returns free, everything that is held, and p.
func (h *hold) stopJudging(free, p Piece) Piece {
	h.judged = true
	h.enqueue(p)
	free.join(h.dequeue())
	return free
}

// note keeps text for the judgement, at most most bytes.
func (h *hold) note(text string, most int64) {
	if text == "" {
		return
	}
	if int64(len(h.text)+len(text)) > most {
		h.unjudged = true
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
	h.judged = true
	held := h.dequeue()
	out, calls := held, len(h.calls.list)
	var flaw *recovery.Flaw
	if !a.o.Guard(func() { out, calls, flaw = a.mended(held) }) {
		h.repairs = nil
	}
	switch {
	case flaw != nil:
		h.asked = true
		return held, &Broken{Err: recovery.ErrFlawed, Flaw: flaw}
	case calls == 0 && h.only:
		return Piece{}, &Broken{Diverged: true, Err: ErrReplay}
	}
	return out, nil
}

// mended returns the replacement of what is held and its number of calls, or a flaw that cannot be
// repaired.
func (a *Answer) mended(held Piece) (out Piece, calls int, flaw *recovery.Flaw) {
	h := a.h
	draft := recovery.Draft{Text: string(h.text), Calls: h.calls.draft(), Finish: h.finish, Unsaid: h.reasoned && !h.more && !h.only, Shown: h.shown}
	if h.only {
		draft.Shown = len(h.text) // the client has another text
	}
	announced := h.o.announced(&draft)
	var v recovery.Verdict
	if h.mender != nil && !h.unjudged && !h.calls.over {
		v = h.mender.Mend(h.req, draft)
	}
	switch {
	case v.Judgement == recovery.JudgeAsk && v.Flaw != nil:
		if announced {
			h.o.wasHollow()
		}
		return held, 0, v.Flaw
	case v.Judgement == recovery.JudgeReplace:
		h.repairs = v.Repairs
	case len(draft.Calls) > 0 && !h.calls.over && (h.calls.odd || h.calls.legacy && offersTools(h.req)):
		v = recovery.Verdict{Judgement: recovery.JudgeReplace, Calls: draft.Calls}
		h.repairs = []recovery.Repair{{Rule: RepairAssembly, Tool: draft.Calls[0].Name}}
	default:
		return held, len(draft.Calls), nil
	}
	out, ok := a.rewritten(held, v)
	if !ok {
		h.repairs = nil
		return held, len(draft.Calls), nil
	}
	h.changed = true
	return out, len(v.Calls), nil
}

// rewritten returns what is held with the changes of a verdict; ok is false if they cannot be written.
func (a *Answer) rewritten(held Piece, v recovery.Verdict) (out Piece, ok bool) {
	h := a.h
	e := edit{recall: true, calls: h.calls.match(v.Calls), finish: v.Finish, legacy: h.calls.legacy, shown: string(h.text[:min(h.shown, len(h.text))])}
	e.asToolCalls(h.req)
	if !h.only && v.Text != nil {
		text := *v.Text
		e.text = &text
	}
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

// ranAway stops an answer that repeats itself if the client has no text of it, or if the configuration
// says so.
func (a *Answer) ranAway() *Broken {
	h := a.h
	if !h.runaway || h.last == nil {
		return nil
	}
	last := h.last
	h.last = nil
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
func (a *Answer) Runaway() bool { return a.h != nil && a.h.runaway }
