package looptest

import "fmt"

// plantedRounds are the scenarios in which several calls repeat in a round, or in which only a number in the
// call grows.
var plantedRounds = []scenario{
	{"round_of_three", Cycle, "three calls come round again, each with the same outcome as before", anyForm, func(s *session) { s.round(3) }, ""},
	{"page_empty", Counter, "the page rises behind the last one; each is empty", anyForm, nil, `
		0-3 @{noun}_records filter=open page={count} => {LIST}
		4-8 @{noun}_records filter=open page={count} => []
		or
		0-3 @list_{noun}s page_number={count} per_page=50 => {LIST}
		4-8 @list_{noun}s page_number={count} per_page=50 => {"results":[],"total":9,"page":{count},"next_page":{next}}
		or
		4-8 gh api repos/acme/{noun}/issues --method GET -F page={count} => {"items":[],"page":{count}}
		or
		4-8 @list_{noun}s pageIndex={count} => Page {count} is behind the last page: no more items.
		or
		4-8 curl -s 'http://localhost:8080/{noun}s?page={count}&per_page=50' => {"data":[],"has_more":false}
		or
		4-8 @list_{noun}s page={count} => No results found.`},
	{"round_of_four", Cycle, "four calls come round again, each with the same outcome as before", anyForm, func(s *session) { s.round(4) }, ""},
	{"sleeps", Counter, "one sleep after the other, each longer, and nothing is looked at", anyForm, nil, `
		4-8 sleep {count} =>
		or
		4-8 sleep {double}s =>
		or
		4-8 sleep {tens} && echo done => done`},
	{"edit_build_test", Cycle, "the same edit, the same build and the same test with the same failure", anyForm, nil, `
		3-6 @same {path} => {updated}
		make build => built {hash}
		{suite} !> [{STAMP}] runner pid={PID}\nFAILED tests/test_core.py::{ident} - AssertionError: expected 200, got 500\n3 failed, 37 passed in {SECS}`},
	{"offset_behind", Counter, "the offset rises behind the end of a file", anyForm, nil, `
		0-3 @read {path} {offset} => {CODE}
		4-8 @read {path} {offset} =>
		or
		4-8 @read {path} {offset} !> Error: Offset {offset} is beyond end of file (12 lines total)
		or
		4-8 @read {path} {offset} => <system-reminder>Warning: the file exists but is shorter than the provided offset ({offset}). The file has 12 lines.</system-reminder>
		or
		4-8 @read {path} {offset} => (no more lines)`},
	{"one_of_three", Cycle, "one call with two others by turns, all with the same outcomes", anyForm, (*session).backbone, ""},
	{"next_id", Counter, "the id rises; none is found", anyForm, nil, `
		4-8 @get_{noun} id={count} !> Error: {noun} {count} not found
		or
		4-8 @lookup table={noun} key={noun}-{count} => {"error":{"code":"NOT_FOUND","message":"no {noun} with id {count}"}}
		or
		4-8 curl -s http://localhost:8080/{noun}s/{tens} => {"detail":"Not found."}
		or
		4-8 @get_{noun} id={tens} => 404 Not Found`},
	{"same_page", Counter, "the page or the amount rises, and the same comes back each time", anyForm, nil, `
		4-8 head -n {double} {path} => {list}
		or
		4-8 git log -n {tens} --oneline -- {ident} => {list}
		or
		4-8 @search_{noun} query={ident} limit={double} => {list}
		or
		4-8 @list_{noun}s page={count} per_page=50 => {list}`},
	{"longer_timeout", Counter, "the limit rises, and the command fails in the same way each time", anyForm, nil, `
		4-8 timeout {double} ./scripts/{ident}.sh --all !124> Error: Command timed out after {double} seconds
		or
		4-8 timeout {tens} ./scripts/{ident}.sh --all !124> Error: Command timed out after {tens} seconds`},
}

// round repeats n different calls.
func (s *session) round(n int) {
	s.repeat(s.different(n, func() source { return s.settledOr(0.4) })...)
}

func (s *session) backbone() {
	list := s.different(3, func() source { return s.settledOr(0.4) })
	s.repeat(list[0], list[1], list[0], list[2])
}

// risen records that the same result came for the n-th time: a detector may report at the third and must at the
// fourth.
func (s *session) risen(n int) {
	if n > 1 {
		s.occurrence(n - 1)
	}
}

// items returns a page of a list.
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
