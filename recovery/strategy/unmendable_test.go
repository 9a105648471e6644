package strategy_test

import (
	"testing"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/strategy"
)

// More tools than a target allows, and an answer that the client has begun, go to another
// target; where there is none nobody explains what would be refused alike.
func TestUnmendable(t *testing.T) {
	const body = `{"model":"m","tools":[{"type":"function","function":{"name":"f"}}],"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}`
	for message, want := range map[string]bool{
		"'tools' : maximum number of items is 128": true,
		"Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 140 instead.": true,
		"This model does not support assistant message prefill. The conversation must end with a user message.":                 true,
		"I dislike this.": false,
	} {
		list := []recovery.Choice{choice("a"), choice("b")}
		f := failure(recovery.InvalidRequest, list[0])
		f.Signal.Message, f.Signal.Status = message, 400
		if a, ok := strategy.Move(situation(t, body, 0, nil, list...), f); ok != want || ok && a.Target != 1 {
			t.Errorf("%s: moves %t", message, ok)
		}
		if _, ok := strategy.Explain(situation(t, body, 0, nil, list[:1]...), f); ok == want {
			t.Errorf("%s: explains %t", message, ok)
		}
	}
}

// A value that is refused is dropped where it stands, and other values stay.
func TestRefusedValueIsKept(t *testing.T) {
	s := situation(t, `{"model":"m","reasoning_effort":"xhigh","messages":[]}`, 0, nil, choice("a"))
	f := failure(recovery.UnsupportedParameter, s.Exchange.Candidates[0])
	f.Facts.Param, f.Facts.OfValue = "reasoning_effort", true
	a, ok := strategy.AdaptParameter(s, f)
	if want := (recovery.Edit{Field: "reasoning_effort", Drop: true, Value: `"xhigh"`}); !ok || len(a.Edits) != 1 || a.Edits[0] != want {
		t.Errorf("%+v, %t", a, ok)
	}
}
