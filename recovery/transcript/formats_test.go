package transcript

import "testing"

// Each format writes the gateway's own question in its own fields.
func TestAsk(t *testing.T) {
	q := Question{Model: "m", System: "s", User: "u", Effort: "low", Schema: []byte(`{"type":"object"}`), Name: "n"}
	limited := Question{Model: "m", User: "u", MaxOutput: 9}
	for f, want := range map[Format][2]string{
		Chat: {
			`{"model":"m","reasoning_effort":"low","response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object"}}},"messages":[{"role":"system","content":"s"},{"role":"user","content":"u"}]}`,
			`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"u"}]}`,
		},
		Responses: {
			`{"model":"m","reasoning":{"effort":"low"},"text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object"}}},"instructions":"s","input":"u","store":false}`,
			`{"model":"m","max_output_tokens":9,"input":"u","store":false}`,
		},
		Messages: {
			`{"model":"m","max_tokens":4096,"output_config":{"effort":"low","format":{"type":"json_schema","schema":{"type":"object"}}},"system":"s","messages":[{"role":"user","content":"u"}]}`,
			`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"u"}]}`,
		},
	} {
		limits := f.OutputFields()
		limited.Limit = limits[len(limits)-1]
		for i, ask := range []Question{q, limited} {
			if got := string(f.Ask(ask)); got != want[i] {
				t.Errorf("%s:\n%s\nwant\n%s", f, got, want[i])
			}
		}
	}
}

// A result for a call of the Responses API has the type and the fields that the call's type demands.
func TestResultsByType(t *testing.T) {
	for kind, want := range map[string]string{
		"function_call":        `{"type":"function_call_output","call_id":"c","output":"lost"}`,
		"custom_tool_call":     `{"type":"custom_tool_call_output","call_id":"c","output":"lost"}`,
		"local_shell_call":     `{"type":"local_shell_call_output","call_id":"c","output":"lost"}`,
		"shell_call":           `{"type":"shell_call_output","call_id":"c","output":[{"stdout":"","stderr":"lost","outcome":{"type":"timeout"}}]}`,
		"apply_patch_call":     `{"type":"apply_patch_call_output","call_id":"c","status":"failed","output":"lost"}`,
		"tool_search_call":     `{"type":"tool_search_output","call_id":"c","execution":"client","status":"completed","tools":[]}`,
		"mcp_approval_request": `{"type":"mcp_approval_response","approval_request_id":"c","approve":false,"reason":"lost"}`,
		"computer_call":        ``, // only a screenshot answers it
	} {
		b, err := Parse([]byte(`{"input":[{"type":"`+kind+`","id":"c","call_id":"c","name":"f"}]}`), Responses, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		calls := b.Messages()[0].ToolCalls()
		if len(calls) != 1 {
			t.Fatalf("%s: %d calls", kind, len(calls))
		}
		got := string(b.ResultMessage(calls[0], "lost"))
		if got != want {
			t.Errorf("%s: %s", kind, got)
		}
		if want == "" {
			continue
		}
		if b, err = b.Edit().AppendMessage([]byte(got)).Body(); err != nil {
			t.Fatal(err)
		}
		if m := b.Messages()[1]; m.Role != RoleTool || m.ToolCallID() != "c" && kind != "local_shell_call" {
			t.Errorf("%s: its result is read as %s %q", kind, m.Role, m.ToolCallID())
		}
	}
}

// Edits of the Messages API reach its blocks, and those of thinking the current turn.
func TestEditsOfBlocks(t *testing.T) {
	result := func(more string) string {
		return `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"x"` + more + `}]` + more + `},{"type":"text","text":"cache_control"}]}`
	}
	body := func(messages, more string) string { return `{"model":"m","messages":[` + messages + `]` + more + `}` }
	mark, short := `,"cache_control":{"type":"ephemeral","ttl":"1h"}`, `,"cache_control":{"type":"ephemeral"}`
	thinking := `,"thinking":{"type":"enabled","budget_tokens":2000}`
	turn := func(blocks string) string {
		return `{"role":"user","content":"u"},{"role":"assistant","content":[` + blocks + `{"type":"tool_use","id":"a","name":"f","input":{}}]},` + result("")
	}
	thought := `{"type":"thinking","thinking":"t","signature":"s"},`
	for name, c := range map[string]struct {
		edit     func(e *Editor) bool
		in, want string // want is empty if nothing changes
	}{
		"all marks": {func(e *Editor) bool { return e.DropNested("cache_control") },
			body(result(mark), `,"system":[{"type":"text","text":"s"`+mark+`}]`), body(result(""), `,"system":[{"type":"text","text":"s"}]`)},
		"how long marks hold": {func(e *Editor) bool { return e.DropNested("cache_control.ttl") }, body(result(mark), ""), body(result(short), "")},
		"thinking of the turn": {(*Editor).StopThinking,
			body(turn(thought), thinking+`,"context_management":{"edits":[{"type":"clear_thinking_20251015"},{"type":"clear_tool_uses"}]}`),
			body(turn(""), `,"thinking":{"type":"disabled"},"context_management":{"edits":[{"type":"clear_tool_uses"}]}`)},
		"no thinking":            {(*Editor).StopThinking, body(turn(thought), ""), ""},
		"edits of the context":   {(*Editor).DropThinkingEdits, body(turn(""), `,"context_management":{"edits":[{"type":"clear_thinking_20251015"}]}`), body(turn(""), "")},
		"other edits of it":      {(*Editor).DropThinkingEdits, body(turn(""), `,"context_management":{"edits":[{"type":"clear_tool_uses"}]}`), ""},
		"another level":          {func(e *Editor) bool { return e.DropOption("output_config", "effort", "max") }, body("", `,"output_config":{"effort":"low"}`), ""},
		"a message of a thought": {func(e *Editor) bool { return e.DropReasoning(nil) }, body(`{"role":"user","content":"u"},{"role":"assistant","content":[{"type":"thinking","thinking":"t"}]},{"role":"user","content":"v"}`, ""), body(`{"role":"user","content":"u"},{"role":"user","content":"v"}`, "")},
	} {
		b, err := Parse([]byte(c.in), Messages, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		e := b.Edit()
		changed := c.edit(e)
		got, err := e.Apply()
		if c.want == "" {
			c.want = c.in
		}
		if string(got) != c.want || err != nil || changed != (c.want != c.in) {
			t.Errorf("%s: %t %v\n%s\nwant\n%s", name, changed, err, got, c.want)
		}
	}
}

// Limits count the calls and the results that the Messages API keeps in blocks.
func TestLimitsOfBlocks(t *testing.T) {
	call, result := `{"type":"tool_use","id":"a","name":"f","input":{}}`, `{"type":"tool_result","tool_use_id":"a","content":"x"}`
	for _, c := range []struct {
		role, blocks string
		refused      bool
	}{
		{"assistant", commas(call, 4), false}, {"assistant", commas(call, 5), true}, {"user", commas(result, 3), false}, {"user", commas(result, 4), true},
	} {
		_, err := Parse([]byte(`{"messages":[{"role":"`+c.role+`","content":[`+c.blocks+`]}]}`), Messages, Limits{Messages: 3, Calls: 4})
		if e, _ := err.(*Error); c.refused != (e != nil && e.Code == CodeTooMany) {
			t.Errorf("%s: %v", c.blocks, err)
		}
	}
}
