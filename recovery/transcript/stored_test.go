package transcript_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

func parsed(t *testing.T, body string) *transcript.Body {
	t.Helper()
	return recoverytest.Parse(t, body, transcript.Responses)
}

// TestWriteOut: what a server does not have stands in the place of its names, and nothing else changes.
func TestWriteOut(t *testing.T) {
	output := []byte(`[{"type":"reasoning","id":"rs_1","summary":[]},{"type":"web_search_call","id":"ws_1","status":"completed"},
		{"id":"msg_1","type":"message","role":"assistant","phase":"final_answer","content":[{"type":"output_text","text":"<b>"}]},
		{"type":"function_call","id":"fc_1","call_id":"c1","name":"ls","arguments":"{}"},{"type":"mcp_approval_request","id":"a"}]`)
	const said = `{"type":"message","role":"assistant","phase":"final_answer","content":[{"type":"output_text","text":"<b>"}]}`
	const call = `{"type":"function_call","call_id":"c1","name":"ls","arguments":"{}"}`
	for name, c := range map[string]struct{ first, then, want string }{
		"a text": {`{"input":"Hi \"you\""}`, `{"previous_response_id":"resp_1","input":"And?","x":1}`,
			`{"input":[{"role":"user","content":"Hi \"you\""},` + said + `,` + call + `,{"role":"user","content":"And?"}],"x":1}`},
		"items": {`{"input":[ {"role":"user","content":"Hi"} , {"type":"item_reference","id":"msg_0"}]}`, `{"input":[],"previous_response_id":"resp_1"}`,
			`{"input":[{"role":"user","content":"Hi"},{"type":"item_reference","id":"msg_0"},` + said + `,` + call + `]}`},
		"no input": {`{"input":"Hi"}`, `{"previous_response_id":"resp_1"}`,
			`{"input":[{"role":"user","content":"Hi"},` + said + `,` + call + `]}`},
		"goes on from another": {`{"previous_response_id":"resp_0","input":"Hi"}`, `{"previous_response_id":"resp_1","input":"And?"}`,
			`{"previous_response_id":"resp_0","input":[{"role":"user","content":"Hi"},` + said + `,` + call + `,{"role":"user","content":"And?"}]}`},
		"items by their ids": {`{"input":"Hi"}`, `{"input":[{"role":"user","content":"Hi"},{"type":"item_reference","id":"rs_1"},{"id":"msg_1"},{"type":"item_reference","id":"fc_1"},{"type":"item_reference","id":"msg_9"},{"type":"function_call","id":"fc_1","call_id":"c2"}]}`,
			`{"input":[{"role":"user","content":"Hi"},` + said + `,` + call + `,{"type":"item_reference","id":"msg_9"},{"type":"function_call","id":"fc_1","call_id":"c2"}]}`},
		"told in full": {`{"input":"Hi"}`, `{"input":[{"role":"user","content":"Hi"},{"type":"reasoning","id":"rs_0","summary":[]},{"type":"message","id":"msg_0","role":"assistant","content":"a"},{"role":"user","content":"Hi"},` +
			`{"type":"reasoning","id":"rs_1","summary":[]},{"type":"message","id":"msg_1","role":"assistant","content":"b"},{"type":"function_call","id":"fc_1","call_id":"c1"},{"type":"function_call_output","call_id":"c1","output":"o"},{"type":"message","id":"msg_2","role":"assistant","content":"c"}]}`,
			`{"input":[{"role":"user","content":"Hi"},{"type":"reasoning","id":"rs_0","summary":[]},{"type":"message","id":"msg_0","role":"assistant","content":"a"},{"role":"user","content":"Hi"},` +
				`{"type":"message","role":"assistant","content":"b"},{"type":"function_call","call_id":"c1"},{"type":"function_call_output","call_id":"c1","output":"o"},{"type":"message","id":"msg_2","role":"assistant","content":"c"}]}`},
		"told sealed": {`{"input":"Hi"}`, `{"input":[{"type":"reasoning","id":"rs_1","encrypted_content":"x"},{"type":"message","id":"msg_1","role":"assistant","content":"b"}]}`,
			`{"input":[{"type":"reasoning","id":"rs_1","encrypted_content":"x"},{"type":"message","id":"msg_1","role":"assistant","content":"b"}]}`},
	} {
		turn, items := parsed(t, c.first).Turn(output)
		then := parsed(t, c.then)
		previous, ids := then.Referred(100)
		known := map[string][]byte{}
		for _, id := range ids {
			if raw, ok := items[id]; ok {
				known[id] = raw
			}
		}
		of := &turn
		if previous == "" {
			of = nil
		}
		got, err := then.Edit().WriteOut(of, known).Body()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var a, b any
		_, _ = json.Unmarshal(got.Raw(), &a), json.Unmarshal([]byte(c.want), &b)
		ja, _ := json.Marshal(a)
		jb, _ := json.Marshal(b)
		if !bytes.Equal(ja, jb) || bytes.Contains(got.Raw(), []byte(`\u003c`)) {
			t.Errorf("%s:\n%s\nwant\n%s", name, got.Raw(), c.want)
		}
	}
	if _, ids := parsed(t, `{"input":[{"id":"a"},{"id":"b"},{"id":"c"},{"role":"user","content":"x","id":"d"}]}`).Referred(2); len(ids) != 2 || ids[0] != "c" || ids[1] != "b" {
		t.Errorf("the latest two are %v", ids)
	}
}

// FuzzWriteOut: whatever a request, an answer and a kept turn are, the result parses or is none, and
// names nothing that was written out.
func FuzzWriteOut(f *testing.F) {
	f.Add([]byte(`{"input":"Hi"}`), []byte(`[{"type":"message","id":"m","role":"assistant","content":[]}]`),
		[]byte(`{"previous_response_id":"r","input":[{"id":"m"},{"type":"item_reference","id":"m"}]}`))
	f.Add([]byte(`{"input":[{"role":"user","content":"x"}],"previous_response_id":"p"}`), []byte(`[7,{"type":"function_call","id":"f","call_id":"c"}]`), []byte(`{"previous_response_id":"r"}`))
	f.Add([]byte(`{"input":null}`), []byte(`{}`), []byte(`{"input":"x","previous_response_id":"r","previous_response_id":"s"}`))
	f.Fuzz(func(t *testing.T, first, output, then []byte) {
		b, err := transcript.Parse(first, transcript.Responses, transcript.Limits{})
		if err != nil || transcript.Valid(output, 100) != nil {
			return
		}
		turn, items := b.Turn(output)
		if transcript.Valid(turn.Elements, 200) != nil {
			t.Fatalf("%s and %s make %s", first, output, turn.Elements)
		}
		next, err := transcript.Parse(then, transcript.Responses, transcript.Limits{})
		if err != nil {
			return
		}
		got, bad := next.Edit().WriteOut(&turn, items).Body()
		if bad != nil {
			return
		}
		previous, ids := got.Referred(1000)
		if previous != turn.Previous {
			t.Fatalf("it still goes on from %q: %s", previous, got.Raw())
		}
		for _, id := range ids {
			if _, known := items[id]; known && !bytes.Contains(turn.Elements, []byte(`"`+id+`"`)) {
				t.Fatalf("it still names %q: %s", id, got.Raw())
			}
		}
	})
}
