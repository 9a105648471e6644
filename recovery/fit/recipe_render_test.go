package fit

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

func TestFailed(t *testing.T) {
	for text, want := range map[string]bool{
		"Error: no such tool": true, "Traceback (most recent call last):\n x\nValueError: y": true,
		"ok\n\nCommand exited with code 1": true, "lines\nProcess exited with code 0": false,
		`{"error":"not found"}`: true, `{"error":null,"data":1}`: false, `{"exit_code":2,"output":"x"}`: true, `{"exit_code":0,"output":"error"}`: false,
		"bash: foo: command not found": true, "all 20 tests passed": false, "the word error is in this line of a log\nall is well": false, "": false,
		`{"_compressed": true, "summary": "error"}`: false, `{"isError":true}`: true,
		"Exit code 1\n" + strings.Repeat("compiling one file after the other\n", 60):  true,
		"exit code: 0\n" + strings.Repeat("compiling one file after the other\n", 60): false,
	} {
		if got := reportsFailure(text, false); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	if log := "a log of yesterday\nValueError: y"; !reportsFailure(log, false) || reportsFailure(log, true) {
		t.Error("what a file contains is taken for a failure")
	}
}

func TestResultIsShortened(t *testing.T) {
	s := newScript()
	text := lines(300, "first") + "src/x.go:12: undefined: frobnicate\n" + lines(300, "last")
	long := s.call("bash", `{"command":"make all"}`, text)
	s.call("bash", `{"command":"true"}`, lines(500, "recent"))
	v := s.history(t)
	r := recipe{Op: opShorten, Length: 1000}
	out, ok := v.render(long, r)
	var mark struct {
		Compressed bool   `json:"_compressed"`
		Summary    string `json:"summary"`
	}
	if err := json.Unmarshal([]byte(out.text), &mark); err != nil || !ok || !mark.Compressed {
		t.Fatalf("%q: %v", out.text, err)
	}
	for _, want := range []string{fmt.Sprintf(" of %d characters removed", len(text)), "first line 0\n", "last line 299", "undefined: frobnicate", gap} {
		if !strings.Contains(mark.Summary, want) {
			t.Errorf("%q is missing in %q", want, mark.Summary)
		}
	}
	if len(out.text) > 2000 {
		t.Errorf("%d bytes are left", len(out.text))
	}
	again, _ := v.render(long, r)
	if again.text != out.text {
		t.Error("the same recipe makes other bytes")
	}
}

func TestArgumentsStayJSON(t *testing.T) {
	big := strings.Repeat(`func f() { return "x" } `, 200)
	for _, arguments := range []string{
		string(mustJSON(json.Marshal(map[string]any{"path": "a.go", "content": big, "mode": 7, "force": true}))),
		string(mustJSON(json.Marshal(map[string]any{"path": "a.go", "edits": []map[string]string{{"old": big, "new": big}, {"old": "x", "new": big}}}))),
		string(mustJSON(json.Marshal(map[string]any{"list": make([]int, 3000)}))),
		string(mustJSON(json.Marshal(map[string]any{"deep": map[string]any{"a": map[string]any{"b": map[string]any{"c": map[string]any{"d": big}}}}}))),
		big, `["` + big[:0] + strings.Repeat("x", 3000) + `"]`,
	} {
		s := newScript()
		i := s.call("write", arguments, "done") - 1
		s.call("bash", `{"command":"true"}`, "")
		v := s.history(t)
		out, ok := v.render(i, recipe{Op: opArguments, Length: 1000})
		var before, after map[string]any
		if err := json.Unmarshal([]byte(out.args[0]), &after); err != nil || !ok {
			t.Fatalf("%.200q is no object: %v", out.args[0], err)
		}
		if 3*len(out.args[0]) > 2*len(arguments) {
			t.Errorf("%d of %d bytes are left", len(out.args[0]), len(arguments))
		}
		if json.Unmarshal([]byte(arguments), &before) != nil {
			continue
		}
		for key := range before {
			if summary, _ := after["summary"].(string); after[key] == nil && !strings.Contains(summary, key+": ") {
				t.Errorf("nothing says what became of %q: %s", key, out.args[0])
			}
		}
		if before["path"] != after["path"] || before["mode"] != after["mode"] {
			t.Errorf("short values have changed: %s", out.args[0])
		}
		if strings.Contains(out.args[0], big[:len(big)/2]) {
			t.Errorf("a long value is still there: %.200s", out.args[0])
		}
	}
}

func mustJSON(raw []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return raw
}

func TestPartsStayParts(t *testing.T) {
	s := newScript()
	s.raw(`{"role":"assistant","content":"","tool_calls":[{"id":"a","type":"function","function":{"name":"look","arguments":"{}"}}]}`)
	s.raw(`{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"` + strings.Repeat("word ", 1000) + `","cache_control":{"type":"` +
		`ephemeral"}},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}`)
	s.call("bash", `{"command":"true"}`, "")
	v := s.history(t)
	k := newRevision(v, newMeter(), "gpt-4o")
	if !k.add(3, recipe{Op: opShorten, Length: 1000}, 1) {
		t.Fatal("it is not shortened")
	}
	b, err := k.build()
	if err != nil {
		t.Fatal(err)
	}
	shape := b.Messages()[3].Shape()
	if !shape.Parts || shape.Texts != 1 || shape.Media != 0 || string(shape.Mark) != `{"type":"ephemeral"}` {
		t.Errorf("the content is now %s", b.Messages()[3].Raw())
	}
	if !strings.Contains(b.Messages()[3].Text(), "1 images or files removed") {
		t.Error("nothing says that an image is gone")
	}
}

// Calls whose members the server checks, and screenshots, stay as they are or go with their turn.
func TestTypedCallsStay(t *testing.T) {
	long := string(transcript.String(lines(300, "+ changed")))
	for name, step := range map[string]string{
		"apply_patch": `{"type":"apply_patch_call","call_id":"c%[1]d","status":"completed","operation":{"type":"update_file","path":"a.go","diff":%[2]s}},` +
			`{"type":"apply_patch_call_output","call_id":"c%[1]d","status":"completed","output":"ok"}`,
		"shell": `{"type":"shell_call","call_id":"c%[1]d","status":"completed","action":{"commands":[%[2]s],"timeout_ms":1000}},` +
			`{"type":"shell_call_output","call_id":"c%[1]d","output":[{"stdout":%[2]s,"stderr":"","outcome":{"type":"exit","exit_code":0}}]}`,
		"local_shell": `{"type":"local_shell_call","id":"lsh_%[1]d","call_id":"c%[1]d","status":"completed","action":{"type":"exec","command":["bash","-c",%[2]s],"env":{}}},` +
			`{"type":"local_shell_call_output","call_id":"c%[1]d","output":%[2]s}`,
		"computer": `{"type":"computer_call","call_id":"c%[1]d","status":"completed","pending_safety_checks":[],"action":{"type":"type","text":%[2]s}},` +
			`{"type":"computer_call_output","call_id":"c%[1]d","output":{"type":"computer_screenshot","image_url":"data:image/png;base64,AAAA"}}`,
	} {
		raw := `{"model":"gpt-4o","store":false,"input":[{"role":"user","content":"Mend it."}`
		for i := range 20 {
			raw += "," + fmt.Sprintf(step, i, long)
		}
		b := recoverytest.Parse(t, raw+"]}", transcript.Responses)
		f := newTestFitter(t, Defaults(), nil)
		for _, share := range []float64{0.8, 0.4} {
			_, out := fitOnce(t, f, b, int(share*float64(f.parts.Meter.Measure(b, "gpt-4o").Total)), "", nil)
			if out == nil {
				t.Errorf("%s: not fitted to %.1f", name, share)
				continue
			}
			for _, m := range out.Body.Messages() {
				fixed := len(m.ToolCalls()) > 0 || m.Role == transcript.RoleTool && name == "computer"
				if fixed && !strings.Contains(raw, string(m.Raw())) {
					t.Errorf("%s: it is now %.300s", name, m.Raw())
				}
			}
		}
	}
}

func TestTextIsCutAtCharacters(t *testing.T) {
	for n := range 40 {
		for _, text := range []string{strings.Repeat("äöü€😀", 20), strings.Repeat("\xff\xfe", 30)} {
			for _, got := range []string{recovery.Head(text, n), recovery.Tail(text, n), bothEnds(text, n)} {
				if strings.HasPrefix(text, "ä") && !isUTF8(got) {
					t.Errorf("%d: %q", n, got)
				}
			}
		}
	}
}

func isUTF8(s string) bool { return strings.ToValidUTF8(s, "") == s }
