package stream

import (
	"bytes"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// Sink is the client's side of one exchange. Attempts write to it one after the other. A timer writes
// keep-alive comments between events. Safe for concurrent use.
type Sink struct {
	Greeting string // a one-line comment at the start of a stream; set it before the answer begins

	w     http.ResponseWriter
	rc    http.ResponseController
	cfg   Config
	awake http.Header // headers of a response that begins with a comment
	ping  []byte      // the event that keeps a begun answer alive; nil: a comment

	mu        sync.Mutex
	began     time.Time // zero of the clock of now
	committed bool      // status and headers were sent
	blank     bool      // with them blanks before an answer that is not streamed
	closed    bool
	released  recovery.Released
	sent      bytes.Buffer // text that the client has
	unsafe    bool         // the text cannot be continued
	id        Identity
	frame     bytes.Buffer // structural events that the client has
	seq       int
	timer     *time.Timer
	last      time.Duration // time of the last write, or of KeepAwake before the first, on the clock of now
	idle      bool          // the last write was a keep-alive
	first     time.Time     // first byte of an answer
	err       error
}

// NewSink returns the sink of one response. The server limits the time of writes.
func NewSink(w http.ResponseWriter, cfg Config) *Sink {
	return &Sink{w: w, rc: *http.NewResponseController(w), cfg: cfg}
}

// KeepAwake lets a waiting client get signs of life: comments if its answer is streamed, else blanks, see Blank. h has
// the headers of a response that begins with one.
func (s *Sink) KeepAwake(h http.Header, streamed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.awake, s.last = h, s.now()
	if streamed && s.cfg.KeepAliveAfter > 0 {
		s.timer = time.AfterFunc(s.cfg.KeepAliveAfter, s.tick)
	}
}

// Blank passes on that an upstream has sent a blank before its answer, as a sign of life, if the client has waited for
// KeepAliveAfter or has got one before. JSON may begin with blanks, and any answer may follow them.
func (s *Sink) Blank() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.awake == nil || s.closed || s.released > recovery.ReleasedNothing || s.cfg.KeepAliveAfter <= 0 {
		return
	}
	if !s.committed {
		if s.now()-s.last < s.cfg.KeepAliveAfter {
			return
		}
		maps.Copy(s.w.Header(), s.awake)
		s.w.Header().Set("Content-Type", "application/json")
		s.blank = true
		s.commit(http.StatusOK)
	}
	s.write([]byte("\n"))
}

// now returns the time since its first call. It is used for every write, because it costs half as much
// as time.Now. The lock is held.
func (s *Sink) now() time.Duration {
	if s.began.IsZero() {
		s.began = time.Now()
		return 0
	}
	return time.Since(s.began)
}

// tick writes a comment if nothing was written for long. The comment is one line: a blank line after
// it would dispatch an event in clients that have seen an id.
func (s *Sink) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.err != nil {
		return
	}
	quiet, every, sign := s.cfg.KeepAliveAfter, s.cfg.KeepAliveEvery, []byte(": keep-alive\n")
	if s.ping != nil && s.released > recovery.ReleasedNothing {
		quiet, every, sign = min(quiet, pingEvery), min(every, pingEvery), s.ping
	}
	if s.idle {
		quiet = every
	}
	if d := s.now() - s.last; d < quiet {
		s.timer.Reset(quiet - d)
		return
	}
	if !s.committed {
		h := s.w.Header()
		maps.Copy(h, s.awake)
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
		h.Set("Cache-Control", "no-cache")
		s.commit(http.StatusOK)
	}
	s.write(sign)
	s.idle = true
	s.timer.Reset(every)
}

// pingEvery is the longest silence of an answer in a format with pings.
const pingEvery = 10 * time.Second

// KeepAlive sets the event that keeps an answer alive once it has begun.
func (s *Sink) KeepAlive(ping []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ping == nil && s.timer != nil {
		s.timer.Reset(min(s.cfg.KeepAliveAfter, pingEvery))
	}
	s.ping = ping
}

// Begin sends status and headers, unless they were sent. It does not keep header.
func (s *Sink) Begin(status int, header http.Header) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin(status, header)
}

func (s *Sink) begin(status int, header http.Header) {
	if s.committed {
		return
	}
	maps.Copy(s.w.Header(), header)
	s.commit(status)
	if s.Greeting != "" {
		s.write([]byte(s.Greeting))
	}
}

func (s *Sink) commit(status int) {
	s.committed = true
	s.w.WriteHeader(status)
}

// Write sends a piece and flushes it.
func (s *Sink) Write(p Piece) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.id.ID == "" {
		s.id = p.ID
	}
	if s.released = max(s.released, p.Released); s.released > recovery.ReleasedNothing && s.first.IsZero() {
		s.first = time.Now()
	}
	s.seq = max(s.seq, p.Seq)
	switch {
	case s.unsafe || p.Text == "" && len(p.Frame) == 0:
	case int64(s.sent.Len()+len(p.Text)+s.frame.Len()+len(p.Frame)) > s.cfg.MaxAnswer || s.cfg.MidStream != MidStreamContinue && p.Text != "":
		s.unsafe, s.sent = true, bytes.Buffer{}
	default:
		s.sent.WriteString(p.Text)
		s.frame.Write(p.Frame)
	}
	s.write(p.Bytes)
	s.idle = false
	return s.err
}

func (s *Sink) write(b []byte) {
	if s.err != nil {
		return
	}
	now := s.now()
	if _, err := s.w.Write(b); err != nil {
		s.err = err
		return
	}
	s.err = s.rc.Flush()
	s.last = now
}

// Whole sends a complete response in one write. It returns ErrEnded if a stream has begun meanwhile.
func (s *Sink) Whole(status int, header http.Header, body []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.committed && !s.blank {
		return ErrEnded
	}
	s.begin(status, header)
	s.released, s.first = recovery.ReleasedCall, time.Now()
	if s.err == nil {
		_, s.err = s.w.Write(body)
	}
	return s.err
}

// Sent returns the text that the client has, empty if it cannot be continued.
func (s *Sink) Sent() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent.String()
}

// identity returns the identity of the stream that the client has.
func (s *Sink) identity() Identity {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// Committed reports whether status and headers are out.
func (s *Sink) Committed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.committed
}

// Released returns what kind of content the client has.
func (s *Sink) Released() recovery.Released {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.released
}

// FirstByte returns the time from started to the first byte of the answer, or 0 without an answer.
func (s *Sink) FirstByte(started time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first.IsZero() {
		return 0
	}
	return s.first.Sub(started)
}

// Close ends the keep-alive comments.
func (s *Sink) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
	}
}

// Last returns the number of the last event that the client has; false if it has none.
func (s *Sink) Last() (int, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seq, s.frame.Len() > 0
}

// shown returns what the client has of an answer; lost means that it was not recorded.
func (s *Sink) shown() (frame []byte, sent string, seq int, lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.frame.Bytes(), s.sent.String(), s.seq, s.unsafe
}
