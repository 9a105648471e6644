package repair

import (
	"bytes"
	"math"
	"unicode/utf8"

	"github.com/rebound-llm/rebound/recovery"
)

// watch implements recovery.Watch: it looks for an end of the answer that
// repeats one unit byte for byte. Each part of the answer has its own track.
//
// A track keeps the last bytes. Every stride bytes it looks for the period that
// covers most of their end, and then counts how long the answer keeps to it.
// Both are linear: a few operations a byte, whatever comes in. Nothing shorter
// than the configured bytes is a runaway, so they are only kept at first.
type watch struct {
	cfg    RepetitionConfig
	tracks [recovery.PartArguments + 1]track
	z      []int
	tail   []byte
	away   bool
}

var _ recovery.Watch = (*watch)(nil)

// stride is how many bytes pass between two searches for a period.
const stride = 1024

type track struct {
	early  []byte // the beginning, while it is too short to matter; no ring yet
	ring   []byte // its length is a power of two
	n      int    // bytes so far
	since  int    // bytes since the last search
	period int    // 0: none found
	run    int    // bytes at the end that keep to it
	need   int    // bytes that make it a runaway
}

func newWatch(cfg RepetitionConfig) *watch { return &watch{cfg: cfg} }

// Feed implements recovery.Watch.
func (w *watch) Feed(p recovery.Part, piece []byte) bool {
	if w.away || int(p) >= len(w.tracks) {
		return w.away
	}
	t := &w.tracks[p]
	if t.ring == nil {
		if len(t.early)+len(piece) < w.cfg.Bytes {
			if t.early == nil {
				t.early = make([]byte, 0, max(512, len(piece)))
			}
			t.early = append(t.early, piece...)
			return false
		}
		size := 8192
		for size < 2*w.cfg.Unit+2*stride {
			size *= 2
		}
		t.ring = make([]byte, size)
		w.take(t, p, t.early)
		t.early = nil
	}
	return w.take(t, p, piece)
}

// take follows the next bytes of a track.
func (w *watch) take(t *track, p recovery.Part, piece []byte) bool {
	mask := len(t.ring) - 1
	for len(piece) > 0 {
		if t.period == 0 { // nothing to count up to the next search
			n := min(len(piece), max(1, stride-t.since), len(t.ring)-t.n&mask)
			copy(t.ring[t.n&mask:], piece[:n])
			t.n += n
			t.since += n
			piece = piece[n:]
		} else {
			c := piece[0]
			piece = piece[1:]
			if t.ring[(t.n-t.period)&mask] == c {
				t.run++
			} else {
				t.period, t.run = 0, 0
			}
			t.ring[t.n&mask] = c
			t.n++
			t.since++
		}
		if t.since >= stride && t.period == 0 {
			w.search(t, p)
		}
		if t.period > 0 && t.run >= t.need {
			w.away = true
			return true
		}
	}
	return false
}

// recurs reports whether the end of the track stands a second time where a
// repetition of at most cfg.Unit bytes would have it. A period that counts covers
// 256 bytes and its unit twice: half of that stands one period before, too. Usual
// texts end here.
func (w *watch) recurs(t *track) bool {
	const half, few = 128, 32 // a few bytes are found fastest
	size := min(t.n, w.cfg.Unit+half)
	if size <= half {
		return false
	}
	mask := len(t.ring) - 1
	from, to := (t.n-size)&mask, t.n&mask
	if from < to {
		w.tail = append(w.tail[:0], t.ring[from:to]...)
	} else {
		w.tail = append(append(w.tail[:0], t.ring[from:]...), t.ring[:to]...)
	}
	end := w.tail[size-half:]
	for at := half - few; ; at++ { // where the last few bytes may begin
		n := bytes.Index(w.tail[at:size-1], end[half-few:])
		if n < 0 {
			return false
		}
		if at += n; bytes.Equal(w.tail[at-(half-few):at], end[:half-few]) {
			return true
		}
	}
}

// search finds the period that covers most of the end, by the Z function of
// the reversed bytes: z[i] is how far they agree with themselves i further on.
func (w *watch) search(t *track, p recovery.Part) {
	t.since = 0
	if !w.recurs(t) {
		return
	}
	size := min(t.n, len(t.ring))
	mask := len(t.ring) - 1
	w.tail = w.tail[:0]
	for i := 1; i <= size; i++ {
		w.tail = append(w.tail, t.ring[(t.n-i)&mask])
	}
	if cap(w.z) < size {
		w.z = make([]int, len(t.ring))
	}
	z, s := w.z[:size], w.tail
	best, cover := 0, 0
	for i, l, r := 1, 0, 0; i < size; i++ {
		z[i] = 0
		if i < r {
			z[i] = min(r-i, z[i-l])
		}
		for i+z[i] < size && s[z[i]] == s[i+z[i]] {
			z[i]++
		}
		if i+z[i] > r {
			l, r = i, i+z[i]
		}
		if i <= w.cfg.Unit && z[i] >= i && z[i]+i > cover {
			best, cover = i, z[i]+i
		}
	}
	if cover < 256 {
		return
	}
	unit := make([]byte, best)
	for i := range unit {
		unit[i] = s[best-1-i]
	}
	t.period, t.run, t.need = best, cover, w.need(unit, p)
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
