package repair

import (
	"bytes"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/rebound-llm/rebound/recovery"
)

// watch implements recovery.Watch: it looks for an end of the answer that
// repeats one unit byte for byte. Each part of the answer has its own track, which
// keeps the last bytes. Every stride bytes it looks for the nearest place where its
// end stands before, and how far the text repeats with that period. Work is linear,
// whatever comes in.
type watch struct {
	cfg    RepetitionConfig
	tracks [recovery.PartArguments + 1]track
	away   bool
}

var _ recovery.Watch = (*watch)(nil)

const (
	stride = 1024 // bytes between two searches
	least  = 256  // bytes that a repetition covers at least
)

type track struct {
	tail   []byte // the last bytes, and some before them
	n      int    // bytes so far
	since  int    // bytes since the last search
	period int    // of the repetition that the last search found, 0 if none
	run    int    // bytes at the end that keep to it
}

func newWatch(cfg RepetitionConfig) *watch { return &watch{cfg: cfg} }

// Feed implements recovery.Watch.
func (w *watch) Feed(p recovery.Part, piece []byte) bool {
	if w.away || int(p) >= len(w.tracks) {
		return w.away
	}
	t := &w.tracks[p]
	if t.tail == nil {
		t.tail = make([]byte, 0, max(512, len(piece)))
	}
	for len(piece) > 0 && !w.away {
		n := min(len(piece), stride-t.since)
		t.tail = append(t.tail, piece[:n]...)
		t.n, t.since, piece = t.n+n, t.since+n, piece[n:]
		if t.since < stride {
			break
		}
		t.since = 0
		if t.n < w.cfg.Bytes {
			continue // nothing shorter matters
		}
		w.away = w.repeats(t, p)
		keep := 2*w.cfg.Unit + stride
		if t.tail = slices.Grow(t.tail, max(0, keep+3*stride-len(t.tail))); len(t.tail) > keep+stride {
			t.tail = append(t.tail[:0], t.tail[len(t.tail)-keep:]...)
		}
	}
	return w.away
}

// repeats looks for the period of the end, and reports whether it has gone on too long.
func (w *watch) repeats(t *track, p recovery.Part) bool {
	const half, few = least / 2, 32 // a few bytes are found fastest
	s := t.tail[max(0, len(t.tail)-2*w.cfg.Unit-stride):]
	near, end := s[max(0, len(s)-w.cfg.Unit-half):], s[len(s)-half:]
	before := near[:len(near)-1]
	at := -1
	if bytes.Contains(before, end[half-few:]) { // usual texts end here
		at = bytes.LastIndex(before, end)
	}
	if at < 0 {
		t.period, t.run = 0, 0
		return false
	}
	period, until := len(near)-half-at, len(s)
	same := period == t.period
	if same {
		until = stride + period // what stands before is known to repeat
	}
	cover := period
	for cover < until && s[len(s)-1-cover] == s[len(s)-1-cover+period] {
		cover++
	}
	switch {
	case same && cover == until:
		t.run += stride
	case cover < max(least, 2*period):
		t.period, t.run = 0, 0
		return false
	default:
		t.period, t.run = period, cover
	}
	return t.run >= w.need(s[len(s)-period:], p)
}

// need is how many bytes of a repeated unit make a runaway of it.
func (w *watch) need(unit []byte, p recovery.Part) int {
	limit, repetitions := w.cfg.Bytes, w.cfg.Repetitions
	switch look(unit, p == recovery.PartArguments) {
	case looksBlank:
		return 2 * limit // there is no reason for so much space
	case looksRule, looksBlob:
		if p == recovery.PartArguments {
			return math.MaxInt // base64, hex, a matrix of zeros, a drawing
		}
		limit, repetitions = 8*limit, 8*repetitions
	case looksCode:
		limit, repetitions = 4*limit, 4*repetitions
	case looksProse:
		if p == recovery.PartArguments {
			limit, repetitions = 4*limit, 4*repetitions
		}
	}
	if len(unit) >= 200 {
		repetitions /= 2
	}
	return max(limit, repetitions*len(unit))
}

type looks uint8

const (
	looksProse looks = iota
	looksCode        // markup, tables, code, JSON
	looksRule        // no letters: =====, |---|, 0 0 0
	looksBlob        // one run of letters and digits without a space
	looksBlank
)

// look says what kind of text a unit is. In arguments, which are JSON, escapes are no letters.
func look(unit []byte, escaped bool) looks {
	if n := len(unit); escaped && n > 1 && unit[n-1] == '\\' && unit[n-2] != '\\' {
		unit = append([]byte{'\\'}, unit[:n-1]...) // an escape that the cut between two units takes apart
	}
	var letters, spaces, blob, marks int
	for i := 0; i < len(unit); i++ {
		c := unit[i]
		switch {
		case c == '\\' && escaped && i+1 < len(unit):
			marks++
			if i++; unit[i] == 'n' || unit[i] == 't' || unit[i] == 'r' {
				spaces++
			}
		case c == ' ' || c == '\n' || c == '\t' || c == '\r':
			spaces++
		case c >= utf8.RuneSelf:
			letters++
		case c|0x20 >= 'a' && c|0x20 <= 'z':
			letters++
			blob++
		case c >= '0' && c <= '9' || c == '+' || c == '/' || c == '=' || c == '_' || c == '-':
			blob++
		}
		switch c {
		case '{', '}', '[', ']', '<', '>', '|', ';', '=', '"', '(', ')', '&':
			marks++
		}
	}
	switch {
	case spaces == len(unit), escaped && 2*spaces == len(unit) && marks == spaces: // all of it is \n, \t
		return looksBlank
	case letters == 0:
		return looksRule
	case blob == len(unit):
		return looksBlob
	case marks > 0 || 10*(letters+spaces) < 6*len(unit):
		return looksCode
	}
	return looksProse
}
