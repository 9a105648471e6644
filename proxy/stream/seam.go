package stream

import "strings"

// seam joins a continuation to the text that the client already has. Text is
// fed in; once it is decided what of it is new, the rest is passed on.
type seam struct {
	sent    string
	prefill bool
	got     strings.Builder
	done    bool
}

// minOverlap is the length in bytes from which a repeated tail of what was
// sent counts as a repetition and not as chance.
const minOverlap = 12

// feed takes more text of the continuation. decided is false while it cannot
// be told yet what is new; diverged means that this is another answer.
func (s *seam) feed(text string) (fresh string, decided, diverged bool) {
	if s.done {
		return text, true, false
	}
	s.got.WriteString(text)
	got := s.got.String()
	if n := min(len(got), len(s.sent)); got[:n] == s.sent[:n] && (!s.prefill || n >= minOverlap || n == len(s.sent)) {
		// It begins as the answer began.
		if n < len(s.sent) {
			return "", false, false
		}
		s.done = true
		return got[n:], true, false
	}
	if !s.prefill {
		return "", false, true
	}
	if s.undecided(got) {
		return "", false, false
	}
	s.done = true
	again := s.overlap(got)
	if again == 0 && len(got) >= minOverlap && strings.HasPrefix(s.sent, got[:minOverlap]) {
		return "", false, true // it began anew and became another answer
	}
	return got[again:], true, false
}

// undecided reports whether more text could still show an overlap longer than
// what is at hand, or a restart.
func (s *seam) undecided(got string) bool {
	if strings.HasPrefix(s.sent, got) {
		return true
	}
	for k := len(got) + 1; k <= min(len(s.sent), maxOverlap); k++ {
		if strings.HasPrefix(s.sent[len(s.sent)-k:], got) {
			return true
		}
	}
	return false
}

// maxOverlap bounds the tail that is searched for a repetition.
const maxOverlap = 400

// overlap is the length of the longest beginning of got that repeats the end
// of what was sent.
func (s *seam) overlap(got string) int {
	for k := min(len(got), len(s.sent), maxOverlap); k >= minOverlap; k-- {
		if s.sent[len(s.sent)-k:] == got[:k] {
			return k
		}
	}
	return 0
}

// finish decides at the end of the continuation: what is held back is new
// unless it is a repetition. A replay that ends early is another answer.
func (s *seam) finish() (fresh string, diverged bool) {
	if s.done {
		return "", false
	}
	s.done = true
	got := s.got.String()
	if !s.prefill {
		return "", got != s.sent
	}
	if len(got) >= minOverlap && strings.HasPrefix(s.sent, got) && !strings.HasSuffix(s.sent, got) {
		return "", true // it began anew and stopped before it came to the end of what was sent
	}
	return got[s.overlap(got):], false
}
