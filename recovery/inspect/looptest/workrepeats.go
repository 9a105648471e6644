package looptest

// repeating are situations without progress: the differences are volatile.
var repeating = []situation{
	{"make with another number of jobs", `make -j{i} !2> cc -c {path}\n{path}:12:5: error: unknown type name 'foo'\nmake: *** [Makefile:3: main.o] Error 1`},
	{"a tool with one line of error", `
		@get_weather city=Nowhere !> Error: city not found: Nowhere
		or
		@book_reservation id={hash} seats=2 !> Error: no seats left on this flight
		or
		@lookup_invoice number={pid} !> Error: invoice is archived`},
	{"cargo build, the same error", `
		cargo build !101>    Compiling app v0.1.0 (/repo)\nerror[E0425]: cannot find value '{ident}' in this scope\n --> {path}:14:9\n
		| error: could not compile 'app' (bin "app") due to 1 previous error`},
	{"pytest, the same failure", `
		pytest -q !> E   AssertionError: assert <app.Foo object at 0x7f{HASH}> is None\ntmp_path = PosixPath('/tmp/pytest-of-root/pytest-{NUM}/test_0')
		| FAILED tests/test_app.py::{ident} - AssertionError\n1 failed, 12 passed in {SECS}`},
	{"npm, the same error", `
		npm run {ident} !> npm error Missing script: "{ident}"\nnpm error
		| npm error A complete log of this run can be found in: /root/.npm/_logs/2025-06-04T13_16_{few}{FEW}_{NUM}Z-debug-0.log`},
	{"one address that is not there", `curl -fsS {address} !22> curl: (22) The requested URL returned error: 404`},
	{"docker build, the same step", `
		docker build -t app . !> #8 [4/9] RUN npm ci\n#8 1.{NUM} npm error code EUSAGE
		| #8 ERROR: process "/bin/sh -c npm ci" did not complete successfully: exit code: 1`},
	{"kubectl, the same refusal", `kubectl apply -f {ident}.yaml !> error: error validating "{ident}.yaml": error validating data: unknown field "spec.replica"`},
	{"terraform, the same lock", `
		terraform apply -auto-approve !> \nError: Error acquiring the state lock\n\nLock Info:\n  ID:        1a2b3c4d-5e6f-4a5b-8c9d-{HASH}\n  Created:   {STAMP}`},
	{"go test, the same failure", `
		go test ./... !> --- FAIL: TestAll ({SECS})\n    all_test.go:12: got 1, want 2\npanic: boom\n\ngoroutine {NUM} [running]:\nmain.f(0xc000{SHORT})
		| FAIL\texample.com/app\t{SECS}\nFAIL`},
	{"git push, refused", `
		git push origin main !> To github.com:acme/app.git\n ! [rejected]        main -> main (fetch first)
		| error: failed to push some refs to 'github.com:acme/app.git'`},
	{"the same edit that does not match", `@same {path} !> Error: String to replace not found in file.`},
	{"a database that is not there", `
		psql -h localhost -c 'select 1' !2> {STAMP} [{PID}] psql: error: connection to server at "localhost" (127.0.0.1), port 5432 failed: Connection refused`},
	{"a pause that does not help", `sleep {i} && make !2> main.c:12:5: error: unknown type name 'foo'\nmake: *** [Makefile:3: main.o] Error 1`},
	{"a tool that counts its attempts", `@deploy_service name={noun} attempt={i} !> Error: quota of instances is used up`},
	{"a comment that counts", `npm run build # attempt {i} !2> > app@1.0.0 build\n> tsc\n\nsrc/app.ts(3,7): error TS2304: Cannot find name 'foo'.`},
	{"an echo that counts", `
		echo 'try {i}'; cmake --build build !2> try {i}\n[ 10%] Building CXX object app.o\napp.cpp:3:1: error: 'foo' does not name a type
		| gmake: *** [Makefile:91: all] Error 2`},
	{"a file that is not there", `@read {path} !> Error: File does not exist.`},
	{"a script without a module", `
		cd /repo && python3 app.py !> Traceback (most recent call last):\n  File "/repo/app.py", line 1, in <module>\n    import requests
		| ModuleNotFoundError: No module named 'requests'`},
	{"a linter with the same findings", `ruff check . !> src/app.py:3:1: F401 [*] 'os' imported but unused\nFound 1 error.\n[*] 1 fixable with the '--fix' option.`},
	{"a worker count that changes", `
		cargo test --jobs {i} !101> error[E0433]: failed to resolve: use of undeclared crate or module 'serde'\n --> src/lib.rs:1:5
		| error: could not compile 'app' (lib test) due to 1 previous error`},
	{"the same result again", settled},
	{"the same listing again", `@list . => {names}`},
}

// waiting are situations in which an agent waits for something.
var waiting = []situation{
	{"the output of a command in the background", `@BashOutput bash_id=bash_{short} => <status>running</status>\n\n<timestamp>{STAMP}</timestamp>`},
	{"the output of a task", `
		@TaskOutput task_id={short} block=true => <retrieval_status>timeout</retrieval_status>\n\n<task_id>{short}</task_id>\n\n<status>running</status>`},
	{"the status of a job", `@get_job_status job_id={hash} => {"job_id":"{hash}","status":"running"}`},
	{"a task that is checked", `@check_task id={num} => Task {num} is still {state}.`},
	{"sleep, then kubectl wait", `
		sleep 10; kubectl wait --for=condition=available deployment/web --timeout=60s !> error: timed out waiting for the condition on deployments/web`},
	{"kubectl wait alone", `kubectl wait --for=condition=ready pod -l app=web --timeout=30s !> error: timed out waiting for the condition on pods/web-0`},
	{"sleep, then look at the health", `
		sleep 5; curl -sf http://localhost:8080/health !7> curl: (7) Failed to connect to localhost port 8080 after 0 ms: Couldn't connect to server`},
	{"the health of a service", `curl -s http://localhost:3000/healthz !7> curl: (7) Failed to connect to localhost port 3000 after 0 ms: Couldn't connect to server`},
	{"sleep, then the state of a run", `sleep {double} && gh run view {big} --json status => {"status":"in_progress"}`},
	{"the state of a rollout", `
		kubectl rollout status deployment/api --timeout=20s !> Waiting for deployment "api" rollout to finish: 1 of 3 updated replicas are available...
		| error: timed out waiting for the condition`},
	{"sleep, then list pods", `
		sleep 15; kubectl get pods -n prod => NAME        READY   STATUS              RESTARTS   AGE\nweb-{short}   0/1     ContainerCreating   0          2m`},
	{"a tool that waits", `@wait 30 => Waited 30 seconds.`},
	{"a log that does not grow yet", `sleep 60 && tail -n 3 train.log => loading dataset\nbuilding vocabulary`},
	{"until it answers", `
		for i in 1 2 3 4 5; do curl -sf localhost:9200 && break; sleep 2; done !> curl: (7) Failed to connect to localhost port 9200 after 0 ms: Couldn't connect to server`},
}
