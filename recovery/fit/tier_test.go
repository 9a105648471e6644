package fit

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

func TestToolsAreUnderstood(t *testing.T) {
	s := newScript()
	s.tools = `[{"type":"function","function":{"name":"fs_access","description":"Reads a file from the workspace","parameters":{}}},
		{"type":"function","function":{"name":"amend","description":"Replace text in a file"}}]`
	box := newToolbox(s.body(t))
	for _, c := range []struct {
		name, arguments string
		kind            toolKind
		paths           string
	}{
		{"read", `{"path":"a/b.go"}`, kindRead, "a/b.go"},
		{"Read", `{"file_path":"/x/./b.go","offset":10}`, kindRead, "/x/b.go"},
		{"readFile", `{"target_file":"b.go"}`, kindRead, "b.go"},
		{"fs_access", `{"filename":"b.go"}`, kindRead, "b.go"},
		{"amend", `{"path":"b.go","old":"x","new":"y"}`, kindEdit, "b.go"},
		{"str_replace_editor", `{"command":"view","path":"/w/b.go"}`, kindRead, "/w/b.go"},
		{"str_replace_editor", `{"command":"str_replace","path":"/w/b.go"}`, kindEdit, "/w/b.go"},
		{"str_replace_editor", `{"command":"create","path":"/w/b.go"}`, kindWrite, "/w/b.go"},
		{"apply_patch", `{"input":"*** Begin Patch\n*** Update File: a/c.go\n@@\n*** Add File: d.go\n*** End Patch"}`, kindEdit, "a/c.go d.go"},
		{"apply_patch", "*** Begin Patch\n*** Update File: a/c.go\n@@\n*** End Patch", kindEdit, "a/c.go"},
		{"write_file", `{"path":"b.go","content":"x"}`, kindWrite, "b.go"},
		{"grep", `{"pattern":"x","path":"src"}`, kindSearch, "src"},
		{"bash", `{"command":"npm test"}`, kindShell, ""},
		{"shell", `{"command":["bash","-lc","cat a/b.go"]}`, kindRead, "a/b.go"},
		{"bash", `{"command":"cd /w && sed -n '1,80p' b.go"}`, kindRead, "/w/b.go"},
		{"bash", `{"command":"cat b.go | grep x"}`, kindShell, ""},
		{"bash", `{"command":"cat > b.go <<'EOF'\nx\nEOF"}`, kindWrite, "b.go"},
		{"bash", `{"command":"sed -i 's/a/b/' src/b.go"}`, kindWrite, "src/b.go"},
		{"bash", `{"command":"rm -rf x; cat b.go"}`, kindShell, ""},
		{"get_reservation", `{"id":"Z"}`, kindRead, ""},
		{"cancel_reservation", `{"id":"Z"}`, kindOther, ""},
		{"update_reservation", `{"id":"Z"}`, kindOther, ""},
		{"think", `{"thought":"read the file"}`, kindOther, ""},
		{"read", `not json`, kindRead, ""},
		{"read", `["b.go"]`, kindRead, ""},
	} {
		got := box.read(c.name, c.arguments, transcript.ToolCall{Name: c.name})
		if got.kind != c.kind || strings.Join(got.paths, " ") != c.paths {
			t.Errorf("%s %s: kind %d of %q, want %d of %q", c.name, c.arguments, got.kind, got.paths, c.kind, c.paths)
		}
	}
}

func TestSamePath(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{{"a/b.go", "/w/a/b.go", true}, {"/w/a/b.go", "b.go", true}, {"/w/b.go", "/v/b.go", false}, {"xb.go", "b.go", false}, {".", "/w/.", false}, {"b.go", "b.go", true}} {
		if got := samePath(c.a, c.b); got != c.want {
			t.Errorf("%s and %s: %v", c.a, c.b, got)
		}
	}
}

func TestFailed(t *testing.T) {
	for text, want := range map[string]bool{
		"Error: no such tool": true, "Traceback (most recent call last):\n x\nValueError: y": true,
		"ok\n\nCommand exited with code 1": true, "lines\nProcess exited with code 0": false,
		`{"error":"not found"}`: true, `{"error":null,"data":1}`: false, `{"exit_code":2,"output":"x"}`: true, `{"exit_code":0,"output":"error"}`: false,
		"bash: foo: command not found": true, "all 20 tests passed": false, "the word error is in this line of a log\nall is well": false, "": false,
		`{"_compressed": true, "summary": "error"}`: false, `{"isError":true}`: true,
	} {
		if got := failed(text, kindShell); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	if failed("x = 1\nraise ValueError: y", kindRead) {
		t.Error("what a file contains is taken for a failure")
	}
}

func TestReread(t *testing.T) {
	s := newScript()
	first := s.call("read", `{"path":"a.go"}`, lines(50, "old"))
	same := s.call("bash", `{"command":"make"}`, lines(50, "make"))
	poll := s.call("next_page", `{"n":1}`, lines(50, "one"))
	s.call("read", `{"path":"a.go","offset":2}`, lines(50, "part"))
	s.call("read", `{"path":"a.go"}`, lines(50, "new"))
	s.call("bash", `{"command":"make"}`, lines(50, "make"))
	s.call("next_page", `{"n":1}`, lines(50, "two"))
	kept := s.call("read", `{"path":"b.go"}`, lines(50, "whole"))
	s.call("read", `{"path":"b.go"}`, "Error: ENOENT, no such file b.go")
	s.call("bash", `{"command":"true"}`, "")
	v := s.view(t)
	list := reread(v, free(v))
	if got := at(list); !slices.Equal(got, []int{first, same}) {
		t.Errorf("proposed %v, want %v (not %d: an unknown tool's other result; not %d: the newer one failed)", got, []int{first, same}, poll, kept)
	}
	if list[0].recipe.Op != opOutdated || list[1].recipe.Op != opRepeated {
		t.Errorf("operations %+v", list)
	}
}

func TestOvertaken(t *testing.T) {
	s := newScript()
	read := s.call("read", `{"path":"/w/a.go"}`, lines(50, "a"))
	cat := s.call("bash", `{"command":"cat b.go"}`, lines(50, "b"))
	s.call("read", `{"path":"c.go"}`, lines(50, "c"))
	s.call("edit", `{"path":"a.go","old":"x","new":"y"}`, "done")
	s.call("bash", `{"command":"sed -i s/a/b/ b.go"}`, "")
	s.call("edit", `{"path":"c.go","old":"x","new":"y"}`, "Error: old text not found")
	s.call("read", `{"path":"/w/a.go"}`, lines(50, "a2"))
	s.call("bash", `{"command":"true"}`, "")
	v := s.view(t)
	if got := at(overtaken(v, free(v))); !slices.Equal(got, []int{read, cat}) {
		t.Errorf("proposed %v, want %v", got, []int{read, cat})
	}
}

func TestResultIsShortened(t *testing.T) {
	s := newScript()
	text := lines(300, "first") + "src/x.go:12: undefined: frobnicate\n" + lines(300, "last")
	long := s.call("bash", `{"command":"make all"}`, text)
	s.call("bash", `{"command":"true"}`, lines(500, "recent"))
	v := s.view(t)
	r := recipe{Op: opShorten, A: 1000}
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
		string(must(json.Marshal(map[string]any{"path": "a.go", "content": big, "mode": 7, "force": true}))),
		string(must(json.Marshal(map[string]any{"path": "a.go", "edits": []map[string]string{{"old": big, "new": big}, {"old": "x", "new": big}}}))),
		string(must(json.Marshal(map[string]any{"list": make([]int, 3000)}))),
		string(must(json.Marshal(map[string]any{"deep": map[string]any{"a": map[string]any{"b": map[string]any{"c": map[string]any{"d": big}}}}}))),
		big, `["` + big[:0] + strings.Repeat("x", 3000) + `"]`,
	} {
		s := newScript()
		i := s.call("write", arguments, "done") - 1
		s.call("bash", `{"command":"true"}`, "")
		v := s.view(t)
		out, ok := v.render(i, recipe{Op: opArguments, A: 1000})
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

func must(raw []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return raw
}

func TestPartsStayParts(t *testing.T) {
	s := newScript()
	s.raw(`{"role":"assistant","content":"","tool_calls":[{"id":"a","type":"function","function":{"name":"look","arguments":"{}"}}]}`)
	s.raw(`{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"` + strings.Repeat("word ", 1000) + `","cache_control":{"type":"ephemeral"}},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}`)
	s.call("bash", `{"command":"true"}`, "")
	v := s.view(t)
	k := newWork(v, offline(), "gpt-4o")
	if !k.add(3, recipe{Op: opShorten, A: 1000}, 1) {
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

func TestTextIsCutAtCharacters(t *testing.T) {
	for n := range 40 {
		for _, text := range []string{strings.Repeat("äöü€😀", 20), strings.Repeat("\xff\xfe", 30)} {
			for _, got := range []string{cutBefore(text, n), text[cutAfter(text, n):], beginning(text, n), ending(text, n)} {
				if strings.HasPrefix(text, "ä") && !isUTF8(got) {
					t.Errorf("%d: %q", n, got)
				}
			}
		}
	}
}

func isUTF8(s string) bool { return strings.ToValidUTF8(s, "") == s }
