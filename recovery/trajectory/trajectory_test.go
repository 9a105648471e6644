package trajectory_test

import (
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery/trajectory"
)

func TestCommand(t *testing.T) {
	for _, c := range []struct {
		line, programs string
		pauses, looks  bool
		key            string
	}{
		{"make -j4", "make", false, false, "make -j#"},
		{"make -j 8 all", "make", false, false, "make -j # all"},
		{"cargo test --jobs=3", "cargo", false, false, "cargo test --jobs=#"},
		{"ATTEMPT=3 ./deploy.sh", "deploy.sh", false, false, "ATTEMPT=# ./deploy.sh"},
		{"PORT=3 ./deploy.sh", "deploy.sh", false, false, "PORT=3 ./deploy.sh"},
		{"npm test # attempt 3", "npm", false, false, "npm test"},
		{"echo 'try 3'; cmake --build .", "echo,cmake", false, false, "cmake --build ."},
		{"sleep 5 && make", "sleep,make", true, false, "make"},
		{"sleep 5", "sleep", true, true, "sleep #"},
		{"cd /repo && make", "make", false, false, "cd /repo && make"},
		{"sleep 10; kubectl wait --for=condition=ready pod/x", "sleep,kubectl wait", true, true, "kubectl wait --for=condition=ready pod/x"},
		{"kubectl -n prod rollout status deploy/x", "kubectl rollout status", true, true, "kubectl -n prod rollout status deploy/x"},
		{"curl -sf localhost/health", "curl", false, true, "curl -sf localhost/health"},
		{"curl -X POST localhost/x", "curl", false, false, "curl -X POST localhost/x"},
		{"until curl -sf localhost; do sleep 3; done", "curl,sleep", true, true, "until curl -sf localhost; do sleep #; done"},
		{"sudo timeout 30 git -C /x status", "git status", false, true, "sudo timeout 30 git -C /x status"},
		{"sed -i s/a/b/ f && sed -n 3p f", "sed,sed", false, false, "sed -i s/a/b/ f && sed -n 3p f"},
		{"grep x f > out", "grep", false, false, "grep x f >out"},
		{"grep x f 2>/dev/null | head -3", "grep,head", false, true, "grep x f 2>/dev/null | head -3"},
		{"/usr/bin/CAT f", "cat", false, true, "/usr/bin/CAT f"},
		{"echo $(rm x)", "echo,rm", false, false, "echo $(rm x)"},
		{"echo 'unclosed", "echo", false, false, "echo 'unclosed"},
		{strings.Repeat("$(", 100), strings.Repeat("$(", 100), false, false, strings.Repeat("$(", 100)},
		{strings.Repeat("`", 100), strings.Repeat("`", 100), false, false, strings.Repeat("`", 100)},
	} {
		got := trajectory.ParseCommand(c.line)
		if p := strings.Join(got.Programs, ","); p != c.programs || got.Pauses != c.pauses || got.OnlyReads != c.looks || got.Key() != c.key {
			t.Errorf("%s: runs %s, pauses %v, looks %v, key %q", c.line, p, got.Pauses, got.OnlyReads, got.Key())
		}
	}
}

func TestSame(t *testing.T) {
	for _, c := range []struct {
		tool, a, b string
		same       bool
	}{
		{"bash", `{"command":"make -j1"}`, `{"command":"make -j5"}`, true},
		{"bash", `{"command":"make -j1","description":"Build it"}`, `{"description":"Try again","command":"make -j2"}`, true},
		{"bash", `{"command":"make a1"}`, `{"command":"make a2"}`, false},
		{"bash", `{"command":"sed -i s/a/b/ src/m1.rs && cargo build"}`, `{"command":"sed -i s/a/b/ src/m2.rs && cargo build"}`, false},
		{"bash", `{"command":"pytest tests/test_1.py"}`, `{"command":"pytest tests/test_2.py"}`, false},
		{"bash", `{"command":"make","workdir":"/a"}`, `{"command":"make","workdir":"/b"}`, false},
		{"shell", `{"command":["bash","-lc","make -j1"],"timeout_ms":1000}`, `{"command":["bash","-lc","make -j2"],"timeout_ms":2000}`, true},
		{"shell", "make -j1", "sleep 4; make -j7", true},
		{"deploy", `{"name":"x","attempt":1}`, `{"attempt":2,"name":"x"}`, true},
		{"deploy", `{"name":"x","id":1}`, `{"name":"x","id":2}`, false},
		{"a", `{"x":1,"y":[true,{"k":"v"}]}`, `{ "y" : [true,{"k":"\u0076"}], "x":1.0 }`, true},
		{"a", `{"x":[1,2]}`, `{"x":[2,1]}`, false},
		{"think", `{"thought":"a"}`, `{"thought":"b"}`, false},
		{"edit", `{"explanation":"a","path":"p"}`, `{"explanation":"b","path":"p"}`, true},
	} {
		a, b := &trajectory.Call{Tool: c.tool, Arguments: c.a}, &trajectory.Call{Tool: c.tool, Arguments: c.b}
		if (a.Key() == b.Key()) != c.same {
			t.Errorf("%s and %s: keys %q, %q", c.a, c.b, a.Key(), b.Key())
		}
	}
}

func TestAwaits(t *testing.T) {
	for _, c := range []struct {
		tool, args string
		awaits     bool
	}{
		{"bash", `{"command":"sleep 5; curl -s localhost:3000/x"}`, true},
		{"bash", `{"command":"curl -s localhost:3000/healthz"}`, true},
		{"bash", `{"command":"curl -s https://example.com/docs/missing"}`, false},
		{"bash", `{"command":"sleep 5; make"}`, false},
		{"bash", `{"command":"kubectl rollout status deploy/x --timeout=20s"}`, true},
		{"wait", `{"seconds":5}`, true},
		{"browser_wait_for", `{"text":"x"}`, true},
		{"read", `{"path":"wait.txt"}`, false},
		{"python", `{"code":"import time\ntime.sleep(30)\nprint(job.state())"}`, true},
		{"python", `{"code":"print(job.state())"}`, false},
		{"job_status", `{"id":"j1","wait_seconds":30}`, true},
		{"job_status", `{"id":"j1"}`, false},
	} {
		if got := (&trajectory.Call{Tool: c.tool, Arguments: c.args}).Awaits(); got != c.awaits {
			t.Errorf("%s %s: %v", c.tool, c.args, got)
		}
	}
}

func TestSteady(t *testing.T) {
	for _, c := range []struct {
		text     string
		volatile bool
		want     string
	}{
		{"3 failed, 40 % done in 2.13s", true, "3 failed, 40 % done in #"},
		{"3 failed in 2.13 seconds, 1m20s", false, "3 failed in # seconds, #"},
		{"at 2025-01-02T03:04:05.678Z pid=431 [77] 0xc0000 req_1a2b3c4d", true, "at # pid=# [#] # #"},
		{"at 2025-01-02T03:04:05.678Z pid=431", false, "at 2025-01-02T03:04:05.678Z pid=431"},
		{"/tmp/tmpabcdefgh/run.py:14 port 8080", true, "/tmp/#/run.py:14 port 8080"},
		{"main.c:12:34: error", true, "main.c:12:34: error"},
		{"src/m12.rs:1200:9 test_user1 web-7", true, "src/m12.rs:1200:9 test_user1 web-7"},
		{"req_17381241 of order_17381241", true, "# of order_17381241"},
		{"12:30:45 up", true, "# up"},
		{"#8 1.234 npm error", true, "#8 # npm error"},
		{"value 1.234 is wrong, id=3", true, "value 1.234 is wrong, id=3"},
		{"logs/2025-01-02T03_04_05_678Z-debug-0.log", true, "logs/#"},
		{"<app.Foo object at 0x7f12ab34cd> try 3", true, "<app.Foo object at #> try #"},
		{"PosixPath('/tmp/pytest-of-root/pytest-12/test_0')", true, "PosixPath('/tmp/pytest-of-root/#/#')"},
		{"naïve 1 2 3", true, "naïve 1 2 3"},
	} {
		if got := trajectory.WithoutVolatile(c.text, c.volatile); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

// A long line, a deep one and one of many statements end in bounded work, and
// nothing that a model writes as a command stops the process.
func FuzzCommand(f *testing.F) {
	for _, s := range []string{"make -j4 && echo a | tee x", "$((1+(2)))", "case x in a) b;; esac", "a=(1 2); [[ -f x && ! -d y ]]", "cat <<EOF\n$(x)\nEOF", "${a:-${b}}", "((i++))", "-j #"} {
		f.Add(s)
	}
	for _, s := range []string{"(", "$(", "{ ", "`", "$((", "if ", "! ", "${a:-", "<(", "\\`", "a|"} {
		f.Add(strings.Repeat(s, 2000))
	}
	f.Fuzz(func(t *testing.T, line string) {
		c := trajectory.ParseCommand(line)
		if len(c.Programs) > 32 || c.OnlyReads && c.Edits {
			t.Errorf("%q: %+v", line, c)
		}
		a := &trajectory.Call{Tool: "bash", Arguments: line}
		_ = a.Key()
		a.Awaits()
		a.Reads()
		if x, y := trajectory.WithoutVolatile(line, true), trajectory.Outcome(line, true); trajectory.Outcome(line, true) != y || len(x) > len(line) {
			t.Errorf("%q: %q", line, x)
		}
	})
}
