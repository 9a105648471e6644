package looptest

import "fmt"

// plantedRounds are the scenarios in which several calls come round again, or in
// which nothing but a number in the call grows.
var plantedRounds = []scenario{
	{"round_of_three", Cycle, "three calls come round again, each with the same outcome as before", anyForm, func(s *session) { s.round(3) }, ""},
	{"round_of_four", Cycle, "four calls come round again, each with the same outcome as before", anyForm, func(s *session) { s.round(4) }, ""},
	{"edit_build_test", Cycle, "the same edit, the same build and the same test with the same failure", anyForm, nil, `
		3-6 @same {path} => {updated}
		make build => built {hash}
		{suite} !> [{STAMP}] runner pid={PID}\nFAILED tests/test_core.py::{ident} - AssertionError: expected 200, got 500\n3 failed, 37 passed in {SECS}`},
	{"one_of_three", Cycle, "one call with two others by turns, all with the same outcomes", anyForm, (*session).backbone, ""},
	{"longer_timeout", Counter, "the limit rises, and the command fails in the same way each time", anyForm, nil, `
		4-8 timeout {double} ./scripts/{ident}.sh --all !124> Error: Command timed out after {double} seconds
		or
		4-8 timeout {tens} ./scripts/{ident}.sh --all !124> Error: Command timed out after {tens} seconds`},
}

// round is n different calls over and over.
func (s *session) round(n int) {
	s.repeat(s.different(n, func() source { return s.either(settled, 0.4, failing) })...)
}

func (s *session) backbone() {
	list := s.different(3, func() source { return s.either(settled, 0.4, failing) })
	s.repeat(list[0], list[1], list[0], list[2])
}

// risen notes that the same came back for the n-th time: a detector may speak
// at the third and must at the fourth.
func (s *session) risen(n int) {
	if n > 1 {
		s.occurrence(n - 1)
	}
}

// items is a page of a list.
func (s *session) items(n int) string {
	out := fmt.Sprintf(`{"page":%d,"items":[`, s.between(2, 90))
	for i := range n {
		if i > 0 {
			out += ","
		}
		out += fmt.Sprintf(`{"id":%d,"name":%q,"open":%t}`, 3+i, s.ident(), s.chance(0.5))
	}
	return out + `]}`
}
