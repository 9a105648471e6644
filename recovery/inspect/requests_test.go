package inspect

import (
	"fmt"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

type quiet struct{}

func (quiet) Observe(recovery.Event) {}

// longSession is a history of about a megabyte, made of turns that each read a
// file of 3 KB.
func longSession(text func(i int) string) []byte {
	list := []string{`{"role":"system","content":"You are a coding agent."}`, `{"role":"user","content":"Port the project."}`}
	for i := range 300 {
		list = append(list, called(i, "bash", fmt.Sprintf(`{"command":"cat src/file%d.go"}`, i)), answered(i, text(i)))
	}
	return request(list...)
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
