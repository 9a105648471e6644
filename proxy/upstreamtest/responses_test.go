package upstreamtest

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// call makes a request with a credential and returns the status and the body.
func call(t *testing.T, r *Running, method, path, key, payload string) (int, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, r.URL()+"/v1/responses"+path, strings.NewReader(payload))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	res, err := client(t).Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, string(b), err
}

// requestWith returns a request with these input items.
func requestWith(model, extra, input string) string {
	return `{"model":"` + model + `",` + extra + `"input":` + input + `}`
}

const hello = `[{"role":"user","content":"hello"}]`

// data returns the events of a stream.
func data(t *testing.T, stream string) (events []gjson.Result) {
	t.Helper()
	name := ""
	for line := range strings.Lines(stream) {
		line = strings.TrimRight(line, "\r\n")
		if typ, ok := strings.CutPrefix(line, "event: "); ok {
			name = typ
		}
		if d, ok := strings.CutPrefix(line, "data: "); ok && gjson.Valid(d) {
			e := gjson.Parse(d)
			if e.Get("type").Str != name {
				t.Errorf("event %q has type %q", name, e.Get("type").Str)
			}
			events = append(events, e)
		}
	}
	return events
}

func TestResponse(t *testing.T) {
	up := start(t)
	status, b, err := call(t, up, "POST", "", "a", requestWith("svc@reason,text-tool", `"include":["reasoning.encrypted_content"],`, hello))
	if err != nil || status != http.StatusOK || !gjson.Valid(b) {
		t.Fatalf("%d %v %s", status, err, b)
	}
	for path, want := range map[string]string{
		"id": "resp_mock_1", "object": "response", "model": "svc", "status": "completed",
		"output.#.type":              `["reasoning","message","function_call"]`,
		"output.0.summary.0.text":    ReasoningText,
		"output.1.content.0.text":    TextFor("svc"),
		"output.2.arguments":         ToolArguments,
		"output.2.call_id":           ToolCallID(1),
		"output.0.id":                "rs_mock_1",
		"output.1.role":              "assistant",
		"output.0.encrypted_content": Seal("a", "rs_mock_1"),
	} {
		if got := gjson.Get(b, path).String(); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	if u := gjson.Get(b, "usage"); u.Get("total_tokens").Int() != u.Get("input_tokens").Int()+u.Get("output_tokens").Int() {
		t.Errorf("usage %s", u.Raw)
	}
	for step, want := range map[string]string{
		"finish=length": "incomplete", "error-event": "failed", "no-finish": "in_progress",
	} {
		_, b, _ := call(t, up, "POST", "", "a", requestWith("svc@"+step, "", hello))
		if got := gjson.Get(b, "status").Str; got != want {
			t.Errorf("%s: status %q, want %q", step, got, want)
		}
	}
}

func TestResponseStream(t *testing.T) {
	up := start(t)
	_, b, err := call(t, up, "POST", "", "a", requestWith("svc@reason,text-tool,chunks=3", `"stream":true,`, hello))
	if err != nil || strings.Contains(b, "[DONE]") {
		t.Fatal(err, b)
	}
	var types []string
	text, args := "", ""
	events := data(t, b)
	for i, e := range events {
		if e.Get("sequence_number").Int() != int64(i) {
			t.Errorf("event %d has sequence_number %s", i, e.Get("sequence_number").Raw)
		}
		typ := strings.TrimPrefix(e.Get("type").Str, "response.")
		if len(types) == 0 || types[len(types)-1] != typ {
			types = append(types, typ)
		}
		switch typ {
		case "output_text.delta":
			text += e.Get("delta").Str
		case "function_call_arguments.delta":
			args += e.Get("delta").Str
		case "output_item.done":
			if in := events[len(events)-1].Get("response.output." + e.Get("output_index").Raw); in.Raw != e.Get("item").Raw {
				t.Errorf("item %s, in the response %s", e.Get("item").Raw, in.Raw)
			}
		}
	}
	want := `created in_progress output_item.added reasoning_summary_part.added reasoning_summary_text.delta
		reasoning_summary_text.done reasoning_summary_part.done output_item.done output_item.added content_part.added
		output_text.delta output_text.done content_part.done output_item.done output_item.added function_call_arguments.delta
		function_call_arguments.done output_item.done completed`
	if got := strings.Join(types, " "); got != strings.Join(strings.Fields(want), " ") {
		t.Errorf("events: %s", got)
	}
	if text != TextFor("svc") || args != ToolArguments {
		t.Errorf("text %q, arguments %q", text, args)
	}
}

// Faults are at the same places as in a chat completion.
func TestResponseFaults(t *testing.T) {
	up := start(t)
	for step, want := range map[string]struct {
		deltas      int
		last        string
		broken, bad bool
	}{
		"cut=0.5":              {10, "response.output_text.delta", true, false},
		"cut=0":                {0, "response.content_part.added", true, false},
		"cut=1":                {20, "response.output_text.delta", true, false},
		"fin=0.5":              {10, "response.output_text.delta", false, false},
		"error-event=0.5":      {10, "response.failed", false, false},
		"error-event=0.5,flat": {10, "error", false, false},
		"no-finish":            {20, "response.output_item.done", false, false},
		"role-only":            {0, "response.in_progress", false, false},
		"empty-answer":         {0, "response.completed", false, false},
		"finish=length":        {20, "response.incomplete", false, false},
		"malformed=0.3":        {20, "response.completed", false, true},
		"done,crlf":            {20, "response.completed", false, false},
	} {
		_, b, err := call(t, up, "POST", "", "a", requestWith("svc@"+step, `"stream":true,`, hello))
		events := data(t, b)
		if (err != nil) != want.broken || len(events) == 0 {
			t.Errorf("%s: %v, %d events", step, err, len(events))
			continue
		}
		if n := strings.Count(b, "event: response.output_text.delta"); n != want.deltas || events[len(events)-1].Get("type").Str != want.last {
			t.Errorf("%s: %d deltas, last %s", step, n, events[len(events)-1].Raw)
		}
		if bad := strings.Count(b, "data: ") - strings.Count(b, "[DONE]") - len(events); (bad > 0) != want.bad {
			t.Errorf("%s: %d events are not JSON", step, bad)
		}
	}
}

func TestToolsOfResponses(t *testing.T) {
	up := start(t)
	for tools, want := range map[string]string{
		`[{"type":"function","name":"f"}]`:                                           `["function_call","f",""]`,
		`[{"type":"custom","name":"g"}]`:                                             `["custom_tool_call","g",""]`,
		`[{"type":"namespace","name":"n","tools":[{"type":"function","name":"h"}]}]`: `["function_call","h","n"]`,
	} {
		_, b, _ := call(t, up, "POST", "", "a", requestWith("svc@tool", `"tools":`+tools+`,`, hello))
		it := gjson.Get(b, "output.0")
		if got := `["` + it.Get("type").Str + `","` + it.Get("name").Str + `","` + it.Get("namespace").Str + `"]`; got != want {
			t.Errorf("%s: %s", tools, got)
		}
	}
}

// The mock refuses what OpenAI refuses, with the same messages.
func TestLedger(t *testing.T) {
	up := start(t)
	ask := func(script, extra, input string) gjson.Result {
		_, b, err := call(t, up, "POST", "", "a", requestWith(script, extra, input))
		if err != nil {
			t.Fatal(err)
		}
		return gjson.Parse(b)
	}
	sealed := `"include":["reasoning.encrypted_content"],"store":false,`
	made := ask("svc@reason,tool", sealed, hello)
	rs, fc := made.Get("output.0").Raw, made.Get("output.1").Raw
	kept := ask("svc@reason,tool", "", hello)
	bare := kept.Get("output.0").Raw
	user, out := `{"role":"user","content":"x"}`, `{"type":"function_call_output","call_id":"`+made.Get("output.1.call_id").Str+`","output":"1"}`
	noID := strings.Replace(fc, `"id":"fc_mock_1",`, "", 1)
	list := func(items ...string) string { return "[" + strings.Join(items, ",") + "]" }
	for name, tt := range map[string]struct{ extra, input, want string }{
		"well":                      {"", list(user, rs, fc, out), ""},
		"no reasoning, no id":       {"", list(user, noID, out), ""},
		"no reasoning":              {"", list(user, fc, out), "'fc_mock_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_mock_1'."},
		"reasoning elsewhere":       {"", list(rs, noID, out, user, fc, out), "without its required 'reasoning'"},
		"reasoning alone":           {"", list(user, rs), "'rs_mock_1' of type 'reasoning' was provided without its required following item."},
		"reasoning before the user": {"", list(rs, user), "without its required following item"},
		"no output":                 {"", list(user, rs, fc), "No tool output found for function call call_mock_1."},
		"no call":                   {"", list(user, out), "No tool call found for function call output with call_id call_mock_1."},
		"no call, chained":          {`"conversation":"conv_1",`, list(out), ""},
		"twice":                     {"", list(rs, fc, out, rs, fc, out), "Duplicate item found with id rs_mock_1."},
		"wrong id":                  {"", list(strings.Replace(noID, `{`, `{"id":"call_1",`, 1), out), "Invalid 'input[0].id': 'call_1'. Expected an ID that begins with 'fc'."},
		"long id":                   {"", list(strings.Replace(noID, `{`, `{"id":"fc_`+strings.Repeat("x", 70)+`",`, 1), out), "maximum length 64"},
		"foreign":                   {"", list(strings.Replace(rs, Seal("a", ""), Seal("b", ""), 1), fc, out), ""},
		"reference":                 {"", list(`{"type":"item_reference","id":"`+kept.Get("output.0.id").Str+`"}`, kept.Get("output.1").Raw, strings.Replace(out, "mock_1", "mock_2", 1)), ""},
		"reference, not stored":     {"", list(`{"type":"item_reference","id":"rs_mock_1"}`), "Item with id 'rs_mock_1' not found. Items are not persisted when `store` is set to false."},
		"unsealed, stored":          {"", list(bare, kept.Get("output.1").Raw, strings.Replace(out, "mock_1", "mock_2", 1)), ""},
		"chained":                   {`"previous_response_id":"` + kept.Get("id").Str + `",`, list(strings.Replace(out, "mock_1", "mock_2", 1)), ""},
		"chained, no output":        {`"previous_response_id":"` + kept.Get("id").Str + `",`, list(user), "No tool output found for function call call_mock_2."},
		"chained to nothing":        {`"previous_response_id":"resp_mock_1",`, list(user), "Previous response with id 'resp_mock_1' not found."},
		"chat":                      {`"max_tokens":1,`, hello, "this parameter has moved to 'max_output_tokens'"},
	} {
		if name == "foreign" {
			tt.input, tt.want = strings.ReplaceAll(tt.input, sealMark+accountSeal("a"), sealMark+accountSeal("b")), "could not be verified"
		}
		got := ask("next", tt.extra, tt.input)
		if msg := got.Get("error.message").Str; (msg == "") != (tt.want == "") || !strings.Contains(msg, tt.want) {
			t.Errorf("%s: %s", name, got.Raw)
		}
	}
}

// A response belongs to the account that made it.
func TestStoredResponses(t *testing.T) {
	up := start(t)
	_, made, _ := call(t, up, "POST", "", "a", requestWith("svc", `"background":true,`, hello))
	id := gjson.Get(made, "id").Str
	if gjson.Get(made, "status").Str != "queued" {
		t.Errorf("created: %s", made)
	}
	for _, tt := range []struct {
		method, path, key string
		status            int
		want              string
	}{
		{"GET", "/" + id, "b", 404, "not found"},
		{"GET", "/" + id, "a", 200, `"status":"completed"`},
		{"GET", "/" + id + "/input_items", "a", 200, "hello"},
		{"GET", "/" + id + "?stream=true", "a", 400, "cannot be streamed"},
		{"POST", "/" + id + "/cancel", "a", 200, id},
		{"DELETE", "/" + id, "b", 404, "not found"},
		{"DELETE", "/" + id, "a", 200, `"deleted":true`},
		{"GET", "/" + id, "a", 404, "not found"},
		{"GET", "", "a", 405, "Not allowed"},
	} {
		if status, b, err := call(t, up, tt.method, tt.path, tt.key, ""); err != nil || status != tt.status || !strings.Contains(b, tt.want) {
			t.Errorf("%s %s by %s: %d %v %s", tt.method, tt.path, tt.key, status, err, b)
		}
	}
	if _, b, _ := call(t, up, "POST", "/input_tokens", "a", requestWith("svc", "", hello)); gjson.Get(b, "input_tokens").Int() == 0 {
		t.Error(b)
	}
	_, b, _ := call(t, up, "POST", "/compact", "a", requestWith("svc@503/ok", "", hello))
	if gjson.Get(b, "error.code").Exists() == false {
		t.Errorf("compact knows no script: %s", b)
	}
	_, b, _ = call(t, up, "POST", "/compact", "a", requestWith("svc@503/ok", "", hello))
	if out := gjson.Get(b, "output"); out.Get("#").Int() != 2 || out.Get("1.type").Str != "compaction" {
		t.Errorf("compacted: %s", b)
	}
	if status, b, _ := call(t, up, "POST", "", "b", requestWith("svc", "", gjson.Get(b, "output").Raw)); status != 400 {
		t.Errorf("another account reads what was sealed: %s", b)
	}
}

// A background stream can be resumed where it broke.
func TestResume(t *testing.T) {
	up := start(t)
	_, part, err := call(t, up, "POST", "", "a", requestWith("svc@cut=0.5/ok", `"stream":true,"background":true,`, hello))
	if err == nil {
		t.Fatal("not cut")
	}
	events := data(t, part)
	last := events[len(events)-1]
	id := events[0].Get("response.id").Str
	_, rest, err := call(t, up, "GET", "/"+id+"?stream=true&starting_after="+last.Get("sequence_number").Raw, "a", "")
	if err != nil {
		t.Fatal(err)
	}
	_, all, err := call(t, up, "GET", "/"+id+"?stream=true", "a", "")
	if err != nil || all != part+rest {
		t.Errorf("%v: the parts are not the whole", err)
	}
}

// Events and Whole serve programs that generate their own answers.
func TestWriteResponse(t *testing.T) {
	r := &Response{ID: "resp_1", Model: "m", Items: []Item{
		{Kind: Message, ID: "msg_1", Text: []string{"a \"quoted\" ", "word"}},
		{Kind: FunctionCall, ID: "fc_1", CallID: "c", Name: "f", Text: []string{`{"a":`, `1}`}},
	}}
	events, content := r.Events()
	all := data(t, string(bytes.Join(events, nil)))
	if len(content) != 4 || all[content[0]].Get("delta").Str != `a "quoted" ` || all[len(all)-1].Get("response").Raw != string(r.Whole()) {
		t.Errorf("%v in %s", content, bytes.Join(events, nil))
	}
	if got := gjson.GetBytes(r.Whole(), "output.1.arguments").Str; got != `{"a":1}` {
		t.Errorf("arguments %q", got)
	}
}
