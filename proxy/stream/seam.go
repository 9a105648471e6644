package stream

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rebound-llm/rebound/recovery"
)

// seam joins a continuation to the text that the client already has. Callers feed it text; once it has
// decided which text is new, it passes on the rest.
//
// A continuation may repeat the sent text from its beginning, or a tail of it; what follows is new. A
// replay must do the former, a model that was asked to repeat the last words does either, and a
// prefill may also do neither: then everything is new. Any other text is a different answer.
type seam struct {
	sent  string
	way   recovery.Way
	least int // shortest tail that counts as a repetition, in bytes

	same  int    // number of bytes that matched the beginning of sent; -1: they did not match, see got
	got   []byte // at most maxTail bytes and a piece
	again int    // after the decision: number of repeated bytes
	done  bool
}

const (
	// minTail is the shortest repeated tail that counts as a repetition and not as chance, in bytes,
	// for a prefill in characters, with a letter or digit: rules and indentations go on as they were. A repeated
	// word of this length counts.
	minTail = 12
	// maxTail limits the tail that is searched for a repetition, in bytes.
	maxTail = 1000
	// blanks are ignored before the text that a model was asked to repeat.
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

// feed adds text of the continuation. decided is false while it is open which text is new; diverged
// means that this is a different answer.
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

// finish decides at the end of the continuation: held-back text is new unless it is a repetition. A
// replay that ends early is a different answer.
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

// decide returns the new text of a continuation that does not repeat the sent text from its beginning.
// Only at the end must it decide.
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

// undecided reports whether more text could still show a longer overlap.
func (s *seam) undecided(got string) bool {
	for k := len(got) + 1; k <= min(len(s.sent), maxTail); k++ {
		if strings.HasPrefix(s.sent[len(s.sent)-k:], got) {
			return true
		}
	}
	return false
}

func isWord(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) }

// overlap returns the length of the longest prefix of got that repeats the end of the sent text.
func (s *seam) overlap(got string) int {
	if s.way == recovery.WayReplay {
		return 0
	}
	for k := min(len(got), len(s.sent), maxTail); k >= s.least && k > 0; k-- {
		if s.sent[len(s.sent)-k:] == got[:k] && (s.way != recovery.WayPrefill || utf8.RuneCountInString(got[:k]) >= minTail && strings.ContainsFunc(got[:k], isWord)) {
			return k
		}
	}
	return 0
}
