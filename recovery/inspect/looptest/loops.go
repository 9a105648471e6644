package looptest

import (
	"fmt"
	"strings"
	"time"
)

// planted are the scenarios with a loop; those with more variants come more often.
var planted = []scenario{
	{"same_error", SameError, "the same call fails in the same way; only times, ids and temporary names differ", anyForm, (*session).sameError},
	{"same_result", SameResult, "the same call gives the same result, with nothing done in between", anyForm, (*session).sameResult},
	{"alternation", Alternation, "two calls take turns, each with the same outcome as before", anyForm, (*session).alternation},
	{"same_error_again", SameError, "the same call fails in the same way; only times, ids and temporary names differ", anyForm, (*session).sameError},
	{"monologue", Monologue, "the same text without a call; the user only says to go on", anyForm, (*session).monologue},
	{"flip_flop", Alternation, "an edit and its reverse take turns", anyForm, (*session).flipFlop},
	{"no_progress", NoProgress, "many different calls that find nothing or what is already known", anyForm, (*session).noProgress},
}

// source makes a call and its outcomes: alike each time but for volatile parts.
type source struct {
	op
	result func() result
}

func constant(o op, r result) source { return source{o, func() result { return r }} }

// failures are a shell's command, its exit code and its output. Words in braces
// are filled in: {id}, {path}, {n} and {name} once, all others anew each time.
var failures = []struct {
	command string
	code    int
	out     string
}{
	{"pyhton {path}", 127, "bash: line 1: pyhton: command not found"},
	{"rg {id}", 127, "/bin/sh: 1: rg: not found"},
	{"npm run {id}", 1, "npm error Missing script: \"{id}\"\nnpm error A complete log of this run can be found in: /root/.npm/_logs/{log}-debug-0.log"},
	{"python -m {id}", 1, "Traceback (most recent call last):\n  File \"/tmp/tmp{tmp}/run.py\", line 14, in <module>\n    import {id}\nModuleNotFoundError: No module named '{id}'"},
	{"psql -h localhost -p {n} -c 'select 1'", 2, "{stamp} [{pid}] ERROR connection to server at \"localhost\" (127.0.0.1), port {n} failed: Connection refused after {ms} ms"},
	{"go build ./cmd/{id}", 1, "# command-line-arguments\n/tmp/go-build{ns}/b001/main.go:41:9: undefined: {id}"},
	{"./scripts/{id}.sh --all", 124, "Error: Command timed out after 120.{ms} seconds"},
	{"./bin/{id}", 2, "panic: invalid memory address or nil pointer dereference\n[signal SIGSEGV addr=0x{hex} pc=0x{hex}]\ngoroutine {pid} [running]:\nmain.{id}(0xc000{hex})"},
}

// failing is a call that fails in the same way each time.
func (s *session) failing() source {
	f, id, n := s.path(), s.ident(), fmt.Sprint(s.between(3000, 9000))
	once := func(text string) string { return strings.NewReplacer("{path}", f, "{id}", id, "{n}", n).Replace(text) }
	anew := func(text string) string {
		return strings.NewReplacer("{stamp}", s.stamp(), "{log}", strings.NewReplacer(":", "_", ".", "_").Replace(s.stamp()), "{pid}", fmt.Sprint(s.pid()),
			"{ms}", fmt.Sprintf("%03d", s.IntN(90)), "{ns}", fmt.Sprint(s.Uint32()), "{hex}", s.hex(8), "{tmp}", s.chars(8, "abcdefghijklmnopqrstuvwxyz0123456789_")).Replace(text)
	}
	switch s.IntN(6) {
	case 0:
		names := s.idents(3)
		return source{s.testCommand(), func() result { return s.tests(2, names) }}
	case 1:
		return constant(op{do: read, path: f}, result{"Error: ENOENT: no such file or directory, open '" + f + "'", 1})
	case 2:
		return constant(s.change(f), result{"Error: could not find the exact text in " + f + ". The old text must match exactly, including whitespace and newlines.", 1})
	case 3:
		out := `{"error":{"code":"INVALID_ARGUMENT","message":"field 'amount' must be a number","request_id":"req_{hex}","timestamp":"{stamp}"}}`
		return source{domain("update_"+s.noun(), arg{"id", s.hex(8)}, arg{"amount", "twelve"}), func() result { return result{anew(out), 1} }}
	}
	row := failures[s.IntN(len(failures))]
	return source{sh("%s", once(row.command)), func() result { return result{anew(once(row.out)), row.code} }}
}

// settled is a call whose result does not change.
func (s *session) settled() source {
	f, id := s.path(), s.ident()
	switch s.IntN(7) {
	case 0:
		return constant(op{do: read, path: f}, result{out: s.code(s.between(4, 20))})
	case 1:
		return constant(op{do: list, path: s.folder()}, result{out: s.listing(6)})
	case 2:
		return constant(op{do: grep, a: id, path: "."}, result{out: s.hits(id, 4)})
	case 3:
		return constant(sh("git diff --stat"), result{out: " " + f + " | 12 ++++--------\n 1 file changed, 4 insertions(+), 8 deletions(-)"})
	case 4:
		return constant(domain("search_"+s.noun()+"s", arg{"query", id}, arg{"limit", 10}), result{out: `{"results":[{"id":"` + s.hex(8) + `","title":"` + s.say() + `"}],"total":1}`})
	case 5:
		return constant(op{do: write, path: f, a: s.code(5)}, result{out: "File written: " + f})
	}
	return constant(sh("find . -name '%s*' -newer setup.cfg", id), result{})
}

// texts says what the model writes around repeated calls: always the same,
// always something else, or nothing.
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

func (s *session) sameError()  { s.repeat(s.failing()) }
func (s *session) sameResult() { s.repeat(s.settled()) }

func (s *session) alternation() {
	a, b := s.failing(), s.settled()
	switch s.IntN(3) {
	case 0:
		a = s.settled()
	case 1:
		b = s.failing()
	}
	for a.command() == b.command() {
		b = s.settled()
	}
	if s.chance(0.5) {
		a, b = b, a
	}
	s.repeat(a, b)
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

// noProgress has one seed step of each kind, whose results come back later in
// other clothes, among searches without a hit.
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
		s.seen[2] = len(s.turns)
		switch i + 1 {
		case 6:
			s.seen[0] = len(s.turns)
		case 12:
			s.seen[1] = len(s.turns)
		}
	}
}
