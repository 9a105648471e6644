package repair

import (
	"testing"

	"github.com/rebound-llm/rebound/recovery"
)

// TestJoinedCalls: several valid argument objects in one string become calls in order, also
// of guarded tools, because nothing is guessed.
func TestJoinedCalls(t *testing.T) {
	req, m := withTools(t, ""), mender()
	for _, args := range []string{`{"command":"ls"}{"command":"pwd"}`, "{\"command\":\"ls\"}\n {\"command\":\"pwd\"}\n"} {
		v := m.Mend(req, call("bash", args))
		if v.Judgement != recovery.JudgeReplace || len(v.Calls) != 2 || v.Calls[0].Arguments != `{"command":"ls"}` || v.Calls[1].Arguments != `{"command":"pwd"}` ||
			v.Calls[0].ID != "call_1" || v.Calls[1].ID == "" || v.Calls[1].ID == "call_1" || v.Calls[1].Name != "bash" {
			t.Errorf("%q: %+v %+v", args, v, v.Flaw)
		}
	}
	two := recovery.Draft{Finish: recovery.FinishCalls, Calls: []recovery.DraftCall{
		{ID: "a", Kind: "function", Name: "bash", Arguments: `{"command":"ls"}{"command":"pwd"}`}, {ID: "b", Kind: "function", Name: "get_weather", Arguments: `{"city":"A"}`}}}
	if v := m.Mend(req, two); len(v.Calls) != 3 || v.Calls[2].ID != "b" || v.Calls[1].Arguments != `{"command":"pwd"}` {
		t.Errorf("before another call: %+v %+v", v, v.Flaw)
	}
	for _, args := range []string{`{"command":"ls"}{"command":"ls"}`, `{"command":"ls"}{"command":"pw`, `{"command":"ls"}{"cmd":1}`, `{"command":"ls"}{'command':'pwd'}`,
		`{"command":"ls"} or {"command":"pwd"}`, `{"command":"ls"}{"command":"pwd","city":"A"}`, `{"command":"ls"}{}`} {
		if v := m.Mend(req, call("bash", args)); v.Judgement != recovery.JudgeAsk {
			t.Errorf("%q: %+v", args, v)
		}
	}
	if v := m.Mend(withTools(t, `,"parallel_tool_calls":false`), call("bash", `{"command":"ls"}{"command":"pwd"}`)); v.Judgement != recovery.JudgeAsk {
		t.Errorf("where one call is allowed: %+v", v)
	}
}

// TestWindowsPaths: a path with unescaped backslashes has only one meaning, also for guarded
// tools. A text that only begins like a path is ambiguous.
func TestWindowsPaths(t *testing.T) {
	req, m := withTools(t, ""), mender()
	for in, want := range map[string]string{
		`C:\new\Users`: `C:\\new\\Users`, `C:\temp\data`: `C:\\temp\\data`, `c:\users\me\x.txt`: `c:\\users\\me\\x.txt`, `C:\\new\Users`: `C:\\new\\Users`,
		`C:\Program Files\nodejs`: `C:\\Program Files\\nodejs`, `\\server\share\new`: `\\\\server\\share\\new`, `\\\\server\share`: `\\\\server\\share`,
	} {
		for _, c := range [][3]string{{"read_file", `{"file_path":"`, `"}`}, {"write_file", `{"path":"`, `","content":"a\nb"}`}} {
			v := m.Mend(req, call(c[0], c[1]+in+c[2]))
			if v.Judgement != recovery.JudgeReplace || v.Calls[0].Arguments != c[1]+want+c[2] {
				t.Errorf("%s: %+v %+v", in, v, v.Flaw)
			}
		}
	}
	for _, in := range []string{`{"command":"C:\Users\x is wrong\nSo"}`, `{"command":"type C:\new\Users"}`, `{"command":"C:\Users\"}`} {
		if v := m.Mend(req, call("bash", in)); v.Judgement != recovery.JudgeAsk {
			t.Errorf("%s: %+v", in, v)
		}
	}
	if v := m.Mend(req, call("read_file", `{"file_path":"C:\temp\new"}`)); v.Judgement != recovery.JudgePass {
		t.Errorf("valid JSON is what it says: %+v", v)
	}
}

// TestReferences: coercion follows the references of a schema.
func TestReferences(t *testing.T) {
	req := request(t, `,"tools":[{"type":"function","function":{"name":"enrol","parameters":{"type":"object","properties":{"who":{"$ref":"#/$defs/Person"}},
		"required":["who"],"$defs":{"Person":{"type":"object","properties":{"age":{"type":"integer"}},"required":["age"]}}}}}]`)
	v := mender().Mend(req, call("enrol", `{"who":{"age":"30"}}`))
	if v.Judgement != recovery.JudgeReplace || v.Calls[0].Arguments != `{"who":{"age":30}}` {
		t.Errorf("%+v", v)
	}
}

// TestNullAsText: where a schema allows null and no text, "None" is null.
func TestNullAsText(t *testing.T) {
	v := mender().Mend(withTools(t, ""), call("get_weather", `{"city":"Paris","limit":"None"}`))
	if v.Judgement != recovery.JudgeReplace || v.Calls[0].Arguments != `{"city":"Paris","limit":null}` {
		t.Errorf("%+v", v)
	}
}
