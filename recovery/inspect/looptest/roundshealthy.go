package looptest

import (
	"fmt"
	"time"
)

// healthyRounds are the scenarios that only look like such loops.
var healthyRounds = []scenario{
	{"pages_differ", "", "each page brings other items; the last may be empty", anyForm, (*session).pagesDiffer},
	{"offsets_differ", "", "a long file, part by part", anyForm, (*session).offsetsDiffer},
	{"poll_attempts", "", "polling: the number of the attempt rises and the status changes", anyForm, (*session).pollAttempts},
	{"wait_longer", "", "a tool that waits, longer each time", callsOnly, (*session).waitLonger},
	{"poll_backoff", "", "polling: each poll sleeps longer before it looks", anyForm, (*session).pollBackoff},
	{"edit_build_test_new", "", "edit, build and test, where the edit or the result is new each time", anyForm, (*session).newEditBuildTest},
	{"checks_after_edits", "", "the same checks with the same results, but each time after a different edit", anyForm, (*session).checksAfterEdits},
	{"round_parallel", "", "the same calls several times in one turn are one occurrence", callsOnly, (*session).roundParallel},
	{"pages_parallel", "", "empty pages that were asked for in one turn", callsOnly, (*session).pagesParallel},
	{"files_by_number", "", "numbered files, each with other content", anyForm, (*session).filesByNumber},
	{"status_by_number", "", "the same short answer about different things", anyForm, (*session).statusByNumber},
	{"writes_by_number", "", "the same acknowledgement of different writes", anyForm, (*session).writesByNumber},
	{"few_misses", "", "two or three numbers are not there, the next one is", anyForm, (*session).fewMisses},
	{"round_changes", "", "the same round of calls, but one result changes each time", anyForm, (*session).roundChanges},
	{"round_twice_apart", "", "the same round of calls again, after work that changed something", anyForm, (*session).roundApart},
	{"round_waits", "", "polling several things in turn, with a pause in each round", anyForm, (*session).roundWaits},
	{"days", "", "days are no counter: each may have something", anyForm, (*session).days},
	{"asked_for_more", "", "the user asks for one number after the other", anyForm, (*session).askedForMore},
	{"rising_seed", "", "one run per seed: the same outcome is what is to be shown", anyForm, (*session).risingSeed},
}

func (s *session) pagesDiffer() {
	call, say := s.lister(), s.texts()
	n := s.between(4, 9)
	for i := range n {
		s.add(say(), call(i+1), result{out: s.items(i+1, s.between(2, 5))})
	}
	for i := range s.IntN(3) {
		s.add(say(), call(n+i+1), result{out: fmt.Sprintf(`{"page":%d,"items":[]}`, n+i+1)})
	}
}

func (s *session) offsetsDiffer() {
	f, say, size := s.path(), s.texts(), s.pickInt(40, 60, 200)
	lines := s.between(4, 12) // as many in each part, so that sizes are alike
	for i := range s.between(5, 9) {
		s.add(say(), op{do: read, path: f, n: 1 + size*i}, result{out: s.code(lines)})
	}
}

func (s *session) pollAttempts() {
	job, say := s.hex(8), s.texts()
	n, percent := s.between(4, 8), s.between(1, 9)
	for i := range n {
		status := fmt.Sprintf(`{"job":%q,"status":"running","progress":%d}`, job, percent)
		if i == n-1 {
			status = fmt.Sprintf(`{"job":%q,"status":"done","progress":100}`, job)
		}
		s.add(say(), domain("check_job", arg{"job", job}, arg{"attempt", i + 1}), result{out: status})
		percent += s.between(3, 9)
	}
}

func (s *session) waitLonger() {
	name, key, say := s.pick("wait", "wait_for", "sleep", "browser_wait"), s.pick("seconds", "duration", "time"), s.texts()
	n, by, out := s.between(1, 20), s.pickInt(1, 5, 10), s.pick("", "ok", "done")
	for i := range s.between(3, 6) {
		s.add(say(), domain(name, arg{key, n + by*i}), result{out: out})
	}
}

func (s *session) pollBackoff() {
	id, say, n := s.between(1e6, 9e6), s.texts(), s.between(2, 10)
	word := s.pick("in_progress", "queued", "running")
	for range s.between(3, 6) {
		s.add(say(), sh("sleep %d && gh run view %d --json status", n, id), result{out: fmt.Sprintf(`{"status":%q}`, word)})
		n *= 2
	}
	s.add(say(), sh("sleep %d && gh run view %d --json status", n, id), result{out: `{"status":"completed"}`})
}

func (s *session) newEditBuildTest() {
	f, names, say, tests := s.path(), s.idents(9), s.texts(), s.testCommand()
	edit, sameEdit := s.change(f), s.chance(0.3)
	failed := 8
	for range s.between(3, 6) {
		s.add(say(), edit, result{out: "ok"})
		s.add(say(), sh("make build"), result{out: "built"})
		s.add(say(), tests, s.tests(failed, names))
		if failed--; !sameEdit {
			edit = s.change(f)
			failed = max(failed, 6) // it may stay as it is
		}
	}
}

func (s *session) checksAfterEdits() {
	names, say, tests := s.idents(3), s.texts(), s.testCommand()
	lint, types := constant(sh("ruff check ."), result{out: "All checks passed!"}), constant(sh("mypy src"), result{"src/a.py:3: error: bad type", 1})
	checks := []source{lint, types, {tests, func() result { return s.tests(2, names) }}}[:s.between(2, 3)]
	for range s.between(3, 5) {
		f := s.path()
		s.add(say(), s.change(f), s.updated(f))
		for _, c := range checks {
			s.add(say(), c.op, c.result())
		}
	}
}

func (s *session) roundParallel() {
	t := turn{text: s.say()}
	list := []source{s.settled(), s.failing(), s.settled()}
	for range s.between(2, 3) {
		for _, c := range list {
			t.calls, t.res = append(t.calls, c.op), append(t.res, c.result())
		}
	}
	s.turn(t)
	s.work(1)
}

func (s *session) pagesParallel() {
	call, t := s.lister(), turn{text: s.say()}
	for i := range s.between(4, 8) {
		t.calls, t.res = append(t.calls, call(i+9)), append(t.res, result{out: "[]"})
	}
	s.turn(t)
	s.work(1)
}

func (s *session) filesByNumber() {
	dir, say, form := s.folder(), s.texts(), s.IntN(4)
	from := s.between(1, 20)
	for i := range s.between(5, 9) {
		n := from + i
		switch form {
		case 0:
			s.add(say(), op{do: read, path: fmt.Sprintf("%s/%d.log", dir, n)}, result{out: s.code(5)})
		case 1: // only the number is another one
			s.add(say(), op{do: read, path: fmt.Sprintf("%s/part-%d.md", dir, n)}, result{out: fmt.Sprintf("# Part %d\n\nSee part %d.", n, n+1)})
		case 2:
			s.add(say(), domain("get_item", arg{"id", n}), result{out: fmt.Sprintf(`{"id":%d,"name":"item %d","price":5}`, n, n)})
		default:
			s.add(say(), sh("wc -l %s/%d.csv", dir, n), result{out: fmt.Sprintf("100 %s/%d.csv", dir, n)})
		}
	}
}

func (s *session) statusByNumber() {
	say, form, from := s.texts(), s.IntN(4), s.between(1, 900)
	for i := range s.between(4, 8) {
		n := from + i
		switch form {
		case 0:
			s.add(say(), sh("gh pr view %d --json state", n), result{out: `{"state":"MERGED"}`})
		case 1:
			s.add(say(), domain("get_order_status", arg{"order", n}), result{out: `{"status":"delivered"}`})
		case 2:
			s.add(say(), domain("check_seat", arg{"row", n}, arg{"seat", "C"}), result{out: "free"})
		default:
			s.add(say(), sh("cat runs/%d/exit_code", n), result{out: "0 (finished)"})
		}
	}
}

func (s *session) writesByNumber() {
	say, form, from := s.texts(), s.IntN(9), s.between(1, 900)
	name := s.noun()
	for i := range s.between(5, 12) {
		n := from + i
		switch form {
		case 0:
			s.add(say(), domain("create_"+name, arg{"number", n}), result{out: `{"ok":true,"errors":[]}`})
		case 1:
			s.add(say(), domain("close_"+name, arg{"id", n}), result{})
		case 2:
			s.add(say(), sh("mv in/%d.txt out/", n), result{})
		case 3:
			s.add(say(), sh("curl -s -X DELETE http://localhost:8080/%ss/%d", name, n), result{out: "{}"})
		case 4:
			s.add(say(), domain("process_batch", arg{"name", name}, arg{"page", n}), result{out: fmt.Sprintf(`{"page":%d,"errors":[]}`, n)})
		case 5:
			s.add(say(), domain("upload_part", arg{"name", name}, arg{"offset", 4096 * n}), result{out: "ok"})
		case 6:
			s.add(say(), domain("goto_page", arg{"page", n}), result{out: "The page was opened."})
		case 7:
			s.add(say(), domain("delete_page", arg{"page", n}), result{out: `{"deleted":true,"children":[]}`})
		default:
			s.add(say(), domain("approve", arg{"request", n}), result{out: fmt.Sprintf("Request %d was approved.", n)})
		}
	}
}

func (s *session) fewMisses() {
	name, say, n := s.noun(), s.texts(), s.between(1, 900)
	for range s.between(2, 3) {
		s.add(say(), domain("get_"+name, arg{"id", n}), result{fmt.Sprintf("Error: %s %d not found", name, n), 1})
		n++
	}
	s.add(say(), domain("get_"+name, arg{"id", n}), result{out: s.items(n, 1)})
}

func (s *session) roundChanges() {
	a, b, o := s.settled(), s.settled(), sh("cat progress.txt")
	say, done := s.texts(), s.between(1, 9)
	for range s.between(3, 5) {
		s.add(say(), a.op, a.result())
		if b.command() != a.command() {
			s.add(say(), b.op, b.result())
		}
		s.add(say(), o, result{out: fmt.Sprintf("%d of 200 done, now at %s", done, s.ident())})
		done += s.between(1, 9)
	}
}

func (s *session) roundApart() {
	list := []source{constant(sh("git branch --show-current"), result{out: s.ident()}), constant(op{do: list, path: "."}, result{out: s.listing(8)}),
		constant(sh("git remote -v"), result{out: "origin " + s.ident()})}
	for i := range s.between(2, 3) {
		if i > 0 {
			f := s.path()
			s.add(s.say(), s.change(f), s.updated(f))
			s.work(s.IntN(3))
		}
		for _, c := range list {
			s.add(s.say(), c.op, c.result())
		}
	}
}

func (s *session) roundWaits() {
	say, pause := s.texts(), s.between(1, 12)*5
	jobs := []int{s.between(1e6, 2e6), s.between(3e6, 4e6), s.between(5e6, 6e6)}
	jobs = jobs[:s.between(2, 3)]
	for range s.between(3, 5) {
		for k, job := range jobs {
			s.add(say(), sh("gh run view %d --json status", job), result{out: fmt.Sprintf(`{"status":%q}`, []string{"queued", "in_progress", "queued"}[k])})
		}
		s.add(say(), op{do: wait, n: pause}, result{})
	}
	s.add(say(), sh("gh run view %d --json status", jobs[0]), result{out: `{"status":"completed"}`})
}

func (s *session) days() {
	say, from, day := s.texts(), s.ident(), s.clock
	for range s.between(4, 7) {
		s.add(say(), domain("search_flights", arg{"from", from}, arg{"date", day.Format("2006-01-02")}), result{out: "[]"})
		day = day.Add(24 * time.Hour)
	}
	s.add(say(), domain("search_flights", arg{"from", from}, arg{"date", day.Format("2006-01-02")}), result{out: s.items(1, 2)})
}

func (s *session) askedForMore() {
	name, n := s.noun(), s.between(1, 900)
	for range s.between(4, 6) {
		s.add(s.say(), domain("get_"+name, arg{"id", n}), result{fmt.Sprintf("Error: %s %d not found", name, n), 1})
		n++
		s.talk(fmt.Sprintf("There is no %s %d.", name, n-1), fmt.Sprintf("and %d?", n))
	}
}

func (s *session) risingSeed() {
	say, id := s.texts(), s.ident()
	for i := range s.between(4, 8) {
		s.add(say(), sh("./bin/%s --seed %d", id, i+1), result{out: "no crash\n12 checks passed"})
	}
}
