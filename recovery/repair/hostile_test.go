package repair_test

import (
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/hostiletest"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/repair"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// TestHostileTexts: the memory that a judgement allocates grows at most linearly with the answer:
// text, arguments, JSON content, and text that arrives in pieces.
func TestHostileTexts(t *testing.T) {
	parse := func(fields string) *transcript.Body {
		return recoverytest.Parse(t, `{"model":"m","messages":[],`+fields+`}`, transcript.Chat)
	}
	req := parse(`"tools":[{"type":"function","function":{"name":"read_file","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}}]`)
	form, m := parse(`"response_format":{"type":"json_object"}`), repair.New(repair.Defaults())
	const marks = "<tool_call>x [TOOL_CALLS]x <function=read_file>x <|channel|>x <arg_key>x ```tool_code <|tool_call_argument_begin|>\n{\"name\": \"read_file\"}\n[read_file(x"
	families := append(hostiletest.Texts(), hostiletest.Family{Name: "marks", Make: func(n int) string { return strings.Repeat(marks, n/len(marks)+1) }})
	for name, run := range map[string]func(in string){
		"text": func(in string) { m.Mend(req, recovery.Draft{Text: in, Finish: recovery.FinishStop}) },
		"arguments": func(in string) {
			m.Mend(req, recovery.Draft{Calls: []recovery.DraftCall{{ID: "a", Kind: "function", Name: "read_file", Arguments: in}}, Finish: recovery.FinishCalls})
		},
		"content": func(in string) { m.Mend(form, recovery.Draft{Text: in, Finish: recovery.FinishStop}) },
		"stream": func(in string) {
			l, w := m.Lookout(req), m.Watch(req, -1)
			for i := 0; i < len(in); i += 64 {
				l.Free(in[:i])
				w.Feed(recovery.PartText, []byte(in[i:min(len(in), i+64)]))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			hostiletest.Linear(t, families, func(in string) func() { return func() { run(in) } })
		})
	}
}
