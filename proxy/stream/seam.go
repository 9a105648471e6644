package stream

import (
	"strings"
	"unicode/utf8"

	"github.com/rebound-llm/rebound/recovery"
)

// seam joins a continuation to the text that the client already has. Text is
// fed in; once it is decided what of it is new, the rest is passed on.
//
// A continuation may repeat what was sent from its beginning, or a tail of it;
// what follows is new. A replay must do the first, a model that was asked for
// the last words either, and a prefill may do neither: then all of it is new.
// Whatever does none of that is another answer.
type seam struct {
	sent  string
	way   recovery.Way
	least int // the shortest tail that counts as a repetition, in bytes

	same  int    // so many bytes came that are the beginning of sent; -1: what came is in got
	got   []byte // at most maxTail bytes and a piece
	again int    // once it is decided: bytes that were a repetition
	done  bool
}

const (
	// minTail is the length, in bytes and of a prefill in characters, from which a repeated
	// tail of what was sent counts as a repetition and not as chance: one word said twice is one.
	minTail = 12
	// maxTail bounds the tail that is searched for a repetition.
	maxTail = 1000
	// blanks may stand before what a model was asked to repeat.
	blanks = " \t\r\n"
)

func newSeam(r *recovery.Resume) *seam {
	s := &seam{sent: r.Sent, way: r.Way, least: max(r.Least, minTail)}
	if s.way == recovery.WayFetch { // the same answer, from its beginning
		s.way = recovery.WayReplay
	}
	if s.way == recovery.WayAsk {
		s.sent = strings.TrimLeft(s.sent, blanks)
		s.least = min(s.least, len(s.sent))
	}
	return s
}

// feed takes more text of the continuation. decided is false while it is
// open what is new; diverged means that this is another answer.
func (s *seam) feed(text string) (fresh string, decided, diverged bool) {
	if s.done {
		return text, true, false
	}
	if s.way == recovery.WayAsk && s.same == 0 {
		text = strings.TrimLeft(text, blanks)
	}
	if s.same < 0 {
		s.got = append(s.got, text...)
		return s.decide(false)
	}
	n := min(len(text), len(s.sent)-s.same)
	switch {
	case text[:n] != s.sent[s.same:s.same+n]:
		if s.way == recovery.WayReplay {
			return "", false, true
		}
		s.got, s.same = append([]byte(s.sent[:s.same]), text...), -1
		return s.decide(false)
	case s.same+n < len(s.sent):
		s.same += n
		return "", false, false
	}
	s.done, s.again = true, len(s.sent)
	return text[n:], true, false
}

// finish decides at the end of the continuation: what is held back is new
// unless it is a repetition. A replay that ends early is another answer.
func (s *seam) finish() (fresh string, diverged bool) {
	if s.done {
		return "", false
	}
	if s.same == len(s.sent) {
		return "", false
	}
	if s.same >= 0 {
		s.got = []byte(s.sent[:s.same])
	}
	fresh, _, diverged = s.decide(true)
	return fresh, diverged
}

// decide says what is new of a continuation that is not, or not all of, what was
// sent from its beginning; at the end at the latest.
func (s *seam) decide(end bool) (fresh string, decided, diverged bool) {
	got := string(s.got)
	if !end && s.undecided(got) {
		return "", false, false
	}
	s.done, s.again = true, s.overlap(got)
	anew := len(got) >= minTail && strings.HasPrefix(s.sent, got[:minTail])
	if s.again == 0 && (s.way != recovery.WayPrefill || anew) {
		return "", false, true
	}
	return got[s.again:], true, false
}

// undecided reports whether more text could still show an overlap longer than
// what is at hand.
func (s *seam) undecided(got string) bool {
	for k := len(got) + 1; k <= min(len(s.sent), maxTail); k++ {
		if strings.HasPrefix(s.sent[len(s.sent)-k:], got) {
			return true
		}
	}
	return false
}

// overlap is the length of the longest beginning of got that repeats the end
// of what was sent.
func (s *seam) overlap(got string) int {
	if s.way == recovery.WayReplay {
		return 0
	}
	for k := min(len(got), len(s.sent), maxTail); k >= s.least && k > 0; k-- {
		if s.sent[len(s.sent)-k:] == got[:k] && (s.way != recovery.WayPrefill || utf8.RuneCountInString(got[:k]) >= minTail) {
			return k
		}
	}
	return 0
}
