package looptest

// healthyRounds are the scenarios that only look like plantedRounds.
var healthyRounds = []scenario{
	{"pages_differ", "", "each page brings other items; the last may be empty", anyForm, nil, `
		4-9 @list_{noun}s page={count} per_page=50 => {LIST}
		0-2 = => {"page":{count},"items":[]}
		or
		4-9 curl -s 'http://localhost:8080/{noun}s?page={count}&per_page=50' => {LIST}`},
	{"offsets_differ", "", "a long file, part by part", anyForm, nil, `5-9 @read {path} {offset} => {CODE}`},
	{"poll_attempts", "", "polling: the number of the attempt rises and the status changes", anyForm, nil, `
		4-8 @check_job job={hash} attempt={i} => {"job":"{hash}","status":"running","progress":{up}}
		1 @check_job job={hash} attempt={i} => {"job":"{hash}","status":"done","progress":100}`},
	{"wait_longer", "", "a tool that waits, longer each time", callsOnly, nil, `
		3-6 @wait_for seconds={count} => {nothing}
		or
		3-6 @sleep duration={tens} => {nothing}
		or
		3-6 @browser_wait time={count} => {nothing}`},
	{"poll_backoff", "", "polling: each poll sleeps longer before it looks", anyForm, nil, `
		3-6 sleep {double} && gh run view {big} --json status => {"status":"{state}"}
		1 sleep {double} && gh run view {big} --json status => {"status":"completed"}`},
	{"edit_build_test_new", "", "edit, build and test, where the edit or the result is new each time", anyForm, nil, `
		3-6 @edit {path} => ok
		make build => built
		{suite} !> [{STAMP}] runner pid={PID}\nFAILED tests/test_core.py::{ident} - AssertionError: expected 200, got 500\n6 failed, 34 passed in {SECS}
		or
		3-6 @same {path} => ok
		make build => built
		{suite} !> [{STAMP}] runner pid={PID}\nFAILED tests/test_core.py::{IDENT} - AssertionError: expected 200, got 500\n{down} failed, {up} passed in {SECS}`},
	{"checks_after_edits", "", "the same checks with the same results, but each time after a different edit", anyForm, nil, `
		3-5 @edit {PATH} => {updated}
		ruff check . => All checks passed!
		mypy src !> src/a.py:3: error: bad type
		or
		3-5 @edit {PATH} => {updated}
		mypy src !> src/a.py:3: error: bad type
		{suite} !> [{STAMP}] runner pid={PID}\nFAILED tests/test_core.py::{ident} - AssertionError: expected 200, got 500\n2 failed, 38 passed in {SECS}`},
	{"round_parallel", "", "the same calls several times in one turn are one occurrence", callsOnly,
		func(s *session) { s.parallel(s.source(settled), s.source(failing), s.source(settled)) }, ""},
	{"pages_parallel", "", "empty pages that were asked for in one turn", callsOnly, (*session).pagesParallel, ""},
	{"files_by_number", "", "numbered files, each with other content", anyForm, nil, `
		5-9 @read {folder}/{count}.log => {CODE}
		or
		5-9 @read {folder}/part-{count}.md => # Part {count}\n\nSee part {next}.
		or
		5-9 @get_item id={count} => {"id":{count},"name":"item {count}","price":5}
		or
		5-9 wc -l {folder}/{count}.csv => 100 {folder}/{count}.csv`},
	{"status_by_number", "", "the same short answer about different things", anyForm, nil, `
		4-8 gh pr view {count} --json state => {"state":"MERGED"}
		or
		4-8 @get_order_status order={count} => {"status":"delivered"}
		or
		4-8 @check_seat row={count} seat=C => free
		or
		4-8 cat runs/{count}/exit_code => 0 (finished)`},
	{"writes_by_number", "", "the same acknowledgement of different writes", anyForm, nil, `
		5-12 @create_{noun} number={count} => {"ok":true,"errors":[]}
		or
		5-12 @close_{noun} id={count} =>
		or
		5-12 mv in/{count}.txt out/ =>
		or
		5-12 curl -s -X DELETE http://localhost:8080/{noun}s/{count} => {}
		or
		5-12 @process_batch name={noun} page={count} => {"page":{count},"errors":[]}
		or
		5-12 @upload_part name={noun} offset={tens} => ok
		or
		5-12 @goto_page page={count} => The page was opened.
		or
		5-12 @delete_page page={count} => {"deleted":true,"children":[]}
		or
		5-12 @approve request={count} => Request {count} was approved.`},
	{"few_misses", "", "two or three numbers are not there, the next one is", anyForm, nil, `
		2-3 @get_{noun} id={count} !> Error: {noun} {count} not found
		1 @get_{noun} id={count} => {list}`},
	{"round_changes", "", "the same round of calls, but one result changes each time", anyForm, nil, `
		3-5 @read {path} => {code}
		@list {folder} => {names}
		cat progress.txt => {up} of 200 done, now at {IDENT}
		or
		3-5 @grep {ident} . => {hits}
		cat progress.txt => {up} of 200 done, now at {IDENT}`},
	{"round_twice_apart", "", "the same round of calls again, after work that changed something", anyForm, nil, `
		1 git branch --show-current => {ident}
		@list . => {names}
		git remote -v => origin {ident2}
		1-2 @edit {PATH} => {updated}
		@work 1 =>
		git branch --show-current => {ident}
		@list . => {names}
		git remote -v => origin {ident2}`},
	{"round_waits", "", "polling several things in turn, with a pause in each round", anyForm, nil, `
		3-5 gh run view {big} --json status => {"status":"queued"}
		gh run view {big2} --json status => {"status":"in_progress"}
		@wait {num} =>
		1 gh run view {big} --json status => {"status":"completed"}`},
	{"days", "", "days are no counter: each may have something", anyForm, nil, `
		4-7 @search_flights from={ident} date={day} => []
		1 @search_flights from={ident} date={day} => {list}`},
	{"asked_for_more", "", "the user asks for one number after the other", anyForm, nil, `
		4-6 @get_{noun} id={count} !> Error: {noun} {count} not found
		@talk There is no {noun} {count}. => and {next}?`},
	{"rising_seed", "", "one run per seed: the same outcome is what is to be shown", anyForm, nil, `4-8 ./bin/{ident} --seed {i} => no crash\n12 checks passed`},
}

func (s *session) pagesParallel() {
	name, t := s.noun(), turn{text: s.say()}
	for i := range s.between(4, 8) {
		t.calls, t.res = append(t.calls, domain("list_"+name+"s", arg{"page", i + 9})), append(t.res, result{out: "[]"})
	}
	s.turn(t)
	s.work(1)
}
