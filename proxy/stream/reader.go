package stream

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Errors for data that exceeds a limit.
var (
	ErrEventTooLong  = errors.New("stream: event too long")
	ErrAnswerTooLong = errors.New("stream: answer too long")
)

// Event is one server-sent event. Its slices are valid until the next call of Next.
type Event struct {
	Raw  []byte // all bytes including comments and the final blank line
	Name []byte // of an "event:" line
	Data []byte // of the "data:" lines, joined by newlines
	// HasData is false for events with only comments or other fields.
	HasData bool
}

// Reader splits a stream into server-sent events as the WHATWG specification defines them (lines end
// with LF, CRLF or CR), and keeps their bytes. Not safe for concurrent use.
type Reader struct {
	src      io.Reader
	buf      []byte
	from, to int // unread bytes
	max      int
	joined   []byte
	err      error
	start    bool // nothing has been read yet
	rush     bool // the last read nearly filled the buffer
	returns  bool // an event ended in CR, so lines may have no LF
	ahead    int  // length of the next event, if line found it; else 0
	mark     int  // length of the byte order mark at the start of the unread bytes
	made     time.Time
	lastByte atomic.Int64 // when the upstream last sent anything, as time since made
}

const byteOrderMark = "\xef\xbb\xbf"

// Buffer sizes: small for slow streams, of which there may be thousands, larger for fast ones.
const (
	firstBuffer = 1 << 10
	usualBuffer = 4 << 10
)

// NewReader returns a reader of src with events of at most max bytes.
func NewReader(src io.Reader, max int64) *Reader {
	return &Reader{src: src, buf: make([]byte, min(firstBuffer, max)), max: int(max), start: true, made: time.Now()}
}

// now returns the time since the reader was created. It is used for every event, because it costs half
// as much as time.Now. Safe for concurrent use.
func (r *Reader) now() time.Duration { return time.Since(r.made) }

// heard returns when the upstream last sent anything, on the clock of now. Safe for concurrent use.
func (r *Reader) heard() time.Duration { return time.Duration(r.lastByte.Load()) }

// Buffered returns the number of unread bytes in the buffer.
func (r *Reader) Buffered() int { return r.to - r.from }

// rest returns the unread bytes in the buffer.
func (r *Reader) rest() []byte { return r.buf[r.from:r.to] }

// Ended reports whether the source has no bytes beyond the buffer.
func (r *Reader) Ended() bool { return errors.Is(r.err, io.EOF) }

// Ready reports whether the next event is in the buffer. It may return false for unusual framing.
func (r *Reader) Ready() bool {
	if r.ahead == 0 {
		r.ahead = r.line()
	}
	b := r.buf[r.from:min(r.to, r.from+usualBuffer)] // limits the search, which runs for every event
	return r.ahead > 0 || len(b) > 0 && (bytes.Contains(b, []byte("\n\n")) || bytes.Contains(b, []byte("\n\r\n")))
}

// Next returns the next event. At the end of the stream it returns io.EOF, or io.ErrUnexpectedEOF if
// bytes of an incomplete event remain; those are never returned, as the specification requires. An event
// whose data is a whole object is complete without the blank line that some servers leave out at the end.
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

// dataField and eventField begin the lines of an event's data and name.
const (
	dataField  = "data:"
	eventField = "event:"
)

// line returns the length of the next event if it is buffered and has the usual form: at most a name,
// one line of data, and two LFs. Otherwise it returns 0.
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

// plain returns the next event, whose n bytes line has checked.
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

// lines returns the next event, in any form.
func (r *Reader) lines() (Event, error) {
	var ev Event
	data := 0      // number of data lines so far
	var end int    // the end of the last data line
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
				case eof && entire(ev.Data):
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
			if moved { // ev points into bytes that moved: start again
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

// parted reports whether two data lines belong to two events, because no JSON value spans both: some
// servers omit the blank line between events, and some clients read line by line.
func parted(data, next []byte) bool {
	return bytes.HasSuffix(data, []byte("}")) && (bytes.HasPrefix(next, []byte("{")) || string(next) == "[DONE]")
}

// entire reports whether data is complete: the end mark, or a whole JSON object.
func entire(data []byte) bool {
	return string(data) == "[DONE]" || len(data) > 0 && data[0] == '{' && transcript.Valid(data, maxDepth) == nil
}

// blankless returns the event that ends at end without a blank line, and adds one.
func (r *Reader) blankless(data, name []byte, end int) Event {
	raw := bytes.Clone(r.buf[r.from:end])
	if raw[len(raw)-1] != '\n' {
		raw = append(raw, '\n')
	}
	r.from, r.mark = end, 0
	return Event{Raw: append(raw, '\n'), Name: name, Data: data, HasData: true}
}

// fill reads more, and reports whether the unread bytes moved.
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

// cutLine returns the first line without its line end, and its length including that, or 0 if the line
// is incomplete: the last bytes are a line in any case. A CR at the end of the buffer waits for a possible
// LF. The first searched bytes have no line end.
func cutLine(b []byte, searched int, last bool) (line []byte, n int) {
	i := bytes.IndexAny(b[searched:], "\r\n")
	switch {
	case i < 0 && last:
		return b, len(b)
	case i < 0:
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
