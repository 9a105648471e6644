package stream

import (
	"testing"

	"github.com/tidwall/gjson"
)

// TestReplay: a complete response becomes the events of it; one that is not does not.
func TestReplay(t *testing.T) {
	whole := []byte(`{"id":"resp_1","status":"completed","model":"m","output":[{"type":"reasoning","id":"rs_1","summary":[]},
		{"id":"msg_1","type":"message","status":"completed","role":"assistant","phase":"final_answer","content":[{"type":"output_text","annotations":[],"text":"Hello."}]},
		{"type":"function_call","id":"fc_1","call_id":"c1","name":"ls","arguments":"{\"a\":1}","status":"completed"}],"usage":{"input_tokens":1,"output_tokens":2,"total_tokens":3}}`)
	events, underway := Responses{}.Replay(whole)
	var d Delta
	known, text, seq := new(Known), "", 0
	eachEvent(events, func(ev *Event) {
		d = *Responses{}.Decode(ev, known)
		if text += d.Text; d.Kind >= KindError || d.seq != seq {
			t.Errorf("%s: %v, number %d", ev.Data, d.Kind, d.seq)
		}
		seq++
	})
	if underway || text != "Hello." || !d.HasUsage || d.Usage.Output != 2 || textOf([]byte(d.ID.ID)) != "resp_1" || !known.called {
		t.Errorf("%q %v %+v\n%s", text, underway, d, events)
	}
	for status, want := range map[string]bool{"in_progress": true, "queued": true, "failed": false, "cancelled": false, "incomplete": false, "": false} {
		events, underway := Responses{}.Replay([]byte(`{"id":"resp_1","output":[],"status":"` + status + `"}`))
		if len(events) > 0 || underway != want {
			t.Errorf("%q: %v %s", status, underway, events)
		}
	}
}

// FuzzReplay: whatever a server says that it has kept, what comes of it can be read.
func FuzzReplay(f *testing.F) {
	f.Add([]byte(`{"status":"completed","output":[{"type":"message","id":"m","content":[{"text":"a"}]},7,{"type":"custom_tool_call"},{"type":"message","content":[{"text":"a"},{"refusal":"b"}]}]}`))
	f.Add([]byte(`{"output":{"a":[]},"status":"completed","status":"in_progress"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		events, underway := Responses{}.Replay(body)
		if underway && len(events) > 0 {
			t.Fatal("it is complete and under way")
		}
		eachEvent(events, func(ev *Event) {
			if !gjson.ValidBytes(ev.Data) {
				t.Fatalf("%q became %q", body, ev.Data)
			}
		})
	})
}
