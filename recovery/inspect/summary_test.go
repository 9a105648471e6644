package inspect

import (
	"fmt"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Others sent turns that are the same in part, or whole in a conversation that gives
// them another meaning: each is judged as if nobody had.
func TestMemoryOfOthers(t *testing.T) {
	text := "{\"role\":\"assistant\",\"content\":\"I look.\\n```bash\\nfoo --all\\n```\"},{\"role\":\"user\",\"content\":\"bash: foo: command not found\"}"
	plain := "{\"role\":\"assistant\",\"content\":\"I look.\\n```bash\\nfoo --all\\n```\"},{\"role\":\"user\",\"content\":\"make: *** [all] Error 2\"}"
	call := `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"bash","arguments":"{\"command\":\"foo\"}"}}]}`
	result := `{"role":"tool","tool_call_id":"a","content":"bash: foo: command not found"}`
	tools := `"tools":[{"type":"function","function":{"name":"bash","parameters":{}}}],`
	var bodies []*transcript.Body
	for _, system := range []string{"You help.", "Give one command at a time in a code block."} {
		for _, head := range []string{"", tools} {
			for _, history := range []string{text, plain, plain + "," + text, call + "," + result, call + "," + result + "," + text, `{"role":"assistant","content":"a"},` + result} {
				bodies = append(bodies, parsed(t, []byte(`{"model":"m",`+head+`"messages":[{"role":"system","content":"`+system+`"},{"role":"user","content":"Go."},`+history+`]}`)))
			}
		}
	}
	cfg := Defaults()
	cfg.NoProgress = minNoProgress
	prepare := func(s *Stage, b *transcript.Body) string {
		x := &recovery.Exchange{Request: recovery.Request{Body: b, Mode: recovery.ModeAct}}
		if err := s.Prepare(t.Context(), x); err != nil {
			t.Error(err)
		}
		failure := fmt.Sprintf("%+v", x.Turn.Failure)
		x.Turn.Failure = nil
		return fmt.Sprintf("%+v %+v %s %+v", x.Results, x.Turn, failure, x.Loops)
	}
	for i, victim := range bodies {
		ForgetForTests()
		want := prepare(NewStage(cfg, RulesForTests(), quiet{}), victim)
		for k, other := range bodies {
			ForgetForTests()
			s := NewStage(cfg, RulesForTests(), quiet{})
			prepare(s, other)
			if got := prepare(s, victim); got != want {
				t.Fatalf("body %d after body %d: %s, alone %s", i, k, got, want)
			}
		}
	}
}
