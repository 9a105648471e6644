package inspect

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// essence is what a result says, without the wrappers of agents.
type essence struct {
	text   string // head and tail of a large one
	middle string // what is between them, as it came
	media  string // marks of images and the like
}

func (s *step) essence() *essence {
	if !s.opened {
		s.open()
	}
	return &s.said
}

// outcome is a hash of what the result says, the same in every process: equal where two
// calls brought the same. What differs each time does not count, as trajectory.Outcome
// says; of a success all counts but how long something took: a clock that moved on is news.
func (s *step) outcome() uint64 {
	if s.hash == 0 {
		f, e := s.judge(), s.essence()
		volatile := s.wrong()
		raw := binary.BigEndian.AppendUint64([]byte(e.media), trajectory.Outcome(e.text, volatile))
		if e.middle != "" {
			raw = binary.BigEndian.AppendUint64(raw, trajectory.Outcome(e.middle, volatile))
		}
		s.hash = trajectory.Hash(fmt.Sprint(f.Failed), string(raw))
	}
	return s.hash
}

// wrong reports whether the result is a failure, or reads like one where nothing
// tells how the call ended, as in text protocols without exit codes.
func (s *step) wrong() bool {
	if f := s.judge(); f.Failed || f.Rule != "success" || s.made.Reads() {
		return f.Failed
	}
	text := s.essence().text
	return len(text) < headWindow && s.history.rules.says(text, complaint)
}

// trivial reports whether a result brings nothing.
func (l *lists) trivial(text string) bool {
	if len(text) > maxReceipt {
		return false
	}
	low := strings.ToLower(strings.Trim(text, " \t\r\n.\"'"))
	switch low {
	case "", "[]", "{}", "null", "none", "0":
		return true
	}
	for p := range l.words["nothing"] {
		if strings.HasPrefix(low, p) {
			return true
		}
	}
	return low[0] == '{' && (strings.Contains(low, ":[]") || strings.Contains(low, ": []"))
}

func digit(c byte) bool { return c-'0' < 10 }
