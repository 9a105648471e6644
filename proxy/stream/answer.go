package stream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// Options of one attempt's answer.
type Options struct {
	Config      Config
	Format      Format
	Sink        *Sink
	Resume      *recovery.Resume
	Choices     int  // that the client asked for
	AcceptEmpty bool // an empty answer passes
	Started     time.Time
	Cancel      context.CancelCauseFunc // ends the attempt's request
}

// Broken is how a response failed to be an answer.
type Broken struct {
	Err      error  // transport error or one of this package's; nil with Event
	Event    []byte // the data of an error event, or an error object in place of an answer
	Empty    bool   // it ended properly without any content
	Diverged bool   // it did not repeat what the client has
	Stalled  bool   // it stopped without breaking
	Client   bool   // it was the client's side that failed
}

// Ways of breaking.
var (
	ErrEnded   = errors.New("stream: ended without a finish reason")
	ErrStalled = errors.New("stream: stalled")
	ErrReplay  = errors.New("stream: replay diverged from what was sent")
	ErrTaken   = errors.New("stream: continued by another attempt")
	ErrInvalid = errors.New("stream: answer is not valid JSON")
)

// Answer is one attempt's streamed answer. One goroutine uses it.
type Answer struct {
	o    Options
	resp *http.Response
	r    *Reader

	held   Piece // what came before the gate opened
	usage  recovery.Usage
	first  time.Time // first meaningful event
	rework bool      // events are rewritten to fit what the client already has
	seam   *seam

	finishes int
	done     bool // the end mark was seen

	mu      sync.Mutex // guards what the stall watch shares
	last    time.Time  // last event with data, later by the time that the client took since
	reading time.Time  // since when more is waited for; zero while it is not
	busy    time.Time  // since when it is not
	ended   bool       // every choice has ended
	tried   bool       // this pause was told of
	taken   bool
	rescue  context.CancelFunc // ends the attempt that may take over
	rescued chan struct{}      // closed when it has ended
}

// Open reads until the first meaningful event: the commit gate. Everything
// before it is held, so that a failure up to here can be retried unseen.
func Open(resp *http.Response, o Options) (*Answer, *Broken) {
	a := &Answer{o: o, resp: resp, r: NewReader(resp.Body, o.Config.MaxEvent)}
	a.rework = o.Sink.Released() > recovery.ReleasedNothing
	if o.Resume != nil {
		a.seam = &seam{sent: o.Resume.Sent, prefill: o.Resume.Prefill}
	}
	buffer := o.Config.MidStream == MidStreamBuffer
	var grace *time.Timer
	defer func() { stop(grace) }()
	for {
		ev, err := a.r.Next()
		if err != nil {
			if a.complete(err) && !a.first.IsZero() {
				return a, nil
			}
			if errors.Is(err, io.EOF) {
				return nil, &Broken{Empty: a.first.IsZero() && a.seam == nil, Err: ErrEnded}
			}
			return nil, &Broken{Err: err}
		}
		piece, d, broken := a.admit(ev)
		if broken != nil {
			return nil, broken
		}
		if buffer && ev.HasData {
			grace = a.grace(grace)
		}
		a.hold(piece)
		if int64(len(a.held.Bytes)) > o.Config.MaxAnswer {
			return nil, &Broken{Err: ErrAnswerTooLong}
		}
		meaningful := d.Kind >= KindReasoning && d.Kind <= KindCall
		ended := d.Kind == KindDone || d.Finishes > 0
		switch {
		case meaningful, ended && a.seam != nil && a.seam.done, d.Finishes > 0 && (d.Truthful || o.AcceptEmpty):
			if a.first.IsZero() {
				a.first = time.Now()
			}
		case ended && a.first.IsZero():
			return nil, &Broken{Empty: true, Err: ErrEnded}
		}
		if d.Kind == KindDone && !a.complete(io.EOF) {
			return nil, &Broken{Err: ErrEnded}
		}
		if d.Kind == KindDone || !buffer && !a.first.IsZero() {
			return a, nil
		}
	}
}

// finished reports whether every choice has ended.
func (a *Answer) finished() bool { return a.finishes >= max(1, a.o.Choices) }

// complete reports whether a stream that ended with err is whole. An upstream
// that ends properly may give fewer choices than were asked for.
func (a *Answer) complete(err error) bool {
	return a.finished() || a.finishes > 0 && errors.Is(err, io.EOF)
}

func (a *Answer) hold(p Piece) {
	a.held.Bytes = append(a.held.Bytes, p.Bytes...)
	a.held.Released = max(a.held.Released, p.Released)
	a.held.Text += p.Text
	if a.held.ID.ID == "" {
		a.held.ID = p.ID
	}
}

// admit decides what of one event goes to the client, and keeps account of it.
func (a *Answer) admit(ev Event) (Piece, Delta, *Broken) {
	d := a.o.Format.Delta(ev)
	if d.HasUsage {
		a.usage = d.Usage
	}
	switch d.Kind {
	case KindMalformed:
		return Piece{}, Delta{}, nil // skipped: the rest decides whether the answer is whole
	case KindError:
		if a.finished() {
			return Piece{}, Delta{}, nil // the answer was complete before it
		}
		return Piece{}, d, &Broken{Event: append([]byte(nil), ev.Data...)}
	case KindDone:
		a.done = true
		if a.seam != nil && !a.seam.done {
			return Piece{}, d, &Broken{Diverged: true, Err: ErrReplay}
		}
		if a.rework {
			return Piece{Bytes: a.o.Format.Done()}, d, nil
		}
		return Piece{Bytes: ev.Raw}, d, nil
	}
	a.finishes += d.Finishes
	if a.rework {
		return a.fit(ev, d)
	}
	return a.piece(ev.Raw, d), d, nil
}

// piece says what bytes reveal.
func (a *Answer) piece(raw []byte, d Delta) Piece {
	p := Piece{Bytes: raw, ID: d.ID}
	switch d.Kind {
	case KindReasoning:
		p.Released = recovery.ReleasedReasoning
	case KindText:
		p.Released, p.Text = recovery.ReleasedText, d.Text
		if d.Several || a.o.Choices > 1 {
			p.Released, p.Text = recovery.ReleasedCall, ""
		}
	case KindCall:
		p.Released = recovery.ReleasedCall
	}
	return p
}

// fit rewrites an event for a client that already has the beginning of an
// answer: one identity, no second role, no second reasoning, only new text.
func (a *Answer) fit(ev Event, d Delta) (Piece, Delta, *Broken) {
	if !ev.HasData {
		return Piece{Bytes: ev.Raw}, d, nil // a comment
	}
	id := a.o.Sink.identity()
	f := a.o.Format
	diverged := &Broken{Diverged: true, Err: ErrReplay}
	if a.seam != nil && !a.seam.done {
		switch d.Kind {
		case KindCall:
			return Piece{}, d, diverged
		case KindText:
			fresh, decided, other := a.seam.feed(d.Text)
			if other {
				return Piece{}, d, diverged
			}
			if !decided {
				fresh = ""
			}
			if fresh != d.Text {
				d.Text = fresh
				if fresh == "" {
					d.Kind = KindNothing
				}
				ev.Data = f.WithText(ev.Data, fresh, id)
			}
		}
		if d.Finishes > 0 && !a.seam.done {
			rest, other := a.seam.finish()
			if other {
				return Piece{}, d, diverged
			}
			if rest != "" {
				// Held back to the very end: an event of its own before this one.
				d.Kind, d.Text = KindText, rest
				raw := append(frame(f.TextEvent(ev.Data, rest, id)), frame(f.Later(ev.Data, id))...)
				return a.piece(raw, d), d, nil
			}
		}
	}
	if d.Finishes == 0 && !d.HasUsage && d.Kind <= KindReasoning {
		d.Kind = KindNothing
		return Piece{}, d, nil
	}
	return a.piece(frame(f.Later(ev.Data, id)), d), d, nil
}

// frame makes an event of data, which may have come as several lines.
func frame(data []byte) []byte {
	out := make([]byte, 0, len(data)+8)
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		out = append(out, "data: "...)
		out = append(out, line...)
		out = append(out, '\n')
	}
	return append(out, '\n')
}

// Usage returns what the upstream reported, and the time to the first
// meaningful event.
func (a *Answer) Usage() (recovery.Usage, time.Duration) {
	if a.first.IsZero() {
		return a.usage, 0
	}
	return a.usage, a.first.Sub(a.o.Started)
}

// Discard drops the answer.
func (a *Answer) Discard() {
	a.o.Cancel(nil)
	_ = a.resp.Body.Close()
}
