package looptest

import (
	"fmt"
	"strings"
	"time"
)

// healthy are the scenarios that only look like a loop, and plain work.
var healthy = []scenario{
	{"plain", "", "every step is new", anyForm, func(s *session) { s.work(5) }},
	{"poll_progress", "", "polling: the results rise", anyForm, (*session).pollProgress},
	{"poll_changed", "", "polling: the output changes", anyForm, (*session).pollChanged},
	{"poll_sleep", "", "polling: it stays running for some polls, but each waits", anyForm, func(s *session) { s.pollRunning(0) }},
	{"poll_wait", "", "polling: it stays running for some polls, with a call that waits between", anyForm, func(s *session) { s.pollRunning(1) }},
	{"poll_clock", "", "polling: it stays running for some polls, but the time in the result rises", anyForm, func(s *session) { s.pollRunning(2) }},
	{"parallel_identical", "", "identical calls in one turn are one occurrence", callsOnly, (*session).parallel},
	{"reread_after_edit", "", "the file was edited between the reads", anyForm, (*session).reread},
	{"test_changing", "", "the same test between edits, with changing results", anyForm, func(s *session) { s.testBetweenEdits(false) }},
	{"test_same_failure", "", "the same test fails alike two or three times, but each after a different edit", anyForm, func(s *session) { s.testBetweenEdits(true) }},
	{"retry_once", "", "one retry after a network error, and it helped", anyForm, (*session).retryOnce},
	{"list_read", "", "listing and reading take turns over different files", anyForm, (*session).listRead},
	{"pagination", "", "the same tool with other arguments", anyForm, (*session).pagination},
	{"short_text", "", "the same short text, but other calls", anyForm, (*session).shortText},
	{"asked_twice", "", "the user asked the same question twice", anyForm, (*session).askedTwice},
	{"writes_ok", "", "the same answer to different writes", anyForm, (*session).writesOK},
	{"search_misses", "", "a few searches without a hit, then one with", anyForm, (*session).searchMisses},
	{"far_apart", "", "the same call with the same result, with much work in between", anyForm, (*session).farApart},
	{"long_answer", "", "the user says to go on, and each answer is new", anyForm, (*session).longAnswer},
}

// lookalike adds one of them to a session of another kind.
func (s *session) lookalike() {
	for {
		sc := s.healthy[s.IntN(len(s.healthy))]
		if sc.form == anyForm || !s.style.text {
			sc.plan(s)
			return
		}
	}
}

func (s *session) pollProgress() {
	job := s.hex(8)
	o := sh("./deploy status --job %s", job)
	if s.chance(0.5) {
		o = domain("get_job_status", arg{"job_id", job})
	}
	say, percent := s.texts(), s.between(1, 20)
	for range s.between(3, 7) {
		s.add(say(), o, result{out: fmt.Sprintf(`{"job":"%s","status":"running","progress":"%d%%"}`, job, percent)})
		percent = min(99, percent+s.between(4, 15))
	}
	s.add(say(), o, result{out: fmt.Sprintf(`{"job":"%s","status":"done","progress":"100%%"}`, job)})
}

func (s *session) pollChanged() {
	say, name, pid := s.texts(), s.ident(), s.pid()
	jobs, form := s.idents(8), s.IntN(3)
	o := []op{sh("ps aux | grep %s", name), sh("gh pr checks %d", pid), sh("curl -s localhost:8080/%s | tail -n 2", name)}[form]
	for i := range s.between(3, 6) {
		s.add(say(), o, result{out: []string{
			fmt.Sprintf("root %d %d.%d %d.1 ? R 0:%02d %s", pid, s.between(4, 99), s.IntN(10), 1+i, 3+7*i, name),
			strings.Join(jobs[:i+1], "\tpass\n") + "\tpass\n" + strings.Join(jobs[i+1:], "\tpending\n") + "\tpending",
			s.say() + "\n" + s.noun() + "=" + s.hex(5)}[form]})
	}
}

// pollRunning polls something that stays running for two to five polls. The
// call sleeps (0), a call between them does (1), or the result tells the time (2).
func (s *session) pollRunning(how int) {
	id, pause, say := s.between(1e6, 9e6), s.between(1, 12)*5, s.texts()
	o := sh("gh run view %d --json status", id)
	if s.chance(0.4) {
		o = domain("check_run", arg{"run_id", id})
	}
	if how == 0 {
		o = sh("sleep %d && gh run view %d --json status", pause, id)
	}
	polls, word := s.between(2, 5), s.pick("in_progress", "running", "pending", "queued")
	for i := range polls + 1 {
		if i == polls {
			word = "completed"
		}
		out := fmt.Sprintf(`{"status":%q}`, word)
		if how == 2 {
			s.tick(time.Duration(pause) * time.Second)
			out = fmt.Sprintf(`{"status":%q,"checked_at":"%s","elapsed_seconds":%d}`, word, s.stamp(), (i+1)*pause+s.IntN(4))
		}
		s.add(say(), o, result{out: out})
		if how == 1 && i < polls {
			s.add(say(), op{do: wait, n: pause}, result{})
		}
	}
}

func (s *session) parallel() {
	c := s.settled()
	if s.chance(0.4) {
		c = s.failing()
	}
	t := turn{text: s.say()}
	for range s.between(2, 4) {
		t.calls, t.res = append(t.calls, c.op), append(t.res, c.result())
	}
	s.turn(t)
	s.work(1)
}

func (s *session) reread() {
	f, head, say := s.path(), s.code(4), s.texts()
	line := s.code(1)
	for range s.between(2, 4) {
		s.add(say(), op{do: read, path: f}, result{out: head + line})
		next := s.code(1)
		s.add(say(), op{do: edit, path: f, a: line, b: next}, s.updated(f))
		line = next
	}
	s.add(say(), op{do: read, path: f}, result{out: head + line})
}

func (s *session) testBetweenEdits(same bool) {
	o, names, f, say := s.testCommand(), s.idents(6), s.path(), s.texts()
	failed := s.between(2, 3)
	rounds := s.between(2, 3)
	if !same {
		failed, rounds = 6, s.between(3, 5)
	}
	for range rounds {
		s.add(say(), s.change(f), s.updated(f))
		s.add(say(), o, s.tests(failed, names))
		if !same {
			failed--
		}
	}
	s.add(say(), s.change(f), s.updated(f))
	s.add(say(), o, s.tests(0, names))
}

func (s *session) retryOnce() {
	o, say := sh("pip install %s", s.ident()), s.texts()
	if s.chance(0.5) {
		o = domain("fetch_url", arg{"url", "https://docs.example/" + s.ident()})
	}
	s.add(say(), o, result{s.pick("Error: connect ECONNREFUSED 203.0.113.7:443", "curl: (28) Connection timed out after 10001 milliseconds",
		"Temporary failure in name resolution"), 1})
	s.add(say(), o, result{out: s.code(3)})
}

func (s *session) listRead() {
	say, dir := s.texts(), s.folder()
	names := s.listing(6)
	for i := range s.between(3, 5) {
		if i > 1 || s.chance(0.7) { // else the same folder is listed a second time
			dir, names = s.folder(), s.listing(6)
		}
		s.add(say(), op{do: list, path: dir}, result{out: names})
		s.add(say(), op{do: read, path: dir + "/" + s.ident() + ".go"}, result{out: s.code(6)})
	}
}

func (s *session) pagination() {
	f, query, api, say := s.path(), s.ident(), s.chance(0.5), s.texts()
	for i := range s.between(4, 9) {
		if api {
			s.add(say(), domain("list_"+query, arg{"page", i + 1}, arg{"per_page", 50}), result{out: `{"items":["` + s.ident() + `","` + s.ident() + `"],"more":true}`})
		} else {
			s.add(say(), op{do: read, path: f, n: 1 + 60*i}, result{out: s.code(8)})
		}
	}
}

func (s *session) shortText() {
	text := s.pick("Let me check the next file.", "Next.", "Continuing.", "Let me look at another one.")
	for range s.between(4, 9) {
		st := s.step()
		s.add(text, st.op, st.result)
	}
}

// askedTwice: the user repeats a question, and gets the answer again.
func (s *session) askedTwice() {
	question := "Which port does the " + s.noun() + " service listen on, and where is that set?"
	f, line := s.path(), s.code(3)
	answer := fmt.Sprintf("It listens on port %d, which is set in %s.", s.between(2000, 9000), f)
	s.talk("The first part is done: "+s.say(), question)
	s.add(s.say(), op{do: read, path: f}, result{out: line})
	s.talk(answer, question)
	if s.chance(0.6) {
		s.add(s.say(), op{do: read, path: f}, result{out: line})
	}
	s.talk(s.pick(answer, "As I said: "+answer), "thanks. now go on with "+s.path())
}

func (s *session) writesOK() {
	done, say, f := s.pick("The file has been updated.", "ok", "done", ""), s.texts(), s.path()
	one := s.chance(0.3) // many edits of one file, else of many
	for range s.between(6, 20) {
		if !one {
			f = s.path()
		}
		o := s.change(f)
		if !one && s.chance(0.3) {
			o = op{do: write, path: f, a: s.code(6)}
		}
		s.add(say(), o, result{out: done})
	}
}

func (s *session) searchMisses() {
	for range s.between(3, 5) {
		s.add(s.say(), op{do: grep, a: s.ident(), path: s.pick(".", "src")}, result{"No matches found", 1})
	}
	p := s.ident()
	s.add(s.say(), op{do: grep, a: p, path: "."}, result{out: s.hits(p, 3)})
}

func (s *session) farApart() {
	o := constant(sh("git branch --show-current"), result{out: "feature/" + s.ident()})
	if s.chance(0.5) {
		o = constant(op{do: list, path: "."}, result{out: s.listing(8)})
	}
	s.add(s.say(), o.op, o.result())
	for range s.between(3, 5) {
		f := s.path()
		s.work(2)
		s.add(s.say(), s.change(f), s.updated(f))
	}
	s.add(s.say(), o.op, o.result())
}

func (s *session) longAnswer() {
	nudge := s.pick("continue", "go on", "Next section, please.")
	for i := range s.between(3, 6) {
		text := fmt.Sprintf("## Part %d\n", i+1)
		for range s.between(2, 5) {
			text += s.say() + " "
		}
		s.talk(text, nudge)
	}
}
