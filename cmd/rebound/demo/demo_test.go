package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// straight is what each fault does to an agent without the gateway: what most
// SDKs make of it.
var straight = map[string]verdict{
	"healthy": complete, "limited": complete, "failed-once": complete, "late": complete, "no-done": complete,
	"clean-end": truncated, "empty": empty, "role-only": empty,
	"silent": hung, "silent-alone": hung, "headers-only": hung, "stalled": hung,
	"tool-failed": complete, "call-json": unusable, "call-name": unusable, "call-text": unusable, "call-missing": unusable, "tool-stuck": unusable,
}

// recovered is what the gateway says it did about some of them.
var recovered = map[string]string{
	"healthy": "nothing", "limited": "wait", "limited-long": "wait x4", "down": "resend, move -> backup", "silent": "parallel -> backup",
	"cut": "resume", "stalled": "resume", "prefill": "prefill", "malformed": "event skipped", "no-done": "[DONE] added",
	"key-refused": "move -> key two", "max-tokens": "adapt_parameter", "output-limit": "clamp_output", "overflow": "larger_window -> backup",
	"overflow-fit": "fit", "orphan": "mend_history", "schema": "trim_schema", "refused-request": "explain",
	"call-json": "tool_call_repaired", "call-name": "tool_call_repaired", "call-text": "tool_call_repaired", "call-missing": "reask", "call-cut": "resend",
	"tool-failed": "guidance", "tool-stuck": "session_stopped",
}

// TestRun: every promise is kept, and the straight side is what SDKs really do.
func TestRun(t *testing.T) {
	began := time.Now()
	rows, err := run(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
	for i := range rows {
		r := &rows[i]
		if !r.kept() {
			t.Errorf("%s: %s; upstream %s", r.fault.title, r.through, r.missent)
		}
		want, ok := straight[r.fault.slug]
		if !ok {
			want = failed
		}
		if r.straight.verdict != want {
			t.Errorf("%s: straight %q", r.fault.title, r.straight)
		}
		if did, attempts := r.did(); attempts < 1 && r.fault.slug != "tool-stuck" || recovered[r.fault.slug] != "" && did != recovered[r.fault.slug] {
			t.Errorf("%s: did %q in %d attempts", r.fault.title, did, attempts)
		}
	}

	var out bytes.Buffer
	p := &printer{out: &out}
	p.table(rows)
	p.legend()
	if !p.summary(rows, time.Second) || p.err != nil {
		t.Errorf("not as promised, or %v", p.err)
	}
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(line); n > 133 { // 121, and room for steps that only a loaded machine needs
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("coloured without being asked")
	}
	out.Reset()
	p.events(rows, began)
	if n := strings.Count(out.String(), "request_done"); n != len(rows) {
		t.Errorf("%d requests in the events of %d rows", n, len(rows))
	}
}

// TestRunStops: nothing is left behind when the user loses patience.
func TestRunStops(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := run(ctx, "test"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}

// TestBrokenPromises: an answer that is not whole, an extra request, and an honest
// row without an error are all told.
func TestBrokenPromises(t *testing.T) {
	plain, honest := &fault{title: "plain", targets: alone("ok")}, &fault{title: "honest", targets: alone("ok"), honest: true}
	spoken := &fault{title: "spoken", targets: alone("ok"), told: true}
	for name, c := range map[string]struct {
		row  row
		kept bool
		cell string
	}{
		"whole":              {row{fault: plain, through: outcome{verdict: complete, requests: 1}}, true, "complete answer, 0 ms"},
		"retried itself":     {row{fault: plain, through: outcome{verdict: complete, requests: 2}}, false, "!! complete, 0 ms, 2 requests"},
		"truncated":          {row{fault: plain, through: outcome{verdict: truncated, requests: 1, percent: 50}}, false, "!! TRUNCATED, looks complete"},
		"other text":         {row{fault: plain, through: outcome{verdict: wrong, requests: 1}}, false, "!! WRONG TEXT, looks complete"},
		"sent otherwise":     {row{fault: plain, through: outcome{verdict: complete, requests: 1}, missent: "x"}, false, "!! complete answer, 0 ms"},
		"bad call":           {row{fault: plain, through: outcome{verdict: unusable, requests: 1, problem: "bad call: not JSON"}}, false, "!! bad call: not JSON"},
		"told":               {row{fault: spoken, through: outcome{verdict: told, requests: 1}}, true, "told why, 0 ms"},
		"not told":           {row{fault: spoken, through: outcome{verdict: complete, requests: 1}}, false, "!! complete answer, 0 ms"},
		"told for nothing":   {row{fault: plain, through: outcome{verdict: told, requests: 1}}, false, "!! told why, 0 ms"},
		"error":              {row{fault: plain, through: outcome{verdict: failed, requests: 1, problem: "error 503"}}, false, "!! error 503"},
		"honest":             {row{fault: honest, through: outcome{verdict: failed, requests: 1, percent: 65}}, true, "honest error at 65 %"},
		"honest, but silent": {row{fault: honest, through: outcome{verdict: truncated, requests: 1}}, false, "!! TRUNCATED, looks complete"},
		"honest, but hung":   {row{fault: honest, through: outcome{verdict: hung, requests: 1, took: patience}}, false, "!! hung, gave up after 8 s"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.row.kept() != c.kept {
				t.Errorf("kept: %v", c.row.kept())
			}
			if got := c.row.cells()[2].text; got != c.cell {
				t.Errorf("got %q, want %q", got, c.cell)
			}
			var out bytes.Buffer
			p := &printer{out: &out, colour: true}
			if p.summary([]row{c.row}, time.Second) != c.kept || strings.Contains(out.String(), "Not as promised (!!): "+c.row.fault.title) == c.kept {
				t.Errorf("summary: %s", out.String())
			}
			if !strings.Contains(out.String(), "\x1b[") {
				t.Error("colours were wanted")
			}
		})
	}
}

func TestReadStream(t *testing.T) {
	const a, b = `data: {"choices":[{"delta":{"content":"one "}}]}` + "\n\n", `data:{"choices":[{"delta":{"content":"two"},"finish_reason":"stop"}]}` + "\n\n"
	for name, c := range map[string]struct {
		body, text string
		done       bool
		err        error
	}{
		"whole":          {a + ": ping\n\n" + b + "data: [DONE]\n\n", "one two", true, nil},
		"no end mark":    {a + b, "one two", false, nil},
		"no end at all":  {a, "one ", false, nil},
		"nothing":        {"", "", false, nil},
		"not JSON":       {a + "data: {oops\n\n" + b, "one ", false, errBadEvent},
		"error":          {a + `data: {"error":{"message":"x"}}` + "\n\n", "one ", false, errEvent},
		"after the end":  {"data: [DONE]\n\n" + a, "", true, nil},
		"usage and role": {`data: {"choices":[{"delta":{"role":"assistant"}}]}` + "\n\n" + b + `data: {"choices":[],"usage":{}}` + "\n\n", "two", false, nil},
	} {
		r := readStream(strings.NewReader(c.body))
		if r.text != c.text || r.done != c.done || !errors.Is(r.err, c.err) {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestRetryRules(t *testing.T) {
	for _, c := range []struct {
		status int
		header string // Name: value
		again  bool
		hint   time.Duration
	}{
		{429, "Retry-After: 2", true, 2 * time.Second},
		{429, "Retry-After-Ms: 1500", true, 1500 * time.Millisecond},
		{429, "Retry-After: 61", true, 0},
		{429, "Retry-After: Wed, 21 Oct 2026 07:28:00 GMT", true, 0},
		{429, "Retry-After: -1", true, 0},
		{429, "X-Should-Retry: false", false, 0},
		{400, "X-Should-Retry: true", true, 0},
		{408, "A: b", true, 0}, {409, "A: b", true, 0}, {500, "A: b", true, 0}, {529, "A: b", true, 0},
		{400, "A: b", false, 0}, {401, "A: b", false, 0}, {404, "A: b", false, 0},
	} {
		name, value, _ := strings.Cut(c.header, ": ")
		resp := &http.Response{StatusCode: c.status, Header: http.Header{name: {value}}}
		if again, hint := repeatable(resp), retryAfter(resp.Header); again != c.again || hint != c.hint {
			t.Errorf("%d %s: again %v, hint %v", c.status, c.header, again, hint)
		}
	}
}

// TestFaults: the rows can be told apart, and their requests are JSON.
func TestFaults(t *testing.T) {
	tuned := regexp.MustCompile(`-(lat|n|d|b)\d+|-ts(-|$)`) // would be taken for a tuning of the upstream
	seen := map[string]bool{}
	for i := range faults {
		f := &faults[i]
		if seen[f.slug] || seen[f.title] || f.title == "" {
			t.Errorf("%s: not unique", f.slug)
		}
		seen[f.slug], seen[f.title] = true, true
		for _, model := range []string{f.slug, f.straightModel(), f.before()} {
			if !gjson.Valid(f.question(model)) {
				t.Errorf("%s: %.200s", f.slug, f.question(model))
			}
		}
		if tuned.MatchString("straight-"+f.slug) || tuned.MatchString(f.answers()) {
			t.Errorf("%s: the name tunes the upstream", f.slug)
		}
	}
	if cfg, err := config("http://127.0.0.1:2"); err != nil || len(cfg.Models) != len(faults) {
		t.Error(fmt.Errorf("configuration: %w", err))
	}
}

// TestCalls: what an agent makes of an answer where it expects a call.
func TestCalls(t *testing.T) {
	const event = `data: {"id":"x","choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"read_file","arguments":"{\"path\":"}}]}}]}` + "\n\n" +
		`data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"src/main.go\", \"limit\":20}"}}]}}]}` + "\n\n"
	right := readStream(strings.NewReader(event + "data: [DONE]\n\n"))
	if len(right.calls) != 1 || right.id != "x" {
		t.Fatalf("read %+v", right)
	}
	for name, c := range map[string]struct {
		reply   reply
		again   bool
		verdict verdict
		problem string
	}{
		"right":              {right, false, complete, ""},
		"right, five times":  {right, true, unusable, "the same call once more"},
		"another file":       {reply{calls: []toolCall{{toolRead, `{"path":"a.go"}`}}}, false, wrong, ""},
		"two calls":          {reply{calls: []toolCall{readMain, readMain}}, false, wrong, ""},
		"nothing":            {reply{}, false, empty, ""},
		"text":               {reply{text: "<tool_call>"}, false, unusable, "call shown as text"},
		"unknown":            {reply{calls: []toolCall{{"ReadFile", readMain.args}}}, false, unusable, "bad call: no such tool"},
		"no JSON":            {reply{calls: []toolCall{{toolRead, `{'path':'a'}`}}}, false, unusable, "bad call: not JSON"},
		"no object":          {reply{calls: []toolCall{{toolRead, `["a"]`}}}, false, unusable, "bad call: not JSON"},
		"no path":            {reply{calls: []toolCall{{toolRead, `{}`}}}, false, unusable, "bad call: path is missing"},
		"a limit in letters": {reply{calls: []toolCall{{toolRead, `{"path":"a","limit":"20"}`}}}, false, unusable, "bad call: limit is no number"},
	} {
		var o outcome
		if o.judgeCalls(c.reply, readMain, c.again); o.verdict != c.verdict || o.problem != c.problem {
			t.Errorf("%s: %v, %q", name, o.verdict, o.problem)
		}
	}
}

// TestUnlike: what a request should have, and what not.
func TestUnlike(t *testing.T) {
	f := &fault{sent: []string{"kept", "!gone"}}
	for body, want := range map[string]string{"kept": "", "kept gone": "!gone", "": "kept"} {
		if got := f.unlike(body); got != want {
			t.Errorf("%q: %q", body, got)
		}
	}
}
