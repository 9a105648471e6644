package app_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/store/storetest"
)

// toolUse is an agent's call and its result.
type toolUse struct{ tool, args, result string }

// object encodes arguments.
func object(list ...any) string {
	m := map[string]any{}
	for i := 0; i < len(list); i += 2 {
		m[list[i].(string)] = list[i+1]
	}
	raw, err := json.Marshal(m)
	if err != nil {
		panic(err) // text and numbers always marshal
	}
	return string(raw)
}

// envelopes are the ways in which agents run a command and show its result; n makes calls differ.
var envelopes = map[string]func(n int, command, out string, code int) toolUse{
	"claude-code": func(n int, command, out string, code int) toolUse {
		if code != 0 {
			out = fmt.Sprintf("Exit code %d\n%s", code, out)
		}
		return toolUse{"Bash", object("command", command, "description", fmt.Sprintf("Step %d of the plan", n)), out}
	},
	"codex": func(n int, command, out string, code int) toolUse {
		return toolUse{"shell", object("command", []string{"bash", "-lc", command}, "timeout_ms", 1000*n),
			fmt.Sprintf(`{"output":%s,"metadata":{"exit_code":%d,"duration_seconds":%d.3}}`, quote(out), code, n)}
	},
	"codex-exec": func(n int, command, out string, code int) toolUse {
		return toolUse{"exec_command", object("cmd", command, "yield_time_ms", 500*n), fmt.Sprintf("Chunk ID: 9ab%d\nWall time: %d.0412 seconds\nProcess exited with code %d\nOutput:\n%s", n, n, code, out)}
	},
	"pi": func(_ int, command, out string, code int) toolUse {
		if code != 0 {
			out = fmt.Sprintf("%s\n\nCommand exited with code %d", out, code)
		}
		return toolUse{"bash", object("command", command), out}
	},
	"openhands": func(_ int, command, out string, code int) toolUse {
		return toolUse{"execute_bash", object("command", command, "security_risk", "LOW"),
			fmt.Sprintf("%s\n[The command completed with exit code %d.]\n[Current working directory: /workspace]\n[Command finished with exit code %d]", out, code, code)}
	},
	"gemini-cli": func(n int, command, out string, code int) toolUse {
		return toolUse{"run_shell_command", object("command", command, "description", fmt.Sprintf("Try %d", n)),
			fmt.Sprintf("Command: %s\nDirectory: (root)\nOutput: %s\nError: (none)\nExit Code: %d\nSignal: (none)\nBackground PIDs: (none)\nProcess Group PGID: %d", command, out, code, 4000+n)}
	},
	"roo-code": func(_ int, command, out string, code int) toolUse {
		return toolUse{"execute_command", object("command", command), fmt.Sprintf("Command executed in terminal  within working directory '/repo'. Exit code: %d\nOutput:\n%s", code, out)}
	},
	"sdk": func(_ int, command, out string, code int) toolUse {
		return toolUse{"run_command", object("command", command), object("stdout", "", "stderr", out, "returncode", code)}
	},
}

// situation is what an agent does turn by turn; n counts from 0.
type situation struct {
	name  string
	tool  string // not a shell; its arguments are what command is
	turn  func(n int) (command, out string, code int)
	kind  string    // progress, waits, repeats
	wants [2]string // of a repetition: what the second and the third note say
}

var (
	files5  = []string{"auth", "billing", "cart", "mail", "orders", "search"}
	firmly  = [2]string{"twice, with the same error", "3 times, with the same error. Do not make it again"}
	stating = [2]string{"twice, with the same error", "3 times, with the same error."}
)

var situations = []situation{
	{name: "sed and cargo build", kind: "progress", turn: func(n int) (string, string, int) {
		return fmt.Sprintf("sed -i 's/a%d/b/' src/m%d.rs && cargo build", n, n),
			fmt.Sprintf("error[E0308]: mismatched types\n --> src/m%d.rs:%d:9\nerror: could not compile `app` (bin \"app\") due to %d previous errors", n, 14+3*n, 9-n), 101
	}},
	{name: "fix.py and pytest", kind: "progress", turn: func(n int) (string, string, int) {
		return "python fix.py && pytest -q", fmt.Sprintf("FAILED tests/test_%s.py::test_all - assert 1 == 2\n%d failed, %d passed in 0.%d2s", files5[n], 9-n, 31+n, n), 1
	}},
	{name: "the tests of one file after the other", kind: "progress", turn: func(n int) (string, string, int) {
		return "pytest -q tests/test_" + files5[n] + ".py", "FAILED tests/test_" + files5[n] + ".py::test_ok - assert False\n1 failed in 0.12s", 1
	}},
	{name: "eslint", kind: "progress", turn: func(n int) (string, string, int) {
		return "npx eslint src", fmt.Sprintf("/repo/src/a.js\n  3:1  error  'x' is not defined  no-undef\n\n✖ %d problems (%d errors, 0 warnings)", 40-n, 40-n), 1
	}},
	{name: "npm test", kind: "progress", turn: func(n int) (string, string, int) {
		return "npm test", "FAIL src/app.test.js\n  TypeError: Cannot read properties of undefined (reading '" + files5[n] + "')\nTests: 1 failed, 1 total", 1
	}},
	{name: "six addresses", kind: "progress", turn: func(n int) (string, string, int) {
		return "curl -fsS https://docs.example.com/" + files5[n], "curl: (22) The requested URL returned error: 404", 22
	}},
	{name: "six scripts without one module", kind: "progress", turn: func(n int) (string, string, int) {
		return "python scripts/" + files5[n] + ".py", "Traceback (most recent call last):\n  File \"/repo/scripts/" + files5[n] +
			".py\", line 1, in <module>\n    import requests\nModuleNotFoundError: No module named 'requests'", 1
	}},
	{name: "sleep and kubectl wait", kind: "waits", turn: func(int) (string, string, int) {
		return "sleep 10; kubectl wait --for=condition=available deployment/web --timeout=60s", "error: timed out waiting for the condition on deployments/web", 1
	}},
	{name: "sleep and curl health", kind: "waits", turn: func(n int) (string, string, int) {
		return fmt.Sprintf("sleep %d; curl -sf localhost:8080/health", 5+n), "curl: (7) Failed to connect to localhost port 8080 after 0 ms: Couldn't connect to server", 7
	}},
	{name: "BashOutput", tool: "BashOutput", kind: "waits", turn: func(n int) (string, string, int) {
		return object("bash_id", "bash_1"), fmt.Sprintf("<status>running</status>\n\n<timestamp>2026-01-01T10:00:0%dZ</timestamp>", n), 0
	}},
	{name: "TaskOutput", tool: "TaskOutput", kind: "waits", turn: func(int) (string, string, int) {
		return object("task_id", "t1", "block", true), "<retrieval_status>timeout</retrieval_status>\n\n<status>running</status>", 0
	}},
	{name: "get_job_status", tool: "get_job_status", kind: "waits", turn: func(int) (string, string, int) {
		return object("job_id", "j1"), `{"job_id":"j1","status":"running"}`, 0
	}},
	{name: "check_task", tool: "check_task", kind: "waits", turn: func(int) (string, string, int) {
		return object("id", 7), "Task 7 is still queued.", 0
	}},
	{name: "make with another number of jobs", kind: "repeats", wants: firmly, turn: func(n int) (string, string, int) {
		return fmt.Sprintf("make -j%d", n+1), "cc -c main.c\nmain.c:12:5: error: unknown type name 'foo'\nmake: *** [Makefile:3: main.o] Error 1", 2
	}},
	{name: "the same test with other times", kind: "repeats", wants: firmly, turn: func(n int) (string, string, int) {
		return "pytest -q", fmt.Sprintf("FAILED tests/test_app.py::test_all - assert <app.Foo object at 0x7f%d2ab34cd> is None\n1 failed, 3 passed in 0.%d1s", n, n), 1
	}},
	{name: "get_weather", tool: "get_weather", kind: "repeats", wants: stating, turn: func(int) (string, string, int) {
		return object("city", "Nowhere"), "Error: city not found: Nowhere", 1
	}},
}

// Agents that make progress are not stopped and get no firm note, agents that wait get no note, and agents
// that repeat themselves get a note the second time, a firm one the third, and are stopped at the fifth: for
// every kind of agent, and over two replicas.
func TestAgentsLoop(t *testing.T) {
	t.Parallel()
	up := acceptingUpstream(t)
	_, list := twoReplicas(t, up, storetest.StartRedis(t).URL())
	acceptCredential(t, list...)
	for agent, envelope := range envelopes {
		for _, s := range situations {
			t.Run(agent+"/"+s.name, func(t *testing.T) {
				k := conversation{messages: []string{message("system", "You are an agent."), user("Get it to work, " + agent + ", " + s.name + ".")}}
				for n := range 6 {
					command, out, code := s.turn(n)
					c := toolUse{s.tool, command, out}
					if s.tool == "" {
						c = envelope(n+1, command, out, code)
					}
					if n == 0 {
						k.tools = []string{function(c.tool, "A tool.", `{"type":"object"}`)}
					}
					id := fmt.Sprintf("call_%d", n)
					k = k.with(calls(call(id, c.tool, c.args)), result(id, c.result))
					before := len(up.bodies())
					r := list[n%2].must(k.body())
					if s.kind == "repeats" && n >= 4 {
						if r.recovery() != "session_stopped" || !strings.Contains(r.answerText(), fmt.Sprintf("%d times in a row", n+1)) {
							t.Errorf("turn %d: not stopped: %v", n+1, r)
						}
						continue
					}
					mustReachModel(t, r)
					note := ""
					if seen := up.since(before); len(seen) > 0 {
						note = gatewayNote(seen[len(seen)-1])
					}
					switch firm := strings.Contains(note, "Do not make it again") || strings.Contains(note, "times, with the same"); {
					case s.kind == "progress" && firm, s.kind == "waits" && note != "":
						t.Errorf("turn %d: told %s", n+1, note)
					case s.kind == "repeats" && n == 1 && (!strings.Contains(note, s.wants[0]) || firm), s.kind == "repeats" && n > 1 && !strings.Contains(note, strings.Replace(s.wants[1], "3", fmt.Sprint(n+1), 1)):
						t.Errorf("turn %d: told %q", n+1, note)
					case s.kind == "repeats" && s.tool != "" && (strings.Contains(note, "Do not make") || strings.Contains(note, "ask the user")):
						t.Errorf("turn %d: more than the repetition is said: %s", n+1, note)
					}
				}
			})
		}
	}
}
