package inspect

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// essence is a result's content without the wrappers of agents.
type essence struct {
	text   string // the beginning and end of a large one
	middle string // the part between them, not decoded further
	media  string // hashes of images and other media
}

func (s *step) essence() *essence {
	if !s.isParsed {
		s.open()
	}
	return &s.parsed
}

// outcome returns a hash of the result, equal in every process and for equivalent results. Volatile parts do not
// count, as trajectory.Outcome defines them; of a success only durations are volatile, because a clock that
// moved on is a new result.
func (s *step) outcome() uint64 {
	if s.hash == 0 {
		f, e := s.judge(), s.essence()
		volatile := s.seemsFailed()
		raw := binary.BigEndian.AppendUint64([]byte(e.media), trajectory.Outcome(e.text, volatile))
		if e.middle != "" {
			raw = binary.BigEndian.AppendUint64(raw, trajectory.Outcome(e.middle, volatile))
		}
		s.hash = trajectory.Hash(fmt.Sprint(f.Failed), string(raw))
	}
	return s.hash
}

// seemsFailed reports whether the result is a failure, or reads like one when the outcome is unknown, as in text
// protocols without exit codes.
func (s *step) seemsFailed() bool {
	if f := s.judge(); f.Failed || f.Rule != "success" || s.call.Reads() {
		return f.Failed
	}
	text := s.essence().text
	return len(text) < headWindow && s.history.rules.says(text, complaint)
}

// trivial reports whether a result has no content.
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
