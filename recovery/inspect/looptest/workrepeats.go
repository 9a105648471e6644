package looptest

import (
	"fmt"
	"strings"
)

// repeating are situations in which nothing moves: what differs says nothing.
var repeating = []situation{
	{"make with another number of jobs", Repeats, func(s *session) func(int) step {
		f := s.path()
		return func(i int) step {
			return run(fmt.Sprintf("make -j%d", i+1), "cc -c "+f+"\n"+f+":12:5: error: unknown type name 'foo'\nmake: *** [Makefile:3: main.o] Error 1")
		}
	}},
	{"a tool with one line of error", Repeats, func(s *session) func(int) step {
		list := []step{
			{domain("get_weather", arg{"city", "Nowhere"}), result{"Error: city not found: Nowhere", 1}},
			{domain("book_reservation", arg{"id", s.hex(6)}, arg{"seats", 2}), result{"Error: no seats left on this flight", 1}},
			{domain("lookup_invoice", arg{"number", s.pid()}), result{"Error: invoice is archived", 1}},
		}
		return func(st step) func(int) step { return func(int) step { return st } }(list[s.IntN(len(list))])
	}},
	{"cargo build, the same error", Repeats, func(s *session) func(int) step {
		id, f := s.ident(), s.path()
		return func(int) step {
			return run("cargo build", fmt.Sprintf("   Compiling app v0.1.0 (/repo)\nerror[E0425]: cannot find value `%s` in this scope\n --> %s:14:9\n\n"+
				"error: could not compile `app` (bin \"app\") due to 1 previous error", id, f))
		}
	}},
	{"pytest, the same failure", Repeats, func(s *session) func(int) step {
		id := s.ident()
		return func(int) step {
			return run("pytest -q", fmt.Sprintf("E   AssertionError: assert <app.Foo object at 0x7f%s> is None\ntmp_path = PosixPath('/tmp/pytest-of-root/pytest-%d/test_0')\n"+
				"FAILED tests/test_app.py::%s - AssertionError\n1 failed, 12 passed in %s", s.hex(10), s.between(1, 90), id, s.seconds()))
		}
	}},
	{"npm, the same error", Repeats, func(s *session) func(int) step {
		id := s.ident()
		return func(int) step {
			log := strings.NewReplacer(":", "_", ".", "_").Replace(s.stamp())
			return run("npm run "+id, fmt.Sprintf("npm error Missing script: \"%s\"\nnpm error\nnpm error A complete log of this run can be found in: /root/.npm/_logs/%s-debug-0.log", id, log))
		}
	}},
	{"one address that is not there", Repeats, func(s *session) func(int) step {
		u := "https://docs.example.com/" + s.ident()
		return func(int) step { return run("curl -fsS "+u, "curl: (22) The requested URL returned error: 404") }
	}},
	{"docker build, the same step", Repeats, func(s *session) func(int) step {
		return func(int) step {
			return run("docker build -t app .", fmt.Sprintf("#8 [4/9] RUN npm ci\n#8 %.3f npm error code EUSAGE\n"+
				"#8 ERROR: process \"/bin/sh -c npm ci\" did not complete successfully: exit code: 1", 1+3*s.Float64()))
		}
	}},
	{"kubectl, the same refusal", Repeats, func(s *session) func(int) step {
		n := s.ident()
		return func(int) step {
			return run("kubectl apply -f "+n+".yaml", "error: error validating \""+n+".yaml\": error validating data: unknown field \"spec.replica\"")
		}
	}},
	{"terraform, the same lock", Repeats, func(s *session) func(int) step {
		return func(int) step {
			return run("terraform apply -auto-approve", fmt.Sprintf("\nError: Error acquiring the state lock\n\nLock Info:\n  ID:        %s-%s-%s-%s-%s\n  Created:   %s",
				s.hex(8), s.hex(4), s.hex(4), s.hex(4), s.hex(12), s.stamp()))
		}
	}},
	{"go test, the same failure", Repeats, func(s *session) func(int) step {
		return func(int) step {
			return run("go test ./...", fmt.Sprintf("--- FAIL: TestAll (%s)\n    all_test.go:12: got 1, want 2\npanic: boom\n\ngoroutine %d [running]:\nmain.f(0xc000%s)\nFAIL\texample.com/app\t%.3fs\nFAIL", s.seconds(), s.between(6, 90), s.hex(6), s.Float64()))
		}
	}},
	{"git push, refused", Repeats, func(s *session) func(int) step {
		return func(int) step {
			return run("git push origin main", "To github.com:acme/app.git\n ! [rejected]        main -> main (fetch first)\nerror: failed to push some refs to 'github.com:acme/app.git'")
		}
	}},
	{"the same edit that does not match", Repeats, func(s *session) func(int) step {
		o := s.change(s.path())
		return func(int) step { return step{o, result{"Error: String to replace not found in file.", 1}} }
	}},
	{"a database that is not there", Repeats, func(s *session) func(int) step {
		return func(int) step {
			return run("psql -h localhost -c 'select 1'", fmt.Sprintf("%s [%d] psql: error: connection to server at \"localhost\" (127.0.0.1), port 5432 failed: Connection refused", s.stamp(), s.pid()))
		}
	}},
	{"a pause that does not help", Repeats, func(s *session) func(int) step {
		return func(i int) step {
			return run(fmt.Sprintf("sleep %d && make", 1+i*2), "main.c:12:5: error: unknown type name 'foo'\nmake: *** [Makefile:3: main.o] Error 1")
		}
	}},
	{"a tool that counts its attempts", Repeats, func(s *session) func(int) step {
		n := s.noun()
		return func(i int) step {
			return step{domain("deploy_service", arg{"name", n}, arg{"attempt", i + 1}), result{"Error: quota of instances is used up", 1}}
		}
	}},
	{"a comment that counts", Repeats, func(s *session) func(int) step {
		return func(i int) step {
			return run(fmt.Sprintf("npm run build # attempt %d", i+1), "> app@1.0.0 build\n> tsc\n\nsrc/app.ts(3,7): error TS2304: Cannot find name 'foo'.")
		}
	}},
	{"an echo that counts", Repeats, func(s *session) func(int) step {
		return func(i int) step {
			return run(fmt.Sprintf("echo 'try %d'; cmake --build build", i+1), fmt.Sprintf("try %d\n[ 10%%] Building CXX object app.o\n"+
				"app.cpp:3:1: error: 'foo' does not name a type\ngmake: *** [Makefile:91: all] Error 2", i+1))
		}
	}},
	{"a file that is not there", Repeats, func(s *session) func(int) step {
		f := s.path()
		return func(int) step { return step{op{do: read, path: f}, result{"Error: File does not exist.", 1}} }
	}},
	{"a script without a module", Repeats, func(s *session) func(int) step {
		return func(int) step {
			return run("cd /repo && python3 app.py", "Traceback (most recent call last):\n  File \"/repo/app.py\", line 1, in <module>\n    import requests\nModuleNotFoundError: No module named 'requests'")
		}
	}},
	{"a linter with the same findings", Repeats, func(s *session) func(int) step {
		return func(int) step {
			return run("ruff check .", "src/app.py:3:1: F401 [*] `os` imported but unused\nFound 1 error.\n[*] 1 fixable with the `--fix` option.")
		}
	}},
	{"a worker count that changes", Repeats, func(s *session) func(int) step {
		return func(i int) step {
			return run(fmt.Sprintf("cargo test --jobs %d", i+1), "error[E0433]: failed to resolve: use of undeclared crate or module `serde`\n --> src/lib.rs:1:5\n"+
				"error: could not compile `app` (lib test) due to 1 previous error")
		}
	}},
	{"the same result again", Repeats, func(s *session) func(int) step {
		c := s.settled()
		return func(int) step { return step{c.op, c.result()} }
	}},
	{"the same listing again", Repeats, func(s *session) func(int) step {
		out := s.listing(8)
		return func(int) step { return step{op{do: list, path: "."}, result{out: out}} }
	}},
}

// waiting are situations in which an agent waits for something.
var waiting = []situation{
	{"the output of a command in the background", Waits, func(s *session) func(int) step {
		id := "bash_" + s.hex(3)
		return func(int) step {
			return step{domain("BashOutput", arg{"bash_id", id}), result{out: "<status>running</status>\n\n<timestamp>" + s.stamp() + "</timestamp>"}}
		}
	}},
	{"the output of a task", Waits, func(s *session) func(int) step {
		id := s.hex(7)
		return func(int) step {
			return step{domain("TaskOutput", arg{"task_id", id}, arg{"block", "true"}), result{out: "<retrieval_status>timeout</retrieval_status>\n\n<task_id>" + id + "</task_id>\n\n<status>running</status>"}}
		}
	}},
	{"the status of a job", Waits, func(s *session) func(int) step {
		id := s.hex(8)
		return func(int) step {
			return step{domain("get_job_status", arg{"job_id", id}), result{out: `{"job_id":"` + id + `","status":"running"}`}}
		}
	}},
	{"a task that is checked", Waits, func(s *session) func(int) step {
		id, word := s.between(1, 900), s.pick("running", "queued", "pending", "in_progress")
		return func(int) step {
			return step{domain("check_task", arg{"id", id}), result{out: "Task " + fmt.Sprint(id) + " is still " + word + "."}}
		}
	}},
	{"sleep, then kubectl wait", Waits, func(s *session) func(int) step {
		return func(int) step {
			return run("sleep 10; kubectl wait --for=condition=available deployment/web --timeout=60s", "error: timed out waiting for the condition on deployments/web")
		}
	}},
	{"kubectl wait alone", Waits, func(s *session) func(int) step {
		return func(int) step {
			return run("kubectl wait --for=condition=ready pod -l app=web --timeout=30s", "error: timed out waiting for the condition on pods/web-0")
		}
	}},
	{"sleep, then look at the health", Waits, func(s *session) func(int) step {
		return func(int) step {
			return run("sleep 5; curl -sf http://localhost:8080/health", "curl: (7) Failed to connect to localhost port 8080 after 0 ms: Couldn't connect to server")
		}
	}},
	{"the health of a service", Waits, func(s *session) func(int) step {
		return func(int) step {
			return run("curl -s http://localhost:3000/healthz", "curl: (7) Failed to connect to localhost port 3000 after 0 ms: Couldn't connect to server")
		}
	}},
	{"sleep, then the state of a run", Waits, func(s *session) func(int) step {
		id := s.between(1e6, 9e6)
		return func(i int) step {
			return step{sh("sleep %d && gh run view %d --json status", 10*(i+1), id), result{out: `{"status":"in_progress"}`}}
		}
	}},
	{"the state of a rollout", Waits, func(s *session) func(int) step {
		return func(int) step {
			return step{sh("kubectl rollout status deployment/api --timeout=20s"),
				result{"Waiting for deployment \"api\" rollout to finish: 1 of 3 updated replicas are available...\nerror: timed out waiting for the condition", 1}}
		}
	}},
	{"sleep, then list pods", Waits, func(s *session) func(int) step {
		n := s.hex(5)
		return func(int) step {
			return step{sh("sleep 15; kubectl get pods -n prod"), result{out: "NAME        READY   STATUS              RESTARTS   AGE\nweb-" + n + "   0/1     ContainerCreating   0          2m"}}
		}
	}},
	{"a tool that waits", Waits, func(s *session) func(int) step {
		return func(int) step { return step{op{do: wait, n: 30}, result{out: "Waited 30 seconds."}} }
	}},
	{"a log that does not grow yet", Waits, func(s *session) func(int) step {
		return func(int) step {
			return step{sh("sleep 60 && tail -n 3 train.log"), result{out: "loading dataset\nbuilding vocabulary"}}
		}
	}},
	{"until it answers", Waits, func(s *session) func(int) step {
		return func(int) step {
			return run("for i in 1 2 3 4 5; do curl -sf localhost:9200 && break; sleep 2; done", "curl: (7) Failed to connect to localhost port 9200 after 0 ms: Couldn't connect to server")
		}
	}},
}
