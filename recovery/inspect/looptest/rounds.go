package looptest

import "fmt"

// plantedRounds are the scenarios in which several calls come round again, or in
// which nothing but a number in the call grows.
var plantedRounds = []scenario{
	{"round_of_three", Cycle, "three calls come round again, each with the same outcome as before", anyForm, func(s *session) { s.round(3) }},
	{"page_empty", Counter, "the page rises behind the last one; each is empty", anyForm, (*session).pagesBehind},
	{"round_of_four", Cycle, "four calls come round again, each with the same outcome as before", anyForm, func(s *session) { s.round(4) }},
	{"sleeps", Counter, "one sleep after the other, each longer, and nothing is looked at", anyForm, (*session).sleeps},
	{"edit_build_test", Cycle, "the same edit, the same build and the same test with the same failure", anyForm, (*session).sameEditBuildTest},
	{"offset_behind", Counter, "the offset rises behind the end of a file", anyForm, (*session).offsetBehind},
	{"one_of_three", Cycle, "one call with two others by turns, all with the same outcomes", anyForm, (*session).backbone},
	{"next_id", Counter, "the id rises; none is found", anyForm, (*session).nextID},
	{"same_page", Counter, "the page or the amount rises, and the same comes back each time", anyForm, (*session).samePage},
	{"longer_timeout", Counter, "the limit rises, and the command fails in the same way each time", anyForm, (*session).longerTimeout},
}

// round is n different calls over and over.
func (s *session) round(n int) {
	var list []source
	used := map[string]bool{}
	for len(list) < n {
		c := s.settled()
		if s.chance(0.4) {
			c = s.failing()
		}
		if name := c.command(); !used[name] {
			used[name] = true
			list = append(list, c)
		}
	}
	s.repeat(list...)
}

func (s *session) sameEditBuildTest() {
	f, names := s.path(), s.idents(4)
	tests := s.testCommand()
	s.repeat(constant(s.change(f), s.updated(f)), constant(sh("make build"), result{out: "built " + s.hex(6)}),
		source{tests, func() result { return s.tests(3, names) }})
}

func (s *session) backbone() {
	a, b, c := s.settled(), s.failing(), s.settled()
	for a.command() == b.command() || b.command() == c.command() || a.command() == c.command() {
		a, b, c = s.settled(), s.failing(), s.settled()
	}
	s.repeat(a, b, a, c)
}

// rising makes calls in which the number n rises, in equal steps or by doubling.
func (s *session) rising(n, by int, call func(n int) (op, result)) {
	say := s.texts()
	for i := range s.between(4, 8) {
		o, r := call(n)
		s.add(say(), o, r)
		s.risen(i + 1)
		if n += by; by == 0 {
			n *= 2
		}
	}
}

// risen notes that the same came back for the n-th time: a detector may speak
// at the third and must at the fourth.
func (s *session) risen(n int) {
	if n > 1 {
		s.occurrence(n - 1)
	}
}

// lister is a call for a page of a list.
func (s *session) lister() func(n int) op {
	name, key := s.noun(), s.pick("page", "page_number", "pageIndex")
	switch s.IntN(4) {
	case 0:
		return func(n int) op { return sh("curl -s 'http://localhost:8080/%ss?%s=%d&per_page=50'", name, key, n) }
	case 1:
		return func(n int) op { return sh("gh api repos/acme/%s/issues --method GET -F page=%d", name, n) }
	case 2:
		return func(n int) op { return domain(name+"_records", arg{"filter", "open"}, arg{key, n}) }
	}
	return func(n int) op { return domain("list_"+name+"s", arg{key, n}, arg{"per_page", 50}) }
}

// pagesBehind reads a list to its end and then on.
func (s *session) pagesBehind() {
	call, last, say := s.lister(), s.between(0, 3), s.texts()
	for n := range last {
		s.add(say(), call(n+1), result{out: s.items(n+1, 3)})
	}
	form := s.IntN(6)
	s.rising(last+s.between(1, 20), 1, func(n int) (op, result) {
		return call(n), result{out: []string{
			"[]", fmt.Sprintf(`{"items":[],"page":%d}`, n), fmt.Sprintf(`{"results":[],"total":%d,"page":%d,"next_page":%d}`, last*3, n, n+1),
			"No results found.", `{"data":[],"has_more":false}`, fmt.Sprintf("Page %d is behind the last page: no more items.", n)}[form]}
	})
}

// items is a page of a list.
func (s *session) items(page, n int) string {
	out := fmt.Sprintf(`{"page":%d,"items":[`, page)
	for i := range n {
		if i > 0 {
			out += ","
		}
		out += fmt.Sprintf(`{"id":%d,"name":%q,"open":%t}`, 3*page+i, s.ident(), s.chance(0.5))
	}
	return out + `]}`
}

func (s *session) sleeps() {
	unit := s.pick("", "", "s", " && echo done")
	out := ""
	if unit == " && echo done" {
		out = "done"
	}
	s.rising(s.between(1, 30), s.pickInt(0, 1, 5, 10), func(n int) (op, result) { return sh("sleep %d%s", n, unit), result{out: out} })
}

func (s *session) pickInt(list ...int) int { return list[s.IntN(len(list))] }

// offsetBehind reads a file by parts, to its end and then on.
func (s *session) offsetBehind() {
	f, say, parts := s.path(), s.texts(), s.between(0, 3)
	for i := range parts {
		s.add(say(), op{do: read, path: f, n: 1 + 60*i}, result{out: s.code(9)})
	}
	lines, form := 60*parts, s.IntN(4)
	shelled := s.style.tools.shelled(op{do: read})
	s.rising(lines+1+60*s.between(1, 3), 60, func(n int) (op, result) {
		if shelled {
			return op{do: read, path: f, n: n}, result{}
		}
		return op{do: read, path: f, n: n}, []result{
			{out: ""}, {out: fmt.Sprintf("Error: Offset %d is beyond end of file (%d lines total)", n, lines), code: 1},
			{out: fmt.Sprintf("<system-reminder>Warning: the file exists but is shorter than the provided offset (%d). The file has %d lines.</system-reminder>", n, lines)},
			{out: "(no more lines)"}}[form]
	})
}

func (s *session) nextID() {
	name, form := s.noun(), s.IntN(4)
	call := func(n int) op { return domain("get_"+name, arg{"id", n}) }
	if s.chance(0.3) {
		call = func(n int) op { return domain("lookup", arg{"table", name}, arg{"key", fmt.Sprintf("%s-%d", name, n)}) }
	}
	if s.chance(0.3) {
		call = func(n int) op { return sh("curl -s http://localhost:8080/%ss/%d", name, n) }
	}
	s.rising(s.between(2, 90000), s.pickInt(1, 1, 10), func(n int) (op, result) {
		return call(n), []result{{fmt.Sprintf("Error: %s %d not found", name, n), 1}, {out: fmt.Sprintf(`{"error":{"code":"NOT_FOUND","message":"no %s with id %d"}}`, name, n)},
			{out: "404 Not Found"}, {out: `{"detail":"Not found."}`}}[form]
	})
}

// samePage: the server gives its last page for each that is behind it, or
// there is no more than what was seen.
func (s *session) samePage() {
	out, id, name := s.items(s.between(2, 9), 4), s.ident(), s.noun()
	page := s.lister()
	switch s.IntN(4) {
	case 0:
		f := s.path()
		s.rising(20, 0, func(n int) (op, result) { return sh("head -n %d %s", n, f), result{out: out} })
	case 1:
		s.rising(5, 5, func(n int) (op, result) { return sh("git log -n %d --oneline -- %s", n, id), result{out: out} })
	case 2:
		s.rising(10, 0, func(n int) (op, result) {
			return domain("search_"+name, arg{"query", id}, arg{"limit", n}), result{out: out}
		})
	default:
		s.rising(s.between(2, 20), 1, func(n int) (op, result) { return page(n), result{out: out} })
	}
}

func (s *session) longerTimeout() {
	id := s.ident()
	s.rising(30, s.pickInt(0, 30), func(n int) (op, result) {
		return sh("timeout %d ./scripts/%s.sh --all", n, id), result{fmt.Sprintf("Error: Command timed out after %d seconds", n), 124}
	})
}
