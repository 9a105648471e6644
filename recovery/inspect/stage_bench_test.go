package inspect

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

type quiet struct{}

func (quiet) Observe(recovery.Event) {}

// longSession is a history of about a megabyte, made of turns that each read a
// file of 3 KB; end is what follows it.
func longSession(text func(i int) string, end ...string) []byte {
	list := []string{`{"role":"system","content":"You are a coding agent."}`, `{"role":"user","content":"Port the project."}`}
	for i := range 300 {
		list = append(list, called(i, "bash", fmt.Sprintf(`{"command":"cat src/file%d.go"}`, i)), answered(i, text(i)))
	}
	return request(append(list, end...)...)
}

func request(messages ...string) []byte {
	return []byte(`{"model":"m","messages":[` + strings.Join(messages, ",") +
		`],"tools":[{"type":"function","function":{"name":"bash","parameters":{"type":"object"}}}]}`)
}

func called(id int, tool, arguments string) string {
	return fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"call_%d","type":"function","function":{"name":%q,"arguments":%s}}]}`,
		id, tool, transcript.String(arguments))
}

func answered(id int, content string) string {
	return fmt.Sprintf(`{"role":"tool","tool_call_id":"call_%d","content":%s}`, id, transcript.String(content))
}

func said(role, text string) string {
	return fmt.Sprintf(`{"role":%q,"content":%s}`, role, transcript.String(text))
}

func sourceText(i int) string {
	var b strings.Builder
	for n := range 45 {
		fmt.Fprintf(&b, "\tif err := s.handle%d(ctx, \"item-%d\"); err != nil {\n\t\treturn fmt.Errorf(\"step %d: %%w\", err)\n\t}\n", n, i, n+i)
	}
	return b.String()
}

func BenchmarkStage(b *testing.B) {
	failing := "Exit code: 1\nWall time: 0.1 seconds\nOutput:\nTraceback (most recent call last):\n  File \"a.py\", line 3, in <module>\nFileNotFoundError: [Errno 2] No such file or directory: 'x.json'"
	var failed []string
	for i := range 30 {
		failed = append(failed, called(1000+i, "bash", `{"command":"python a.py"}`), answered(1000+i, failing))
	}
	for _, c := range []struct {
		name string
		body []byte
	}{
		{"results", longSession(sourceText)},
		{"nothing-new", longSession(func(int) string { return sourceText(0) })},
		{"one-failure", longSession(sourceText, failed[:2]...)},
		{"failing", longSession(sourceText, failed...)},
		{"no-results", longSession(sourceText, said("assistant", "All is done."), said("user", "Thanks. Now port the tests."))},
		{"chat-with-code", []byte(`{"messages":[` + strings.Join([]string{said("system", strings.Repeat("You are helpful and answer in the language of the user. ", 100)), said("user", "Sort a list."),
			said("assistant", "```python\nsorted(x)\n```\n"+strings.Repeat("This sorts the list. ", 100)), said("user", "And backwards?")}, ",") + `]}`)},
		{"large-result", longSession(sourceText, called(2000, "bash", `{"command":"cat dump.json"}`), answered(2000, strings.Repeat(sourceText(1), 80)))},
	} {
		b.Run(c.name, func(b *testing.B) {
			body, err := transcript.Parse(c.body, transcript.Chat, transcript.Limits{})
			if err != nil {
				b.Fatal(err)
			}
			s := NewStage(Defaults(), RulesForTests(), quiet{})
			body.Messages()
			b.SetBytes(int64(len(c.body)))
			b.ReportAllocs()
			for b.Loop() {
				x := &recovery.Exchange{Request: recovery.Request{Body: body, Mode: recovery.ModeAct}, Conversation: recovery.Conversation{Session: "s"}}
				if err := s.Prepare(b.Context(), x); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
