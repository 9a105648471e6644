package session

import (
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Sessions of the Responses API: the same from the second request on, another for
// another run of the same task, whatever the client sends back of an answer.
func TestResponses(t *testing.T) {
	parse := func(rest string, items ...string) *transcript.Body {
		return recoverytest.Parse(t, `{"instructions":"Be brief.","input":[`+strings.Join(items, ",")+`]`+rest+`}`, transcript.Responses)
	}
	id := func(b *transcript.Body) string {
		in := Input{Body: b, Credential: []byte("k")}
		got := Identify(in).String()
		if again := NewKnown().Identify(in); again != got {
			t.Errorf("remembered as %s, derived as %s", again, got)
		}
		return got
	}
	const (
		task   = `{"role":"user","content":"Do it."}`
		sealed = `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"}`
		said   = `{"type":"message","role":"assistant","id":"msg_1","content":[{"type":"output_text","text":"I look."}]}`
		more   = `{"type":"message","role":"assistant","id":"msg_2","content":[{"type":"output_text","text":"And I call."}]}`
		other  = `{"type":"message","role":"assistant","id":"msg_2","content":[{"type":"output_text","text":"And I ask."}]}`
		call   = `{"type":"function_call","call_id":"c1","name":"ls","arguments":"{}"}`
		result = `{"type":"function_call_output","call_id":"c1","output":"a"}`
		named  = `{"type":"item_reference","id":"fc_1"}`
		named2 = `{"type":"item_reference","id":"fc_2"}`
	)
	if got := id(parse("", task)); got != "" {
		t.Errorf("the first request has the session %s", got)
	}
	first := id(parse("", task, sealed, said, more, call, result))
	for what, c := range map[string]struct {
		body *transcript.Body
		same bool
	}{
		"the next turn":     {parse("", task, sealed, said, more, call, result, said, `{"role":"user","content":"Go on."}`), true},
		"without reasoning": {parse("", task, said, more, call, result), true},
		"other words":       {parse("", task, sealed, said, other, call, result), false},
		"another call":      {parse("", task, sealed, said, more, strings.ReplaceAll(call, "c1", "c2"), result), false},
		"other instructions": {func() *transcript.Body {
			b := parse("", task, sealed, said, more, call, result)
			raw := strings.Replace(string(b.Raw()), "Be brief.", "Be long.", 1)
			b, _ = transcript.Parse([]byte(raw), transcript.Responses, transcript.Limits{})
			return b
		}(), false},
	} {
		if got := id(c.body); (got == first) != c.same {
			t.Errorf("%s: %s beside %s", what, got, first)
		}
	}
	if a, b := id(parse("", task, named, result)), id(parse("", task, named2, result)); a == "" || a == b || a != id(parse("", task, named, result, named2, result)) {
		t.Error("runs whose answers are named only are taken for one another")
	}
	if a, b := id(parse(`,"conversation":"conv_1"`, task)), id(parse(`,"conversation":{"id":"conv_1"}`, result)); a == "" || a != b || a == id(parse(`,"conversation":"conv_2"`, task)) {
		t.Error("a conversation that the server keeps is not known again")
	}
	title := parse("", task)
	if SideOf(title) != SideNone {
		t.Error("no side request")
	}
	raw := strings.Replace(string(title.Raw()), "Be brief.", "You are a title generator.", 1)
	if b, _ := transcript.Parse([]byte(raw), transcript.Responses, transcript.Limits{}); SideOf(b) != SideTitle {
		t.Error("a request for a title is taken for more")
	}
}
