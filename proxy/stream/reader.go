package stream

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"time"
)

// Errors for what is larger than its bound.
var (
	ErrEventTooLong  = errors.New("stream: event too long")
	ErrAnswerTooLong = errors.New("stream: answer too long")
)

// Event is one server-sent event. Its slices are valid until the next call of Next.
type Event struct {
	Raw  []byte // all bytes up to and including the blank line, comments included
	Name []byte // of an "event:" line
	Data []byte // of the "data:" lines, joined by newlines
	// HasData is false for events of comments and other fields only.
	HasData bool
}

// Reader splits a stream into server-sent events as the WHATWG specification
// defines them (lines end with LF, CRLF or CR), and keeps their bytes. Not
// safe for concurrent use.
type Reader struct {
	src      io.Reader
	buf      []byte
	from, to int // unread bytes
	max      int
	joined   []byte
	err      error
	start    bool // nothing was read yet
	rush     bool // more came at once than the buffer takes
	returns  bool // an event ended in CR: an LF may be far
	parts    bool // an event ended without a blank line: so may the last one
	ahead    int  // length of the next event, if Ready found it out by line; else 0
	mark     int  // length of the byte order mark that the unread bytes begin with
	made     time.Time
	lastByte atomic.Int64 // when the upstream last sent anything, by now
}

const byteOrderMark = "\xef\xbb\xbf"

// The sizes of the buffer: for the events of a slow stream, of which there may be
// thousands, and for those that come at once.
const (
	firstBuffer = 1 << 10
	usualBuffer = 4 << 10
)

// NewReader returns a reader of src with events of at most max bytes.
func NewReader(src io.Reader, max int64) *Reader {
	return &Reader{src: src, buf: make([]byte, min(firstBuffer, max)), max: int(max), start: true, made: time.Now()}
}

// now is the time since the reader was made: for what is measured with every
// event, as it costs half of time.Now. Any goroutine may ask.
func (r *Reader) now() time.Duration { return time.Since(r.made) }

// heard is when the upstream last sent anything. Any goroutine may ask.
func (r *Reader) heard() time.Duration { return time.Duration(r.lastByte.Load()) }

// Buffered is how many bytes are at hand.
func (r *Reader) Buffered() int { return r.to - r.from }

// rest is what is at hand and was not returned.
func (r *Reader) rest() []byte { return r.buf[r.from:r.to] }

// Ended reports whether the source has no more bytes than are at hand.
func (r *Reader) Ended() bool { return errors.Is(r.err, io.EOF) }

// Ready reports whether the next event is at hand without another read. It
// may say no where the framing is unusual.
func (r *Reader) Ready() bool {
	if r.ahead == 0 {
		r.ahead = r.line()
	}
	b := r.buf[r.from:min(r.to, r.from+usualBuffer)] // it is asked for every event
	return r.ahead > 0 || len(b) > 0 && (bytes.Contains(b, []byte("\n\n")) || bytes.Contains(b, []byte("\n\r\n")))
}

// Next returns the next event. At the end of the stream it returns io.EOF, or
// io.ErrUnexpectedEOF when bytes of an unfinished event are left; those are
// never returned, as the specification demands.
func (r *Reader) Next() (Event, error) {
	for !r.start {
		n := r.ahead
		if n == 0 {
			n = r.line()
		}
		if n > 0 {
			return r.plain(n), nil
		}
		if r.from < r.to || r.err != nil {
			break
		}
		if _, err := r.fill(); err != nil {
			return Event{}, err
		}
	}
	return r.lines()
}

// eachEvent passes the events in a stretch of a stream to f.
func eachEvent(events []byte, f func(ev *Event)) {
	r := NewReader(bytes.NewReader(events), int64(len(events))+1)
	for {
		ev, err := r.Next()
		if err != nil {
			return
		}
		f(&ev)
	}
}

// dataField begins the lines that matter, eventField those that name them.
const (
	dataField  = "data:"
	eventField = "event:"
)

// line is the length of the next event if it is at hand and like nearly all: at most a
// name, one line of data, and LF twice. It is 0 for any other.
func (r *Reader) line() int {
	b := r.buf[r.from:r.to]
	if r.returns {
		return 0
	}
	named := 0
	if len(b) > len(eventField) && string(b[:len(eventField)]) == eventField {
		named = bytes.IndexByte(b, '\n') + 1
		if named == 0 || bytes.IndexByte(b[:named-1], '\r') >= 0 {
			return 0
		}
	}
	b = b[named:]
	if len(b) < len(dataField) || string(b[:len(dataField)]) != dataField {
		return 0
	}
	n := bytes.IndexByte(b, '\n')
	if n < 0 || n+1 == len(b) || b[n+1] != '\n' || bytes.IndexByte(b[:n], '\r') >= 0 {
		return 0
	}
	return named + n + 2
}

// plain returns the next event, of n bytes by line.
func (r *Reader) plain(n int) Event {
	raw := r.buf[r.from : r.from+n]
	r.from += n
	r.ahead = 0
	ev := Event{Raw: raw, HasData: true}
	data := raw
	if raw[0] == eventField[0] {
		named := bytes.IndexByte(raw, '\n')
		_, ev.Name = cutField(raw[:named])
		data = raw[named+1:]
	}
	if data = data[len(dataField) : len(data)-2]; len(data) > 0 && data[0] == ' ' {
		data = data[1:]
	}
	ev.Data = data
	return ev
}

// lines returns the next event, whatever its lines are.
func (r *Reader) lines() (Event, error) {
	var ev Event
	data := 0      // data lines so far
	var end int    // of the last of them
	var own []byte // the name before it
	pos := r.from
	searched := 0 // bytes of the current line that hold no line end
	for {
		if r.start && (r.to >= len(byteOrderMark) || !strings.HasPrefix(byteOrderMark, string(r.buf[:r.to]))) {
			r.start = false
			if string(r.buf[:min(r.to, len(byteOrderMark))]) == byteOrderMark {
				r.mark = len(byteOrderMark)
				pos, searched = r.mark, 0
			}
		}
		line, n := cutLine(r.buf[pos:r.to], searched, r.err != nil)
		if n == 0 {
			searched = max(0, r.to-pos-1)
			if r.err != nil {
				switch eof := errors.Is(r.err, io.EOF); {
				case eof && r.parts && data > 0 && pos == r.to:
					return r.blankless(ev.Data, ev.Name, pos), nil
				case eof && r.to > r.from:
					return Event{}, io.ErrUnexpectedEOF
				}
				return Event{}, r.err
			}
			moved, err := r.fill()
			if err != nil {
				return Event{}, err
			}
			if moved { // the slices so far point into bytes that moved: once more
				ev, data, end, own, pos, searched = Event{}, 0, 0, nil, r.from+r.mark, 0
			}
			continue
		}
		pos, searched = pos+n, 0
		if len(line) == 0 {
			ev.Raw = r.buf[r.from:pos]
			r.returns = r.returns || r.buf[pos-1] == '\r'
			r.from, r.mark = pos, 0
			return ev, nil
		}
		field, value := cutField(line)
		switch string(field) {
		case "data":
			if data > 0 && parted(ev.Data, value) {
				return r.blankless(ev.Data, own, end), nil
			}
			ev.HasData = true
			end, own = pos, ev.Name
			switch data++; data {
			case 1:
				ev.Data = value
			case 2:
				r.joined = append(append(append(r.joined[:0], ev.Data...), '\n'), value...)
				ev.Data = r.joined
			default:
				r.joined = append(append(r.joined, '\n'), value...)
				ev.Data = r.joined
			}
		case "event":
			ev.Name = value
		}
	}
}

// parted reports whether two lines of data are those of two events, since no JSON has the
// one behind the other: some servers leave the blank line between events out, and some
// clients read line by line.
func parted(data, next []byte) bool {
	return bytes.HasSuffix(data, []byte("}")) && (bytes.HasPrefix(next, []byte("{")) || string(next) == "[DONE]")
}

// blankless returns the event that ends there without a blank line, and with one.
func (r *Reader) blankless(data, name []byte, end int) Event {
	ev := Event{Raw: append(bytes.Clone(r.buf[r.from:end]), '\n'), Name: name, Data: data, HasData: true}
	r.from, r.mark, r.parts = end, 0, true
	return ev
}

// fill reads more, and says whether the unread bytes moved for that.
func (r *Reader) fill() (moved bool, err error) {
	full := r.to == len(r.buf)
	if full && r.to-r.from >= r.max {
		return false, ErrEventTooLong
	}
	next := r.buf
	switch {
	case r.rush && len(r.buf) == firstBuffer:
		next = make([]byte, max(firstBuffer, min(usualBuffer, r.max)))
	case full && r.from == 0:
		next = make([]byte, min(2*len(r.buf), max(r.max, len(r.buf)+1)))
	}
	if full || r.from == r.to {
		copy(next, r.buf[r.from:r.to])
		moved = true
		r.to -= r.from
		r.from, r.buf = 0, next
	}
	room := r.buf[r.to:]
	n, err := r.src.Read(room)
	r.rush = n == len(room) && n > len(r.buf)/2
	if n > 0 {
		r.to += n
		r.lastByte.Store(int64(r.now()))
	}
	if err != nil {
		r.err = err
	}
	return moved, nil
}

// cutLine returns the first line without its end, and the bytes it takes; 0
// when it is not complete yet. A CR at the very end waits for its LF. The
// first searched bytes are known to hold no line end.
func cutLine(b []byte, searched int, last bool) (line []byte, n int) {
	i := bytes.IndexAny(b[searched:], "\r\n")
	if i < 0 {
		return nil, 0
	}
	i += searched
	switch {
	case b[i] == '\n':
		return b[:i], i + 1
	case i+1 < len(b) && b[i+1] == '\n':
		return b[:i], i + 2
	case i+1 < len(b) || last:
		return b[:i], i + 1
	}
	return nil, 0
}

// cutField splits a line at its first colon; one space after it is not part of the value.
func cutField(line []byte) (field, value []byte) {
	i := bytes.IndexByte(line, ':')
	if i < 0 {
		return line, nil
	}
	value = line[i+1:]
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	return line[:i], value
}
