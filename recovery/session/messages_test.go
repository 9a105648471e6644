package session

import (
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Sessions of the Messages API: the history is the same whether a text is a string or a block,
// wherever the cache mark stands, and whatever the client tells of its own version.
func TestMessages(t *testing.T) {
	parse := func(system, rest string, messages ...string) *transcript.Body {
		return recoverytest.Parse(t, `{"model":"m","max_tokens":9,"system":`+system+`,"messages":[`+strings.Join(messages, ",")+`]`+rest+`}`, transcript.Messages)
	}
	const (
		system   = `[{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1.330.abc"},{"type":"text","text":"You code.","cache_control":{"type":"ephemeral"}}]`
		upgraded = `[{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1.331.def"},{"type":"text","text":"You code."}]`
		task     = `{"role":"user","content":[{"type":"text","text":"Fix it.","cache_control":{"type":"ephemeral"}}]}`
		bare     = `{"role":"user","content":"Fix it."}`
		answer   = `{"role":"assistant","content":[{"type":"thinking","thinking":"Hm","signature":"x"},{"type":"text","text":"I look."},{"type":"tool_use","id":"toolu_1","name":"Bash","input":{}}]}`
		results  = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"a"}]}`
		user     = `,"metadata":{"user_id":"{\"session_id\":\"1\"}"}`
		tools    = `,"tools":[{"name":"Bash","input_schema":{"type":"object"}}]`
	)
	id := func(b *transcript.Body, hints ...string) string {
		in := Input{Body: b, Credential: []byte("k"), Hints: hints}
		got := Identify(in).String()
		if again := NewKnown().Identify(in); again != got {
			t.Errorf("remembered as %s, derived as %s", again, got)
		}
		return got
	}
	if got := id(parse(system, "", task)); got != "" {
		t.Errorf("the first request has the session %s", got)
	}
	first := id(parse(system, user, task, answer, results), "s1")
	for what, c := range map[string]struct {
		got  string
		same bool
	}{
		"the mark moved, the text is a string": {id(parse(upgraded, user, bare, answer, results, `{"role":"assistant","content":"Done."}`, task), "s1"), true},
		"without the thinking":                 {id(parse(system, user, task, strings.Replace(answer, `{"type":"thinking","thinking":"Hm","signature":"x"},`, "", 1), results), "s1"), true},
		"another session of the client":        {id(parse(system, user, task, answer, results), "s2"), false},
		"another user":                         {id(parse(system, strings.Replace(user, "1", "2", 1), task, answer, results), "s1"), false},
		"another call":                         {id(parse(system, user, task, strings.ReplaceAll(answer, "toolu_1", "toolu_2"), results), "s1"), false},
		"other instructions":                   {id(parse(strings.Replace(system, "You code.", "You test.", 1), user, task, answer, results), "s1"), false},
	} {
		if (c.got == first) != c.same {
			t.Errorf("%s: %s beside %s", what, c.got, first)
		}
	}
	for what, c := range map[string]struct {
		body *transcript.Body
		want Side
	}{
		"a turn":       {parse(system, tools, task, answer, results), SideNone},
		"a compaction": {parse(system, tools, task, answer, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"a"},{"type":"text","text":"CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.\n\nYour task is to"}]}`), SideSummary},
		"a title":      {parse(`[{"type":"text","text":"Generate a concise, sentence-case title (3-7 words) for this session."}]`, "", task), SideTitle},
		"a probe":      {parse(`"x"`, "", `{"role":"user","content":"quota"}`), SideProbe},
	} {
		if got := SideOf(c.body); got != c.want {
			t.Errorf("%s: %q", what, got)
		}
	}
}
