package repair

import (
	"bytes"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/rebound-llm/rebound/recovery"
)

// watch implements recovery.Watch: it detects that the end of an answer repeats one unit
// byte for byte. Each part of the answer has its own track, which keeps the last
// bytes. Every stride bytes it searches for the previous occurrence of the end, whose
// distance is the period, and measures how far back the text repeats with that period.
// The work is linear for any input.
type watch struct {
	cfg      RepetitionConfig
	tracks   [recovery.PartArguments + 1]track
	detected bool // it stays true
}

var _ recovery.Watch = (*watch)(nil)

const (
	stride      = 1024 // bytes between two searches
	minRepeated = 256  // minimum bytes that a repetition covers
)

type track struct {
	tail        []byte // at least the last bytes that a search needs
	total       int    // bytes so far
	sinceSearch int    // bytes since the last search
	period      int    // bytes of the unit that the last search found, 0 if none
	run         int    // bytes at the end that repeat with that period
}

func newWatch(cfg RepetitionConfig) *watch { return &watch{cfg: cfg} }

// Feed implements recovery.Watch.
func (w *watch) Feed(p recovery.Part, piece []byte) bool {
	if w.detected || int(p) >= len(w.tracks) {
		return w.detected
	}
	t := &w.tracks[p]
	if t.tail == nil {
		t.tail = make([]byte, 0, max(512, len(piece)))
	}
	for len(piece) > 0 && !w.detected {
		n := min(len(piece), stride-t.sinceSearch)
		t.tail = append(t.tail, piece[:n]...)
		t.total, t.sinceSearch, piece = t.total+n, t.sinceSearch+n, piece[n:]
		if t.sinceSearch < stride {
			break
		}
		t.sinceSearch = 0
		if t.total < w.cfg.Bytes {
			continue // too short for a runaway
		}
		w.detected = w.repeats(t, p)
		keep := 2*w.cfg.Unit + stride
		if t.tail = slices.Grow(t.tail, max(0, keep+3*stride-len(t.tail))); len(t.tail) > keep+stride {
			t.tail = append(t.tail[:0], t.tail[len(t.tail)-keep:]...)
		}
	}
	return w.detected
}

// repeats searches for the period of the end, and reports whether it has repeated too long.
func (w *watch) repeats(t *track, p recovery.Part) bool {
	const half, few = minRepeated / 2, 32 // few: a short search rules out most texts
	s := t.tail[max(0, len(t.tail)-2*w.cfg.Unit-stride):]
	near, end := s[max(0, len(s)-w.cfg.Unit-half):], s[len(s)-half:]
	before := near[:len(near)-1]
	at := -1
	if bytes.Contains(before, end[half-few:]) { // false for most texts
		at = bytes.LastIndex(before, end)
	}
	if at < 0 {
		t.period, t.run = 0, 0
		return false
	}
	period, until := len(near)-half-at, len(s)
	same := period == t.period
	if same {
		until = stride + period // the text before that is known to repeat
	}
	cover := period
	for cover < until && s[len(s)-1-cover] == s[len(s)-1-cover+period] {
		cover++
	}
	switch {
	case same && cover == until:
		t.run += stride
	case cover < max(minRepeated, 2*period):
		t.period, t.run = 0, 0
		return false
	default:
		t.period, t.run = period, cover
	}
	return t.run >= w.bytesNeeded(s[len(s)-period:], p)
}

// bytesNeeded returns how many bytes of a repeated unit make a runaway.
func (w *watch) bytesNeeded(unit []byte, p recovery.Part) int {
	limit, repetitions := w.cfg.Bytes, w.cfg.Repetitions
	switch classifyUnit(unit, p == recovery.PartArguments) {
	case unitBlank:
		return 2 * limit // no answer needs so much white space
	case unitRule, unitBlob:
		if p == recovery.PartArguments {
			return math.MaxInt // base64, hex, a matrix of zeros, an ASCII drawing
		}
		limit, repetitions = 8*limit, 8*repetitions
	case unitCode:
		limit, repetitions = 4*limit, 4*repetitions
	case unitProse:
		if p == recovery.PartArguments {
			limit, repetitions = 4*limit, 4*repetitions
		}
	}
	if len(unit) >= 200 {
		repetitions /= 2
	}
	return max(limit, repetitions*len(unit))
}

type unitKind uint8

const (
	unitProse unitKind = iota
	unitCode           // markup, tables, code, JSON
	unitRule           // no letters: =====, |---|, 0 0 0
	unitBlob           // letters and digits without a space: base64, hex
	unitBlank          // white space
)

// classifyUnit returns the kind of a unit. escaped means that the text is JSON, whose escapes are no letters.
func classifyUnit(unit []byte, escaped bool) unitKind {
	if n := len(unit); escaped && n > 1 && unit[n-1] == '\\' && unit[n-2] != '\\' {
		unit = append([]byte{'\\'}, unit[:n-1]...) // the boundary between two units splits an escape
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
		return unitBlank
	case letters == 0:
		return unitRule
	case blob == len(unit):
		return unitBlob
	case marks > 0 || 10*(letters+spaces) < 6*len(unit):
		return unitCode
	}
	return unitProse
}
