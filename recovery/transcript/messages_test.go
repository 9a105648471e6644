package transcript_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// session is a request as a coding agent sends it: thinking, two calls at once, a result that
// failed, a reminder behind results, cache marks, a block that is not known.
const session = `{"model":"claude","max_tokens":1000, "stream":true,"thinking":{"type":"enabled","budget_tokens":500},
"system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=1"},{"type":"text","text":"You code.","cache_control":{"type":"ephemeral"}}],
"messages":[
 {"role":"user","content":[{"type":"text","text":"<system-reminder>Today</system-reminder>"},{"type":"text","text":"Fix it."}]},
 {"role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"abc=="},{"type":"text","text":"I look."},
   {"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"ls"}},{"type":"tool_use","id":"toolu_2","name":"Read","input":{}}]},
 {"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","is_error":true,"content":"no such\nfile"} ,
   {"type":"tool_result","tool_use_id":"toolu_2","content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","data":"AA"}}],"cache_control":{"type":"ephemeral"}},
   {"type":"text","text":"<system-reminder>Be quick</system-reminder>"}, {"type":"new_block","x":[1]} ]},
 {"role":"assistant","content":[{"type":"redacted_thinking","data":"zz"},{"type":"tool_use","id":"toolu_3","name":"Bash","input":{"command":"cat a"}}]},
 {"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_3"}]}
],"tools":[{"name":"Bash","input_schema":{"type":"object"}},{"name":"Read","description":"reads","input_schema":{"type":"object"}},{"type":"web_search_20250305","name":"web_search"}],
"tool_choice":{"type":"auto","disable_parallel_tool_use":true}}`

func messagesBody(t *testing.T, raw string) *transcript.Body {
	t.Helper()
	return recoverytest.Parse(t, raw, transcript.Messages)
}

func TestMessagesRead(t *testing.T) {
	b := messagesBody(t, session)
	var got []string
	for _, m := range b.Messages() {
		s := m.Shape()
		from, to := m.Elements()
		line := fmt.Sprintf("%s %d-%d %q id=%s media=%d failed=%v", m.Role, from, to, m.Text(), m.ToolCallID(), s.Media, m.Failed())
		if s.Reasoning {
			line += " thinks"
		}
		if s.Mark != nil {
			line += " marked"
		}
		for _, c := range m.ToolCalls() {
			line += fmt.Sprintf(" %s(%s)#%s", c.Name, c.Text(), c.ID)
		}
		got = append(got, line)
	}
	want := []string{
		`user 0-0 "<system-reminder>Today</system-reminder>\nFix it." id= media=0 failed=false`,
		`assistant 1-1 "I look." id= media=0 failed=false thinks Bash({"command":"ls"})#toolu_1 Read({})#toolu_2`,
		`tool 2-2 "no such\nfile" id=toolu_1 media=0 failed=true`,
		`tool 2-2 "a" id=toolu_2 media=1 failed=false marked`,
		`system 2-2 "<system-reminder>Be quick</system-reminder>" id= media=0 failed=false`,
		`user 2-2 "" id= media=0 failed=false`,
		`assistant 3-3 "" id= media=0 failed=false thinks Bash({"command":"cat a"})#toolu_3`,
		`tool 4-4 "" id=toolu_3 media=0 failed=false`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if s := string(b.System()); s != "You code." || b.Instructions() != s {
		t.Errorf("the instructions are %q", s)
	}
	if b.ParallelCalls() || !b.Reasoning() || !b.Streaming() || b.Model() != "claude" || b.ToolChoice().Choice != transcript.ChoiceAuto {
		t.Error("the settings are read wrongly")
	}
	tools := b.Tools()
	if len(tools) != 3 || !tools[0].Callable() || string(tools[1].Parameters) != `{"type":"object"}` || tools[2].Callable() || !tools[2].Own {
		t.Errorf("the tools are %+v", tools)
	}
	for choice, want := range map[string]transcript.ToolChoice{
		`{"type":"any"}`: {Choice: transcript.ChoiceRequired}, `{"type":"none"}`: {Choice: transcript.ChoiceNone},
		`{"type":"tool","name":"Bash"}`: {Choice: transcript.ChoiceNamed, Name: "Bash"},
	} {
		if got := messagesBody(t, `{"tool_choice":`+choice+`}`).ToolChoice(); got.Choice != want.Choice || got.Name != want.Name {
			t.Errorf("%s is read as %+v", choice, got)
		}
	}
}

// What an edit changes, and that all else stays byte for byte.
func TestMessagesEdit(t *testing.T) {
	reminder := `{"type":"text","text":"<system-reminder>Be quick</system-reminder>"}`
	for _, c := range []struct {
		name, old, new string // what stands in the place of what
		edit           func(b *transcript.Body, e *transcript.Editor)
	}{
		{"nothing", "", "", func(*transcript.Body, *transcript.Editor) {}},
		{"a note stands behind the results", `"toolu_3"}]}`, `"toolu_3"},{"type":"text","text":"note"}]}`, func(_ *transcript.Body, e *transcript.Editor) { e.AppendNote("note") }},
		{"a result says something else", `"content":"no such\nfile"`, `"content":"gone"`, func(_ *transcript.Body, e *transcript.Editor) { e.SetText(2, "gone", false) }},
		{"a result without a content gets one", `"tool_use_id":"toolu_3"`, `"tool_use_id":"toolu_3","content":"ok"`, func(_ *transcript.Body, e *transcript.Editor) { e.SetText(7, "ok", false) }},
		{"a result loses its image", `[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","data":"AA"}}]`, `[{"type":"text","text":"b"}]`,
			func(_ *transcript.Body, e *transcript.Editor) { e.SetText(3, "b", false) }},
		{"a reminder goes", ",\n   " + reminder, ``, func(_ *transcript.Body, e *transcript.Editor) { e.RemoveMessage(4) }},
		{"a reminder has other words", `"<system-reminder>Be quick</system-reminder>"`, `"soon"`, func(_ *transcript.Body, e *transcript.Editor) { e.SetText(4, "soon", false) }},
		{"words stand beside an unknown block", `{"type":"new_block","x":[1]}`, `{"type":"new_block","x":[1]},{"type":"text","text":"x"}`,
			func(_ *transcript.Body, e *transcript.Editor) { e.SetText(5, "x", false) }},
		{"the model's words change, not its thinking and calls", "\"I look.\"},\n   ", `"Hm"},`, func(_ *transcript.Body, e *transcript.Editor) { e.SetText(1, "Hm", false) }},
		{"a result is added to others", ` {"role":"assistant","content":[{"type":"redacted`, ` {"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":"none"}]},{"role":"assistant","content":[{"type":"redacted`,
			func(b *transcript.Body, e *transcript.Editor) {
				e.InsertMessage(6, b.ResultMessage(transcript.ToolCall{ID: "x"}, "none"))
			}},
		{"a result is put before another", `{"type":"tool_result","tool_use_id":"toolu_1","is`, `{"type":"tool_result","tool_use_id":"x","content":"none"},{"type":"tool_result","tool_use_id":"toolu_1","is`,
			func(b *transcript.Body, e *transcript.Editor) {
				e.InsertMessage(2, b.ResultMessage(transcript.ToolCall{ID: "x"}, "none"))
			}},
		{"a result answers another call", `"tool_use_id":"toolu_1"`, `"tool_use_id":"y"`, func(_ *transcript.Body, e *transcript.Editor) { e.SetResultID(2, "y") }},
		{"results and what is said behind them are appended", `"toolu_3"}]}`, `"toolu_3"},{"type":"tool_result","tool_use_id":"x","content":"none"},{"type":"text","text":"so"}]}`,
			func(b *transcript.Body, e *transcript.Editor) {
				e.AppendMessage(b.ResultMessage(transcript.ToolCall{ID: "x"}, "none")).AppendMessage(b.TextMessage(transcript.RoleUser, "so", nil))
			}},
		{"an answer is appended", `"toolu_3"}]}`, `"toolu_3"}]},{"role":"assistant","content":[{"type":"text","text":"so"}]}`,
			func(b *transcript.Body, e *transcript.Editor) { e.Continue("so", "assistant") }},
		{"the roles of blocks stay", "", "", func(_ *transcript.Body, e *transcript.Editor) { e.SetRole(transcript.RoleSystem, transcript.RoleUser) }},
		{"calls are forbidden", `"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`, `"tool_choice":{"type":"none"}`, func(_ *transcript.Body, e *transcript.Editor) { e.ForbidCalls() }},
		{"who thinks is not forced to call", "", "", func(_ *transcript.Body, e *transcript.Editor) { e.ForceCall("Bash") }},
		{"thinking of finished turns goes", "", "", func(_ *transcript.Body, e *transcript.Editor) { e.DropFinishedReasoning() }},
	} {
		b := messagesBody(t, session)
		e := b.Edit()
		c.edit(b, e)
		after, err := e.Apply()
		if want := strings.Replace(session, c.old, c.new, 1); err != nil || string(after) != want {
			t.Errorf("%s: %v\n%s", c.name, err, after)
		}
	}
}

func TestMessagesWholeTurnGoes(t *testing.T) {
	b := messagesBody(t, session)
	e := b.Edit()
	for i := 1; i < 6; i++ {
		e.RemoveMessage(i)
	}
	e.InsertMessage(6, b.TextMessage(transcript.RoleUser, "summary", []byte(`{"type":"ephemeral"}`)))
	after, err := e.Apply()
	if err != nil {
		t.Fatal(err)
	}
	var roles []string
	for _, m := range messagesBody(t, string(after)).Messages() {
		roles = append(roles, m.Role+":"+m.Text())
	}
	if got := strings.Join(roles, "|"); got != "user:<system-reminder>Today</system-reminder>\nFix it.|user:summary|assistant:|tool:" {
		t.Error(got)
	}
	if problem := upstreamtest.MessagesProblem(string(after)); problem != "" {
		t.Error(problem)
	}
}

// Thinking that is lost of the turn under way takes thinking along, and what asks for it.
func TestMessagesThinking(t *testing.T) {
	managed := strings.Replace(session, `"tool_choice"`, `"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]},"tool_choice"`, 1)
	b := messagesBody(t, managed)
	if n, ok := b.SealedReasoning(); n != 2 || !ok {
		t.Error(n, ok)
	}
	e := b.Edit()
	if !e.DropReasoning(nil) {
		t.Error("nothing was lost")
	}
	after, err := e.Apply()
	if err != nil || bytes.Contains(after, []byte(`signature`)) || bytes.Contains(after, []byte(`redacted`)) || !bytes.Contains(after, []byte(`"thinking":{"type":"disabled"}`)) ||
		bytes.Contains(after, []byte("context_management")) || upstreamtest.MessagesProblem(string(after)) != "" {
		t.Errorf("%v %s", err, after)
	}
	finished := strings.Replace(session, "\n],\"tools\"", `,{"role":"assistant","content":"Done."},{"role":"user","content":"More."}],"tools"`, 1)
	b = messagesBody(t, finished)
	e = b.Edit()
	e.DropFinishedReasoning()
	after, err = e.Apply()
	if err != nil || bytes.Contains(after, []byte(`signature`)) || !bytes.Contains(after, []byte(`"thinking":{"type":"enabled"`)) || upstreamtest.MessagesProblem(string(after)) != "" {
		t.Errorf("%v %s", err, after)
	}
}

// Whatever is taken out or added, an upstream takes the rest.
func TestMessagesTaken(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		raw := longSession(r)
		if problem := upstreamtest.MessagesProblem(raw); problem != "" {
			t.Fatal(problem, raw)
		}
		b := messagesBody(t, raw)
		e, list, did := b.Edit(), b.Messages(), ""
		for i := 0; i < len(list); i++ {
			if list[i].Role != transcript.RoleAssistant || r.IntN(3) > 0 || i < 2 {
				continue
			}
			did += fmt.Sprint(" -", i)
			e.RemoveMessage(i)
			for ; i+1 < len(list) && list[i+1].Role == transcript.RoleTool; i++ {
				e.RemoveMessage(i + 1)
			}
			if i+1 < len(list) && r.IntN(2) == 0 && list[i+1].Role != transcript.RoleSystem {
				e.InsertMessage(i+1, b.TextMessage(transcript.RoleUser, "in short", nil))
			}
		}
		for i, m := range list {
			if m.Role == transcript.RoleTool && r.IntN(4) == 0 {
				e.SetText(i, "short", false)
			}
		}
		if r.IntN(2) == 0 {
			e.AppendNote("note")
			did += " note"
		}
		after, err := e.Apply()
		if err != nil {
			if strings.Contains(err.Error(), "another role") {
				continue
			}
			t.Errorf("%d:%s: %v\n%s", seed, did, err, raw)
		} else if problem := upstreamtest.MessagesProblem(string(after)); problem != "" {
			t.Errorf("%d:%s: %s\n%s\n%s", seed, did, problem, raw, after)
		}
	}
}

// A text behind results may have an escape at any offset, and a reminder may begin with escapes.
func TestTextsBehindResults(t *testing.T) {
	reminds := func(text string) bool {
		b := recoverytest.Parse(t, `{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x"},{"type":"text","text":"`+text+`"}]}]}`, transcript.Messages)
		return b.Messages()[1].Reminder()
	}
	for _, escape := range []string{`\n`, `\\`, `\u00e9`, `\ud83d\ude00`} {
		for before := range 80 {
			text := strings.Repeat("x", before) + escape + "x"
			if reminds(text) || !reminds("<system-reminder>"+text) {
				t.Errorf("%q behind %d bytes is read wrongly", escape, before)
			}
		}
	}
	if !reminds(`\n \n\u003csystem-reminder\u003eBe quick`) {
		t.Error("a reminder that begins with escapes is not recognised")
	}
}

// longSession is a session of some turns, as chance has it.
func longSession(r *rand.Rand) string {
	messages := []string{`{"role":"user","content":"Task"}`}
	id := 0
	for range 2 + r.IntN(6) {
		blocks := []string{`{"type":"text","text":"I look."}`}
		var results []string
		for range 1 + r.IntN(3) {
			id++
			blocks = append(blocks, fmt.Sprintf(`{"type":"tool_use","id":"toolu_%d","name":"Bash","input":{"command":"x%d"}}`, id, id))
			results = append(results, fmt.Sprintf(`{"type":"tool_result","tool_use_id":"toolu_%d","content":"long result %d"}`, id, id))
		}
		if r.IntN(3) == 0 {
			results = append(results, `{"type":"text","text":"<system-reminder>now</system-reminder>"}`)
		}
		messages = append(messages, `{"role":"assistant","content":[`+strings.Join(blocks, ",")+`]}`, `{"role":"user","content":[`+strings.Join(results, ", ")+`]}`)
		if r.IntN(4) == 0 {
			messages = append(messages, `{"role":"assistant","content":"Done."}`, `{"role":"user","content":[{"type":"text","text":"Next"}]}`)
		}
	}
	return `{"model":"m","max_tokens":9,"messages":[` + strings.Join(messages, ",") + `]}`
}

// Reminders that a client adds to a user's message are not the user's words; a message of reminders alone is a reminder in
// every format.
func TestReminders(t *testing.T) {
	for in, want := range map[string]string{
		"a": "a", " a\n": "a",
		"a<system-reminder>x</system-reminder>b":                                          "ab",
		"<system-reminder>x</system-reminder>a<system-reminder>\ny\n</system-reminder>\n": "a",
		"a <system-reminder> left open":                                                   "a <system-reminder> left open",
		"<system-reminder>x</system-reminder>a <system-reminder> left open":               "a <system-reminder> left open",
		"<system-reminder>x</system-reminder></system-reminder>":                          "</system-reminder>",
		"<system-reminder>x</system-reminder>\n<system-reminder>y</system-reminder>":      "",
		"<think>kept</think>": "<think>kept</think>",
	} {
		if got := string(transcript.WithoutReminders([]byte(in))); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
		said, _ := json.Marshal(in)
		for _, f := range []transcript.Format{transcript.Chat, transcript.Responses, transcript.Messages} {
			list := "messages"
			if f == transcript.Responses {
				list = "input"
			}
			b := recoverytest.Parse(t, fmt.Sprintf(`{"model":"m","max_tokens":1,%q:[{"role":"user","content":%s}]}`, list, said), f)
			if got := b.Messages()[0].Reminder(); got != (want == "") {
				t.Errorf("%v, %q: reminder %v", f, in, got)
			}
		}
	}
}

// What Claude Code says by itself beside results is none of the user's words.
func TestMessagesReminders(t *testing.T) {
	for said, want := range map[string]string{
		"<system-reminder>now</system-reminder>": transcript.RoleSystem,
		`\n<system-reminder>`:                    transcript.RoleSystem,
		"Tool loaded.":                           transcript.RoleSystem,
		"Tool loaded. Now use it.":               transcript.RoleUser,
		"Stop.":                                  transcript.RoleUser,
	} {
		b := messagesBody(t, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"A"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"ToolSearch","input":{}}]},
 {"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"tool_reference","tool_name":"WebFetch"}]},{"type":"text","text":"`+said+`"}]}]}`)
		if last := b.Messages()[3]; last.Role != want || last.Reminder() != (want == transcript.RoleSystem) {
			t.Errorf("%q: %s, reminder %v", said, last.Role, last.Reminder())
		}
	}
}

// A Parser that knows how a session began reads what follows as one without.
func TestMessagesParser(t *testing.T) {
	p := transcript.NewParser()
	head := `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"` + strings.Repeat("x", 9000) + `"}`
	for i := range 5 {
		head += fmt.Sprintf(`,{"role":"assistant","content":[{"type":"tool_use","id":"t%d","name":"a","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":"x"},{"type":"text","text":"y"}]}`, i, i)
		raw := []byte(head + `],"stream":true}`)
		one, err1 := p.Parse(raw, transcript.Messages, transcript.Limits{})
		two, err2 := transcript.Parse(raw, transcript.Messages, transcript.Limits{})
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		if fmt.Sprint(shapes(one)) != fmt.Sprint(shapes(two)) {
			t.Errorf("%v, want %v", shapes(one), shapes(two))
		}
		a, err1 := one.Edit().AppendNote("n").Apply()
		b, err2 := two.Edit().AppendNote("n").Apply()
		if err1 != nil || err2 != nil || !bytes.Equal(a, b) {
			t.Errorf("%v %v\n%s\n%s", err1, err2, a, b)
		}
	}
}

// FuzzMessages reads whatever parses, and makes each edit of it: the result parses, or the edit
// says that it is impossible; the body itself never changes.
func FuzzMessages(f *testing.F) {
	f.Add([]byte(session))
	for _, content := range []string{`"x"`, `[]`, `null`, `[7]`, `[{"type":"tool_result"}]`, `[{"type":"text"},{"type":"tool_result","tool_use_id":7,"content":[7]}]`, `{"type":"text"}`,
		`[{"type":"tool_use"},{"type":"thinking"}]`, `[{"type":"tool_result","content":"a"},{"type":"tool_result","content":null},{"type":"text","text":"b"}]`} {
		f.Add([]byte(`{"messages":[{"role":"user","content":` + content + `},{"role":"assistant","content":` + content + `},{"role":"user","content":` + content + `}]}`))
	}
	f.Fuzz(readAndEdited(transcript.Messages))
}

// Where nothing tells the format, what is in a body does.
func TestParseAny(t *testing.T) {
	for raw, want := range map[string]transcript.Format{
		session: transcript.Messages, `{"messages":[]}`: transcript.Chat, `{"input":"x"}`: transcript.Responses, `{}`: transcript.Chat, `{"system":"x","messages":[]}`: transcript.Messages,
		`{"messages":[{"role":"user","content":"what is tool_use?"}]}`: transcript.Chat, `{"messages":[{"role":"tool","tool_call_id":"a","content":"x"}],"tools":[{"type":"function","function":{"name":"a"}}]}`: transcript.Chat,
	} {
		b, err := transcript.ParseAny([]byte(raw), transcript.Limits{})
		if err != nil || b.Format() != want {
			t.Errorf("%.60s: %v %v", raw, b.Format(), err)
		}
	}
}
