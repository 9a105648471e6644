package stream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Options of one attempt's answer.
type Options struct {
	Config      Config
	Format      Format
	Sink        *Sink
	Resume      *recovery.Resume
	Choices     int  // how many choices the client asked for
	AcceptEmpty bool // an empty answer is an answer
	// Fault reports whether what an upstream sent in place of an answer is an error; nil never does.
	Fault   func(body []byte) bool
	Started time.Time
	Cancel  context.CancelCauseFunc // ends the attempt's request

	Mender   recovery.Mender         // judges calls; nil: nothing is held. It must keep no part of a draft
	Request  *transcript.Body        // what the client asked for
	Ending   *Ending                 // how the target ends its answers; may be nil
	Life     *recovery.Life          // gets signs of life; may be nil
	Idle     time.Duration           // longest pause of the target, if it is known and shorter than Config.Idle
	Repaired func([]recovery.Repair) // gets what was mended, when it is delivered; may be nil
	Broke    func(cause string)      // gets the cause of a panic while the answer was judged; may be nil
	Explain  bool                    // the answer gets the gateway's identity
	ID       string                  // id of the request, for Explain
	ItemIDs  bool                    // keep the ids of a response's items
	// Thought gets the reasoning of an answer with calls, and the first of them, before its end is delivered; may be nil.
	Thought func(text string, first recovery.DraftCall)
	// Joined gets the id and the items of a response that several attempts have written, before its end is; may be nil.
	Joined func(id string, output []byte)
}

// Broken is how a response failed to be an answer.
type Broken struct {
	Err      error  // transport error, or one of this package's; nil with Event
	Event    []byte // the data of an error event, or an error object in place of an answer
	Empty    bool   // it ended properly without any content
	Diverged bool   // it did not repeat what the client has
	Stalled  bool   // it stopped without breaking
	Client   bool   // the client's side failed
	AnswerID string // id of the answer that never began, as in Deliverable

	Flaw   *recovery.Flaw // what is wrong with an answer that is complete, or repeats itself without end
	Odd    string         // OddJSON or OddEnd
	Flawed Deliverable    // the complete answer, which can be delivered as it is; nil for one that repeats itself
}

// Ways of breaking.
var (
	ErrEnded   = errors.New("stream: ended without a finish reason")
	ErrCut     = errors.New("stream: a chunk was cut")
	ErrStalled = errors.New("stream: stalled")
	ErrReplay  = errors.New("stream: replay diverged from what was sent")
	ErrTaken   = errors.New("stream: continued by another attempt")
	ErrInvalid = errors.New("stream: answer is not valid JSON")
)

// Oddities of answers that came to their end.
const (
	OddJSON = "not_json"  // the body is whole and begins like JSON, and cannot be read as such
	OddEnd  = "no_reason" // the end mark came without a finish reason, from a target that gives one
)

// Answer is one attempt's streamed answer. One goroutine uses it.
type Answer struct {
	o    Options
	resp *http.Response
	r    *Reader

	odd          []byte // events before the gate opened that may be an error; see suspect
	data         bool   // an event with data came
	held         Piece  // what came before the gate opened, without its text
	said         []byte // the text of held
	known        Known  // what the events had in common so far
	usage        recovery.Usage
	first        time.Time // first meaningful event
	continues    bool      // the client has the beginning of another answer
	follows      encoder   // rewrites them
	seam         *seam
	late         []byte // an event that goes out with the next one; see Delta
	pendingUsage *Event // a chunk of usage that may be the end; see accept
	ev           Event  // the event read last
	fed          bool   // ev has data, as next has seen
	h            *hold  // nil where nothing is held
	deferred     bool   // all of it is held for a later delivery
	noReason     bool   // its target gives finish reasons, but this answer has none
	called       bool   // a call came
	thought      []byte // reasoning so far, for Options.Thought
	noise        bool   // something came that could not be read

	finishes int
	finish   recovery.Finish // finish reason of the last choice that ended
	done     bool            // the end mark was seen
	opening  bool            // the gate is closed
	writes   bool            // something meaningful came, shown or not
	says     bool            // text came

	mu sync.Mutex // guards what the stall watch shares
	// Times are by the reader's clock.
	last    time.Duration // last event with data, plus the time that the client took since
	reading bool          // a read waits for the upstream
	since   time.Duration // when reading last changed
	longest time.Duration // longest pause of the upstream
	ended   bool          // every choice has ended
	slow    bool          // the next event may take long, as the arguments of a call do
	tried   bool          // this pause was reported
	refused bool          // nobody else continues it
	taken   bool
	over    bool               // Deliver has ended
	rescue  context.CancelFunc // ends the attempt that may take over
	rescued chan struct{}      // closed when it has ended
}

// Open reads until the first meaningful event: the commit gate. Everything
// before it is held, so that a failure up to here can be retried unseen.
func Open(resp *http.Response, o Options) (*Answer, *Broken) {
	a := &Answer{o: o, resp: resp, r: NewReader(resp.Body, o.Config.MaxEvent), opening: true, known: Known{keeps: o.ItemIDs}}
	if broken := a.open(); broken != nil {
		broken.AnswerID = a.AnswerID()
		return nil, broken
	}
	a.opening = false
	return a, nil
}

func (a *Answer) open() *Broken {
	a.prepare()
	var grace *time.Timer
	var patience func()
	defer func() {
		stop(grace)
		if patience != nil {
			patience()
		}
	}()
	for {
		if err := a.read(); err != nil {
			return a.unopened(err)
		}
		d, broken := a.gather()
		if broken != nil {
			return broken
		}
		a.suspect(d)
		a.showsLife(d)
		if (a.o.Config.MidStream == MidStreamBuffer || a.h != nil) && a.ev.HasData {
			grace = a.grace(grace)
		}
		if opens, broken := a.opens(d); opens || broken != nil {
			return broken
		}
		switch {
		case !a.writes || !a.ev.HasData:
		case patience == nil:
			patience = a.patience()
		default:
			a.noted()
		}
	}
}

// prepare decides what is done with the answer's events.
func (a *Answer) prepare() {
	o := &a.o
	if p, ok := o.Format.(interface{ Ping() []byte }); ok {
		o.Sink.KeepAlive(p.Ping())
	}
	again := o.Resume != nil && o.Resume.Way == recovery.WayListen // the same answer, from where it broke
	if again {
		a.meaningful()
	}
	lost := o.Life != nil && o.Life.Lost() // then what the client has is another's
	if a.continues = o.Sink.Released() > recovery.ReleasedNothing && !again && !lost; a.continues {
		a.follows = o.Format.encoder(o.Sink)
	}
	a.h = newHold(o)
	if o.Resume != nil && !o.Resume.Calls && !again {
		a.seam = newSeam(o.Resume)
	}
}

// unopened returns how an answer broke whose bytes ended while the gate was closed; nil if it is complete.
func (a *Answer) unopened(err error) *Broken {
	if a.pendingUsage != nil {
		p, broken := a.releaseUsage(true)
		if broken != nil {
			a.flawed(broken, p)
			return broken
		}
		a.hold(p)
	}
	if said := a.fault(err); said != nil {
		return &Broken{Event: said}
	}
	switch {
	case a.complete(err) && !a.first.IsZero():
		return a.conclude()
	case errors.Is(err, io.EOF):
		return &Broken{Empty: a.first.IsZero() && a.seam == nil, Err: ErrEnded}
	}
	return &Broken{Err: err, Stalled: errors.Is(err, ErrStalled)}
}

// gather adds what goes on of the event read last to what is held until the gate opens.
func (a *Answer) gather() (*Delta, *Broken) {
	piece, d, broken := a.accept(&a.ev)
	if broken != nil {
		a.flawed(broken, piece)
		return d, broken
	}
	a.hold(piece)
	if int64(len(a.held.Bytes)) > a.o.Config.MaxAnswer {
		return d, &Broken{Err: ErrAnswerTooLong}
	}
	return d, nil
}

// opens reports whether the gate opens with an event, or how the answer broke with it.
func (a *Answer) opens(d *Delta) (bool, *Broken) {
	meaningful := d.Kind >= KindReasoning && d.Kind <= KindCall
	ended := d.Kind == KindDone || d.Finishes > 0
	if ended && !meaningful && !d.Truthful {
		if said := a.fault(nil); said != nil {
			return false, &Broken{Event: said}
		}
	}
	switch {
	case meaningful, ended && a.seam != nil && a.seam.done, d.Finishes > 0 && (d.Truthful || a.o.AcceptEmpty):
		a.meaningful()
	case ended && a.first.IsZero():
		if d.finish == recovery.FinishCalls {
			a.o.wasHollow()
		}
		return false, &Broken{Empty: true, Err: ErrEnded}
	}
	if d.Kind == KindDone {
		if !a.complete(io.EOF) {
			return false, a.unfinished(&a.ev)
		}
		return true, nil
	}
	return a.o.Config.MidStream != MidStreamBuffer && !a.first.IsZero() && a.shows(), nil
}

// read reads the next event.
func (a *Answer) read() (err error) {
	a.ev, err = a.r.Next()
	return err
}

// finished reports whether every choice has ended.
func (a *Answer) finished() bool { return a.finishes >= max(1, a.o.Choices) }

// complete reports whether a stream that ended with err is whole. An upstream
// that ends properly may give fewer choices than were asked for.
func (a *Answer) complete(err error) bool {
	return a.finished() || a.finishes > 0 && errors.Is(err, io.EOF)
}

// shows reports whether the client may see what has come since the first
// meaningful event, or nothing has to be held.
func (a *Answer) shows() bool {
	if a.known.commits && a.held.Released == recovery.ReleasedReasoning && time.Since(a.first) < a.o.Config.ReasoningAfter {
		return false
	}
	return a.h == nil || a.h.judged || a.held.Released > recovery.ReleasedNothing
}

func (a *Answer) hold(p Piece) {
	if a.held.Bytes == nil && len(p.Frame) > 0 { // more of the kind comes with it
		n := len(p.Bytes) + a.r.Buffered()
		a.held.Bytes, a.held.Frame = make([]byte, 0, n), make([]byte, 0, n)
	}
	a.said = append(a.said, p.Text...) // joined once: there may be many pieces
	p.Text = ""
	a.held.add(p)
}

// admit returns what of one event goes to the client, and counts what it says.
func (a *Answer) admit(ev *Event, d *Delta) (Piece, *Delta, *Broken) {
	a.called = a.called || d.Kind == KindCall && d.calling()
	d.Truthful = d.Truthful || a.o.hollow(d)
	if d.HasUsage {
		a.usage = a.counted(d.Usage)
	}
	if a.o.Thought != nil && d.reasoning != nil && len(a.thought) <= maxThought {
		a.thought = append(a.thought, textOf(d.reasoning)...)
	}
	switch d.Kind {
	case KindNoise:
		a.noise = true
		return Piece{}, &Delta{}, nil // skipped: the rest decides whether the answer is whole
	case KindError, KindCut:
		if a.finished() {
			return Piece{}, &Delta{}, nil // the answer was complete before it
		}
		if d.Kind == KindCut {
			return Piece{}, d, &Broken{Err: ErrCut}
		}
		return Piece{}, d, &Broken{Event: append([]byte(nil), ev.Data...)}
	case KindDone:
		a.done = true
		if a.seam != nil && !a.seam.done {
			return Piece{}, d, &Broken{Diverged: true, Err: ErrReplay}
		}
		return Piece{Bytes: ev.Raw}, d, nil
	}
	if d.Finishes > 0 {
		a.finishes += d.Finishes
		a.finish = d.finish
	}
	if a.opening && d.Kind >= KindReasoning && d.Kind <= KindCall {
		a.writing(d)
	}
	if a.h != nil {
		a.h.follow(d)
	}
	switch {
	case a.continues:
		piece, broken := a.continued(ev, d)
		return piece, d, broken
	case a.o.Explain && ev.HasData:
		raw := a.brand(ev, d)
		return a.piece(raw, d), d, nil
	}
	return a.piece(ev.Raw, d), d, nil
}

// maxLate limits the events that wait for the next one, in bytes, beyond one event.
const maxLate = 4 << 10

// piece returns bytes for the client together with what they reveal.
func (a *Answer) piece(raw []byte, d *Delta) Piece {
	if d.late && len(a.late) < maxLate {
		a.late = append(a.late, raw...)
		return Piece{}
	}
	framed := 0 // bytes of it that clients put the answer together by
	if a.late != nil && d.item.event != eventOther {
		framed = len(a.late)
		raw, a.late = append(a.late, raw...), nil
	}
	if d.frame {
		framed = len(raw)
	}
	p := Piece{Bytes: raw, ID: d.ID, Seq: d.seq}
	if framed > 0 {
		p.Frame = raw[:framed:framed]
	}
	switch d.Kind {
	case KindReasoning:
		p.Released = recovery.ReleasedReasoning
	case KindText:
		p.Released, p.Text = recovery.ReleasedText, d.Text
		if d.Several || d.apart || a.o.Choices > 1 {
			p.Released, p.Text = recovery.ReleasedCall, ""
		}
	case KindCall:
		p.Released = recovery.ReleasedCall
	}
	return p
}

// Usage returns what the upstream reported, and the time to the first
// meaningful event.
func (a *Answer) Usage() (recovery.Usage, time.Duration) {
	if a.first.IsZero() {
		return a.usage, 0
	}
	return a.usage, a.first.Sub(a.o.Started)
}

// Drain reads the rest of the answer, for its usage.
func (a *Answer) Drain() {
	defer a.Discard()
	for !a.done && a.read() == nil {
		d := a.o.Format.Decode(&a.ev, &a.known)
		if d.HasUsage {
			a.usage = d.Usage
		}
		a.done = d.Kind == KindDone
	}
}

// Discard drops the answer.
func (a *Answer) Discard() {
	a.o.Cancel(nil)
	_ = a.resp.Body.Close()
}
