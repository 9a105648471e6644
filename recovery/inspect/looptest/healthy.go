package looptest

// healthy are plain work and scenarios that only look like a loop.
var healthy = []scenario{
	{"plain", "", "every step is new", anyForm, nil, `@work 5 =>`},
	{"poll_progress", "", "polling: the results rise", anyForm, nil, `
		3-7 ./deploy status --job {hash} => {"job":"{hash}","status":"running","progress":"{up}%"}
		1 = => {"job":"{hash}","status":"done","progress":"100%"}
		or
		3-7 @get_job_status job_id={hash} => {"job":"{hash}","status":"running","progress":"{up}%"}
		1 = => {"job":"{hash}","status":"done","progress":"100%"}`},
	{"poll_changed", "", "polling: the output changes", anyForm, nil, `
		3-6 ps aux | grep {ident} => root {pid} {up}.{few} {few}.1 ? R 0:{up} {ident}
		or
		3-6 gh pr checks {num} => {i} of 9 checks have passed\n{IDENT}\tpending
		or
		3-6 curl -s localhost:8080/{ident} | tail -n 2 => {SAY}\n{noun}={SHORT}`},
	{"poll_sleep", "", "polling: it stays running for some polls, but each waits", anyForm, nil, `
		2-5 sleep {num} && gh run view {big} --json status => {"status":"{state}"}
		1 = => {"status":"completed"}`},
	{"poll_wait", "", "polling: it stays running for some polls, with a call that waits between", anyForm, nil, `
		2-5 gh run view {big} --json status => {"status":"{state}"}
		@wait {num} =>
		1 gh run view {big} --json status => {"status":"completed"}
		or
		2-5 @check_run run_id={big} => {"status":"{state}"}
		@wait {num} =>
		1 @check_run run_id={big} => {"status":"completed"}`},
	{"poll_clock", "", "polling: it stays running for some polls, but the time in the result rises", anyForm, nil, `
		2-5 gh run view {big} --json status => {"status":"{state}","checked_at":"{STAMP}","elapsed_seconds":{up}}
		1 = => {"status":"completed","checked_at":"{STAMP}","elapsed_seconds":{up}}
		or
		2-5 @check_run run_id={big} => {"status":"{state}","checked_at":"{STAMP}","elapsed_seconds":{up}}`},
	{"parallel_identical", "", "identical calls in one turn are one occurrence", callsOnly, func(s *session) { s.parallel(s.settledOr(0.4)) }, ""},
	{"reread_after_edit", "", "the file was edited between the reads", anyForm, nil, `
		2-4 @read {path} => {code}{LINE}
		@edit {path} => {updated}
		1 @read {path} => {code}{LINE}`},
	{"test_changing", "", "the same test between edits, with changing results", anyForm, nil, `
		3-5 @edit {path} => {updated}
		{suite} !> [{STAMP}] runner pid={PID}\nFAILED tests/test_core.py::{IDENT} - AssertionError: expected 200, got 500\n{down} failed, {up} passed in {SECS}
		1 = => [{STAMP}] runner pid={PID}\n0 failed, 99 passed in {SECS}`},
	{"test_same_failure", "", "the same test fails alike two or three times, but each after a different edit", anyForm, nil, `
		2-3 @edit {path} => {updated}
		{suite} !> [{STAMP}] runner pid={PID}\nFAILED tests/test_core.py::{ident} - AssertionError: expected 200, got 500\n2 failed, 38 passed in {SECS}
		1 @edit {path} => {updated}
		{suite} => [{STAMP}] runner pid={PID}\n0 failed, 40 passed in {SECS}`},
	{"retry_once", "", "one retry after a network error, and it helped", anyForm, nil, `
		pip install {ident} !> Temporary failure in name resolution
		= => {code}
		or
		pip install {ident} !> curl: (28) Connection timed out after 10001 milliseconds
		= => {code}
		or
		@fetch_url url={address} !> Error: connect ECONNREFUSED 203.0.113.7:443
		= => {code}`},
	{"list_read", "", "listing and reading take turns over different files", anyForm, nil, `
		0-1 @list {folder} => {names}
		@read {folder}/{IDENT}.go => {CODE}
		1 @list {folder} => {names}
		@read {folder}/{IDENT}.go => {CODE}
		2-4 @list {FOLDER} => {NAMES}
		@read {FOLDER}/{IDENT}.go => {CODE}`},
	{"pagination", "", "the same tool with other arguments", anyForm, nil, `
		4-9 @list_{noun}s page={i} per_page=50 => {"items":["{IDENT}","{IDENT2}"],"more":true}
		or
		4-9 @read {path} {offset} => {CODE}`},
	{"short_text", "", "the same short text, but other calls", anyForm, (*session).shortText, ""},
	{"asked_twice", "", "the user asked the same question twice", anyForm, nil, `
		@talk The first part is done: {say} => Which port does the {noun} service listen on?
		@read {path} => {code}
		@talk It listens on port {num}, which is set in {path}. => Which port does the {noun} service listen on?
		0-1 @read {path} => {code}
		1 @talk As I said: It listens on port {num}, which is set in {path}. => thanks. now go on with {path2}
		or
		@talk The first part is done: {say} => Which port does the {noun} service listen on?
		1-2 @read {path} => {code}
		@talk It listens on port {num}, which is set in {path}. => Which port does the {noun} service listen on?`},
	{"writes_ok", "", "the same answer to different writes", anyForm, nil, `
		6-20 @edit {path} => {updated}
		or
		3-10 @edit {PATH} => {updated}
		@write {PATH2} => {updated}`},
	{"search_misses", "", "a few searches without a hit, then one with", anyForm, nil, `
		3-5 @grep {IDENT} src !> No matches found
		1 @grep {ident} . => {hits}`},
	{"far_apart", "", "the same call with the same result, with much work in between", anyForm, nil, `
		git branch --show-current => feature/{ident}
		3-5 @work 2 =>
		@edit {PATH} => {updated}
		1 git branch --show-current => feature/{ident}
		or
		@list . => {names}
		3-5 @work 2 =>
		@edit {PATH} => {updated}
		1 @list . => {names}`},
	{"long_answer", "", "the user says to go on, and each answer is new", anyForm, nil, `
		3-6 @talk ## Part {i}: {SAY} {SAY2} {SAY3} => continue
		or
		3-6 @talk ## Part {i}: {SAY} {SAY2} {SAY3} => Next section, please.`},
}

// lookalike adds a healthy scenario to a session of another kind.
func (s *session) lookalike() {
	for {
		sc := healthy[s.IntN(len(healthy))]
		if sc.form == anyForm || !s.style.text {
			sc.add(s)
			return
		}
	}
}

// parallel adds a turn with the same calls several times.
func (s *session) parallel(list ...source) {
	t := turn{text: s.say()}
	for range s.between(2, 4) {
		for _, c := range list {
			t.calls, t.res = append(t.calls, c.op), append(t.res, c.result())
		}
	}
	s.turn(t)
	s.work(1)
}

func (s *session) shortText() {
	text := s.pick("Let me check the next file.", "Next.", "Continuing.", "Let me look at another one.")
	for range s.between(4, 9) {
		st := s.step()
		s.add(text, st.op, st.result)
	}
}
