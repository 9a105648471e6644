package looptest

import "time"

// planted are the scenarios with a loop; kinds with more variants occur more often.
var planted = []scenario{
	{"same_error", SameError, "the same call fails in the same way; only times, ids and temporary names differ", anyForm, (*session).sameError, ""},
	{"same_result", SameResult, "the same call gives the same result, with nothing done in between", anyForm, (*session).sameResult, ""},
	{"alternation", Alternation, "two calls take turns, each with the same outcome as before", anyForm, (*session).alternation, ""},
	{"same_error_again", SameError, "the same call fails in the same way; only times, ids and temporary names differ", anyForm, (*session).sameError, ""},
	{"monologue", Monologue, "the same text without a call; the user only says to go on", anyForm, (*session).monologue, ""},
	{"flip_flop", Alternation, "an edit and its reverse take turns", anyForm, (*session).flipFlop, ""},
	{"no_progress", NoProgress, "many different calls that find nothing or what is already known", anyForm, (*session).noProgress, ""},
}

// failing are calls that fail in the same way each time, except for volatile parts.
const failing = `
	{suite} !> [{STAMP}] runner pid={PID}\nFAILED tests/test_core.py::{ident} - AssertionError: expected 200, got 500\n2 failed, 38 passed in {SECS}
	or
	@read {path} !> Error: ENOENT: no such file or directory, open '{path}'
	or
	@same {path} !> Error: could not find the exact text in {path}. The old text must match exactly, including whitespace and newlines.
	or
	@update_{noun} id={hash} amount=twelve !> {"error":{"code":"INVALID_ARGUMENT","message":"field 'amount' must be a number","request_id":"req_{HASH}","timestamp":"{STAMP}"}}
	or
	pyhton {path} !127> bash: line 1: pyhton: command not found
	or
	rg {ident} !127> /bin/sh: 1: rg: not found
	or
	npm run {ident} !> npm error Missing script: "{ident}"\nnpm error A complete log of this run can be found in: /root/.npm/_logs/2025-06-04T13_16_3{FEW}_{NUM}Z-debug-0.log
	or
	python -m {ident} !> Traceback (most recent call last):\n  File "/tmp/tmp{SHORT}_{FEW}/run.py", line 14, in <module>
	|     import {ident}\nModuleNotFoundError: No module named '{ident}'
	or
	psql -h localhost -p {num} -c 'select 1' !2> {STAMP} [{PID}] ERROR connection to server at "localhost" (127.0.0.1), port {num} failed: Connection refused after 0{FEW} ms
	or
	go build ./cmd/{ident} !> # command-line-arguments\n/tmp/go-build{BIG}/b001/main.go:41:9: undefined: {ident}
	or
	./scripts/{ident}.sh --all !124> Error: Command timed out after 120.0{FEW} seconds
	or
	./bin/{ident} !2> panic: invalid memory address or nil pointer dereference\n[signal SIGSEGV addr=0x{HASH} pc=0x{HASH2}]
	| goroutine {PID} [running]:\nmain.{ident}(0xc000{SHORT})`

// settled are calls whose results do not change.
const settled = `
	@read {path} => {code}
	or
	@list {folder} => {names}
	or
	@grep {ident} . => {hits}
	or
	git diff --stat -- {path} => {path} | 12 ++++--------\n 1 file changed, 4 insertions(+), 8 deletions(-)
	or
	@search_{noun}s query={ident} limit=10 => {"results":[{"id":"{hash}","title":"{say}"}],"total":1}
	or
	@rewrite {path} => File written: {path}
	or
	find . -name '{ident}*' -newer setup.cfg =>`

// source makes a call and its results: equal each time except for volatile parts.
type source struct {
	op
	result func() result
}

func constant(o op, r result) source { return source{o, func() result { return r }} }

// source returns one of a script's forms; the form must be one line.
func (s *session) source(script string) source {
	all, p := forms(script), s.player()
	l := all[s.IntN(len(all))][0].lines[0]
	return source{p.op(l.call), func() result {
		p.next()
		return result{p.fill(l.out), l.code}
	}}
}

// settledOr returns a source of calls that succeed, or with the given chance of calls that fail.
func (s *session) settledOr(chance float64) source {
	if s.chance(chance) {
		return s.source(failing)
	}
	return s.source(settled)
}

// different returns n sources with different calls.
func (s *session) different(n int, next func() source) (list []source) {
	used := map[string]bool{}
	for len(list) < n {
		if c := next(); !used[c.command()] {
			used[c.command()] = true
			list = append(list, c)
		}
	}
	return list
}

// texts returns a function for the model's texts around repeated calls: always the same text, always a new one,
// or none.
func (s *session) texts() func() string {
	fixed := s.say()
	switch s.IntN(3) {
	case 0:
		return func() string { return fixed }
	case 1:
		return func() string { return "" }
	}
	return s.say
}

func (s *session) repeat(list ...source) {
	say := s.texts()
	for i := range s.between(3, 6) {
		for _, c := range list {
			s.add(say(), c.op, c.result())
		}
		s.occurrence(i + 1)
	}
}

func (s *session) sameError()  { s.repeat(s.source(failing)) }
func (s *session) sameResult() { s.repeat(s.source(settled)) }

func (s *session) alternation() {
	s.repeat(s.different(2, func() source { return s.settledOr(0.5) })...)
}

func (s *session) flipFlop() {
	there := s.change(s.path())
	back := there
	back.a, back.b = there.b, there.a
	done := s.updated(there.path)
	s.repeat(constant(there, done), constant(back, done))
}

func (s *session) monologue() {
	text := s.pick("I will now analyze the ", "Let me continue with the implementation of the ", "The next step is to look into the ") + s.ident() +
		s.pick(" module and fix the remaining issues.", " function. I have a clear picture of what has to change and will proceed.",
			" code step by step. First I will read it, then I will change it, and finally I will run the tests.")
	nudge := s.pick("continue", "Please continue.", "go on",
		"Your answer contained no tool call. Use a tool, or say that you are done.",
		"[auto] No action was found in the last answer. Please continue with the task.")
	exact := s.chance(0.5)
	for i := range s.between(3, 6) {
		said := text
		if !exact && i > 0 {
			said = s.pick("Okay. ", "Sure, ", "", "Understood. ") + text + s.pick("", " ", "..", " Let me proceed.")
		}
		s.talk(said, nudge)
		s.occurrence(i + 1)
	}
}

// noProgress makes one seed step of each kind, whose results come back later from other commands, among searches
// without a hit.
func (s *session) noProgress() {
	f, dir := s.path(), s.folder()
	code, names := s.code(8), s.listing(7)
	s.add(s.say(), op{do: read, path: f}, result{out: code})
	s.add(s.say(), op{do: list, path: dir}, result{out: names})
	known := []step{
		{sh("cat < %s", f), result{out: code}}, {sh("less -F %s", f), result{out: code}}, {op{do: read, path: f, n: 1}, result{out: code}},
		{sh("head -n 200 %s", f), result{out: code}}, {sh("ls -1 %s/", dir), result{out: names}}, {sh("find %s -maxdepth 1 -printf '%%f\\n'", dir), result{out: names}},
	}
	s.Shuffle(len(known), func(i, j int) { known[i], known[j] = known[j], known[i] })
	for i := range s.between(12, 16) {
		var st step
		switch {
		case s.chance(0.35) && len(known) > 0:
			st, known = known[0], known[1:]
		case s.chance(0.5):
			st = step{op{do: grep, a: s.ident(), path: s.pick(".", "src", "tests")}, result{out: "No matches found"}}
		default:
			st = step{sh("find . -name '*%s*'", s.ident()), result{}}
		}
		s.add(s.say(), st.op, st.result)
		s.tick(time.Second)
		if (i+1)%6 == 0 { // the second occurrence is the 6th step, the third the 12th
			s.occurrence((i+1)/6 + 1)
		}
		s.seen[2] = len(s.turns)
	}
}
