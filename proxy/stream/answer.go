package stream

import (
	"context"
	"errors"
	"io"
	"math/bits"
	"net/http"
	"sync"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Options configures how one attempt's answer is read and delivered.
type Options struct {
	Config      Config
	Format      Format
	Sink        *Sink
	Resume      *recovery.Resume
	Choices     int  // how many choices the client asked for
	AcceptEmpty bool // an empty answer is valid
	// Fault reports whether a body in place of an answer is an error; nil means never.
	Fault func(body []byte) bool
	// Secrets removes the gateway's secrets from an error event that is passed on as it came; nil means that none is.
	Secrets interface{ Bytes(text []byte) []byte }
	Started time.Time
	Cancel  context.CancelCauseFunc // ends the attempt's request

	Mender   recovery.Mender         // judges and repairs calls; nil: nothing is held back. It must keep no part of a draft
	Request  *transcript.Body        // the client's request
	Ending   *Ending                 // how the target ends its answers
	Life     *recovery.Life          // receives signs of life
	Idle     time.Duration           // longest pause of the target, if it is known and shorter than Config.Idle
	Repaired func([]recovery.Repair) // receives the repairs when the answer is delivered; may be nil
	Broke    func(cause string)      // receives the cause of a panic while the answer was judged; may be nil
	Explain  bool                    // gives the answer the gateway's id, see brand
	ID       string                  // id of the request, for Explain
	ItemIDs  func(ids []string)      // receives the ids of a response's items before its end is delivered; nil: they are not collected
	// Thought receives the reasoning of an answer with calls, and the first call, before the end of
	// the answer is delivered; may be nil.
	Thought func(text string, first recovery.DraftCall)
	// Joined receives the id and the items of a response that several attempts have written, before
	// its end is delivered; may be nil.
	Joined func(id string, output []byte)
}

// Broken describes how a response failed to be an answer.
type Broken struct {
	Err      error  // transport error, or one of this package's; nil with Event
	Event    []byte // the data of an error event, or an error object in place of an answer
	Empty    bool   // the answer ended properly without content
	Diverged bool   // a continuation or replay does not match the text that the client has
	Stalled  bool   // the upstream stopped sending without closing the connection
	Client   bool   // the client's connection failed
	AnswerID string // id of an answer that broke before Open returned, as in Deliverable

	Flaw   *recovery.Flaw // what is wrong with a complete answer, or one that repeats itself endlessly
	Odd    string         // one of the irregularities below, if it is no error
	Flawed Deliverable    // the complete answer, which can still be delivered unchanged; nil for one that repeats itself
}

// Errors of broken answers.
var (
	ErrEnded   = errors.New("stream: ended without a finish reason")
	ErrCut     = errors.New("stream: a chunk was cut")
	ErrStalled = errors.New("stream: stalled")
	ErrReplay  = errors.New("stream: replay diverged from what was sent")
	ErrTaken   = errors.New("stream: continued by another attempt")
	ErrInvalid = errors.New("stream: answer is not valid JSON")
)

// Irregularities of answers that arrived completely.
const (
	OddJSON = "not_json"  // the body begins like JSON and closes all its brackets, but is not valid JSON
	OddForm = "unknown"   // valid JSON that is neither an answer in the format nor an error
	OddText = "text"      // no JSON at all: a page of a captive portal, or of another server
	OddEnd  = "no_reason" // the end mark came without a finish reason, from a target that usually gives one
)

// Answer is one attempt's streamed answer. One goroutine uses it.
type Answer struct {
	o    Options
	resp *http.Response
	r    *Reader

	odd          []byte // events before the gate opened that may be an error; see suspect
	data         bool   // an event with data came
	held         queue  // events before the gate opened
	known        Known  // what the events had in common so far
	usage        recovery.Usage
	first        time.Time // first meaningful event
	continues    bool      // the client has the beginning of the answer, from another attempt
	follows      encoder   // rewrites events for such a client
	seam         *seam
	late         []byte // events that are sent together with the next one; see Delta.late
	pendingUsage *Event // a chunk of usage that may be the end; see accept
	ev           Event  // the last event read
	fed          bool   // ev has data; set by next
	h            *hold  // nil if nothing is held back
	deferred     bool   // the whole answer is held for later delivery
	noReason     bool   // the target usually gives finish reasons, but this answer has none
	bare         bool   // nor has it an end mark
	called       bool   // a call has arrived
	thought      []byte // reasoning so far, for Options.Thought
	noise        bool   // an unreadable event has arrived
	unread       bool   // the rest is passed on unread, because an event is too long

	finishes int             // finish reasons, several of one choice too
	ends     uint64          // bits of the choices that ended
	finish   recovery.Finish // finish reason of the last choice that ended
	done     bool            // the end mark has arrived
	opening  bool            // the gate is still closed
	writes   bool            // meaningful content has arrived, delivered or not
	says     bool            // text has arrived
	mayGoOn  bool            // a finish reason is no end, because one came with the first content, or before some: it may be on every chunk
	beyond   bool            // content has come behind the last finish reason

	mu sync.Mutex // guards what the stall watch shares
	// Times are by the reader's clock.
	last    time.Duration // last event with data, plus the time spent waiting for the client since then
	reading bool          // a read waits for the upstream
	since   time.Duration // when reading last changed
	longest time.Duration // longest pause of the upstream
	ended   bool          // every choice has ended, or may have ended
	slow    bool          // the next event may take long, as the arguments of a call do
	tried   bool          // the current pause was reported
	refused bool          // a continuation of the answer was refused
	taken   bool
	over    bool               // Deliver has ended
	rescue  context.CancelFunc // ends the attempt that may take over
	rescued chan struct{}      // closed when it has ended
}

// Open reads until the first meaningful event, the commit gate. Nothing is sent before, so a failure
// up to here can be retried without the client noticing.
func Open(resp *http.Response, o Options) (*Answer, *Broken) {
	a := &Answer{o: o, resp: resp, r: NewReader(resp.Body, o.Config.MaxEvent), opening: true, known: Known{keeps: o.ItemIDs != nil}}
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
		a.showsLife(d)
		if (a.o.Config.MidStream == MidStreamBuffer || a.h != nil || a.first.IsZero()) && a.ev.HasData {
			grace = a.grace(grace)
		}
		if opens, broken := a.opens(d); opens || broken != nil {
			return broken
		}
		switch {
		case !a.writes || !a.ev.HasData:
		case patience == nil:
			patience = a.watchStalls()
		default:
			a.noteEvent()
		}
	}
}

// prepare chooses how the answer's events are rewritten and held back.
func (a *Answer) prepare() {
	o := &a.o
	if p, ok := o.Format.(interface{ Ping() []byte }); ok {
		o.Sink.KeepAlive(p.Ping())
	}
	again := o.Resume != nil && o.Resume.Way == recovery.WayListen // the same answer, from where it broke
	if again {
		a.meaningful()
	}
	if a.continues = o.Sink.Released() > recovery.ReleasedNothing && !again && !o.Life.Lost(); a.continues { // of a lost one the client has another answer
		a.follows = o.Format.encoder(o.Sink)
	}
	a.h = newHold(o)
	if o.Resume != nil && !o.Resume.Calls && !again {
		a.seam = newSeam(o.Resume)
	}
}

// unopened returns how an answer broke whose bytes ended before the gate opened, or nil if it is
// complete.
func (a *Answer) unopened(err error) *Broken {
	p, broken := a.implied(err)
	if broken == nil && a.complete(err) && !a.first.IsZero() {
		if p, broken = a.judgeRest(p); broken == nil {
			a.hold(p)
			return nil
		}
	}
	if broken != nil {
		a.flawed(broken, p)
		return broken
	}
	switch said := a.fault(err); {
	case said != nil && !a.data:
		return &Broken{Err: ErrInvalid, Event: said, Odd: OddText}
	case said != nil:
		return &Broken{Event: said}
	case a.tooLong(err):
		a.unread = true
		return nil
	case errors.Is(err, io.EOF) && a.called:
		return a.unfinished(&a.ev)
	case a.first.IsZero() && (a.finished() || a.seam == nil && errors.Is(err, io.EOF)):
		return a.empty()
	case errors.Is(err, io.EOF):
		err = ErrEnded
	}
	return &Broken{Err: err, Stalled: errors.Is(err, ErrStalled)}
}

// empty returns how an answer broke that ended without content.
func (a *Answer) empty() *Broken {
	if a.finish == recovery.FinishCalls {
		a.o.wasHollow()
	}
	return &Broken{Empty: true, Err: ErrEnded}
}

// gather adds the last event to what is held until the gate opens.
func (a *Answer) gather() (*Delta, *Broken) {
	piece, d, broken := a.accept(&a.ev)
	if broken != nil {
		a.flawed(broken, piece)
		return d, broken
	}
	a.hold(piece)
	if a.full() && a.first.IsZero() && !a.writes {
		return d, &Broken{Err: ErrAnswerTooLong}
	}
	return d, nil
}

// opens reports whether the gate opens with this event, or how the answer broke.
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
	case a.first.IsZero() && (d.Kind == KindDone || ended && d.item.event == eventEnd): // a chunk with a reason may be the first of many
		return false, a.empty()
	}
	if d.Kind == KindDone {
		if !a.complete(io.EOF) {
			return false, a.unfinished(&a.ev)
		}
		return true, nil
	}
	return (a.o.Config.MidStream != MidStreamBuffer || a.full()) && !a.first.IsZero() && a.shows(), nil
}

// full reports whether no more of the answer may be held back.
func (a *Answer) full() bool { return int64(len(a.held.Bytes)) > a.o.Config.MaxAnswer }

// read reads the next event.
func (a *Answer) read() (err error) {
	a.ev, err = a.r.Next()
	return err
}

// finished reports whether every choice has ended.
func (a *Answer) finished() bool { return bits.OnesCount64(a.ends) >= max(1, a.o.Choices) }

// complete reports whether a stream that ended with err is complete. An upstream that closes properly
// may give fewer choices than the client asked for.
func (a *Answer) complete(err error) bool {
	return a.finished() && !a.beyond || a.finishes > 0 && errors.Is(err, io.EOF)
}

// shows reports whether the held events may be delivered now, because they contain something for the
// client or nothing has to be held back.
func (a *Answer) shows() bool {
	if a.known.commits && a.held.Released == recovery.ReleasedReasoning && time.Since(a.first) < a.o.Config.ReasoningAfter {
		return false
	}
	return a.h == nil || a.h.state.judged() || a.held.Released > recovery.ReleasedNothing
}

func (a *Answer) hold(p Piece) {
	if a.held.Bytes == nil && len(p.Frame) > 0 { // room for further events that are buffered
		n := len(p.Bytes) + a.r.Buffered()
		a.held.Bytes, a.held.Frame = make([]byte, 0, n), make([]byte, 0, n)
	}
	a.held.add(p)
}

// admit updates the answer's state with an event and returns the bytes for the client.
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
		return Piece{}, &Delta{}, nil // skipped: the other events decide whether the answer is complete
	case KindError, KindCut:
		switch over := a.finished() && !a.beyond && !a.first.IsZero(); {
		case over && a.mayGoOn && a.o.Secrets != nil: // the client sees the error, since the answer may be incomplete
			return Piece{Bytes: a.o.Secrets.Bytes(ev.Raw)}, &Delta{}, nil
		case over:
			return Piece{}, &Delta{}, nil // the answer was already complete
		case d.Kind == KindCut:
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
	if d.Kind >= KindReasoning && d.Kind <= KindCall && d.item.event == eventOther {
		a.beyond = a.finished()
		a.mayGoOn = a.mayGoOn || a.beyond || d.Finishes > 0 && !a.writes
	}
	if d.Finishes > 0 {
		a.finishes += d.Finishes
		a.ends |= max(d.over, 1)
		a.finish, a.beyond = d.finish, false
	}
	if a.opening && d.Kind >= KindReasoning && d.Kind <= KindCall {
		a.noteContent(d)
	}
	if a.h != nil {
		a.h.follow(d)
	}
	switch {
	case d.again:
		return Piece{}, d, nil // SDKs refuse it
	case a.continues:
		piece, broken := a.continued(ev, d)
		return piece, d, broken
	case a.o.Explain && ev.HasData:
		raw := a.brand(ev, d)
		return a.piece(raw, d), d, nil
	}
	return a.piece(ev.Raw, d), d, nil
}

// maxLate limits the events that wait for the next one, in bytes; one event may exceed it.
const maxLate = 4 << 10

// piece returns a Piece of raw bytes with the kind of content that they contain.
func (a *Answer) piece(raw []byte, d *Delta) Piece {
	ping := a.late != nil && d.Kind == KindNothing && d.item.event == eventOther // it keeps its place, as Anthropic's first ping has one
	if (d.late || ping) && len(a.late) < maxLate {
		a.late = append(a.late, raw...)
		return Piece{}
	}
	framed := 0 // leading bytes with events from which clients build the answer's structure
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

// Usage returns the usage that the upstream reported, and the time to the first meaningful event.
func (a *Answer) Usage() (recovery.Usage, time.Duration) {
	if a.first.IsZero() {
		return a.usage, 0
	}
	return a.usage, a.first.Sub(a.o.Started)
}

// Drain reads the rest of the answer to learn its usage.
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

// Discard cancels the request and drops the answer.
func (a *Answer) Discard() {
	a.o.Cancel(nil)
	_ = a.resp.Body.Close()
}
