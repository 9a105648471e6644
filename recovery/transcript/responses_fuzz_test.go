package transcript_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// edits are all that decisions do to a history of the Responses API.
var edits = map[string]func(e *transcript.Editor, i int){
	"note":      func(e *transcript.Editor, _ int) { e.AppendNote("note") },
	"interrupt": func(e *transcript.Editor, _ int) { e.Interrupt("I was", "go on") },
	"remove":    func(e *transcript.Editor, i int) { e.RemoveMessage(i) },
	"insert":    func(e *transcript.Editor, i int) { e.InsertMessage(i, []byte(`{"role":"user","content":"x"}`)) },
	"text":      func(e *transcript.Editor, i int) { e.SetText(i, "new", false) },
	"media":     func(e *transcript.Editor, i int) { e.DropMedia(i, "why") },
	"flatten":   func(e *transcript.Editor, i int) { e.FlattenText(i) },
	"reasoning": func(e *transcript.Editor, _ int) { e.DropReasoning(nil) },
	"one":       func(e *transcript.Editor, i int) { e.DropReasoning(func(n int) bool { return n == i }) },
	"ids":       func(e *transcript.Editor, _ int) { e.DropIDs() },
	"own":       func(e *transcript.Editor, _ int) { e.DropOwnIDs() },
	"forbid":    func(e *transcript.Editor, _ int) { e.ForbidCalls() },
	"finished":  func(e *transcript.Editor, _ int) { e.DropFinishedReasoning() },
	"empty":     func(e *transcript.Editor, i int) { e.DropEmptyTexts(i) },
	"answer":    func(e *transcript.Editor, i int) { e.SetResultID(i, "other") },
}

// FuzzResponses reads whatever parses, and makes each edit of it: the result parses, or
// the edit says that it is impossible; the body itself never changes.
func FuzzResponses(f *testing.F) {
	items := []string{`{"role":"user","content":"x"}`, `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e"}`,
		`{"type":"message","role":"assistant","id":"msg_1","content":[{"type":"output_text","text":"t"},{"type":"refusal","refusal":"r"}]}`,
		`{"type":"function_call","id":"fc_1","call_id":"c","name":"n","arguments":"{}","namespace":"s"}`, `{"type":"function_call_output","call_id":"c","output":[{"type":"input_image"}]}`,
		`{"type":"item_reference","id":"msg_rebound_1"}`, `{"id":7}`, `{}`, `{"type":7}`, `{"type":"shell_call_output","call_id":"c","output":[{"stdout":"a","stderr":"b","outcome":{"type":"exit","exit_code":1}}]}`,
		`{"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot"}}`, `{"type":"compaction","encrypted_content":"e"}`, `{"type":"tool_search_output","tools":[{"type":"function"}]}`,
		`{"type":"mcp_approval_request","id":"a"}`, `{"type":"mcp_approval_response","approval_request_id":"a"}`, `{"type":"web_search_call","id":"ws_1"}`}
	for i := range items {
		f.Add([]byte(`{"input":[` + strings.Join(items[i:], ",") + `],"instructions":"i","tools":[{"type":"namespace","name":"s","tools":[{"name":"n"}]},7],"text":{"format":{"type":"json_schema"}}}`))
	}
	f.Add([]byte(`{"input":"x"}`))
	f.Fuzz(readAndEdited(transcript.Responses))
}

// readAndEdited reads a body in every way, and makes every edit of its first messages: what is found stands where
// it is said to stand, an edit makes JSON or is impossible, and the body itself never changes.
func readAndEdited(format transcript.Format) func(t *testing.T, raw []byte) {
	return func(t *testing.T, raw []byte) {
		b, err := transcript.Parse(raw, format, transcript.Limits{})
		if err != nil {
			return
		}
		before := bytes.Clone(raw)
		list := b.Messages()
		for i, m := range list {
			var parts int
			m.Contents(func([]byte) bool { parts++; return true })
			m.Asides(func(raw []byte) bool { parts += len(raw); return true })
			if at, ok := m.Content(); m.Index != i || ok && (at.Start < m.Start || at.End > m.End) {
				t.Fatalf("message %d: index %d, content at %v", i, m.Index, at)
			}
			for _, c := range m.ToolCalls() {
				if c.Span.Start < 0 || c.Span.End > len(raw) || len(c.Arguments) > 0 && string(raw[c.Span.Start:c.Span.End]) != string(c.Arguments) {
					t.Fatalf("message %d: call at %v", i, c.Span)
				}
				if r := b.ResultMessage(c, "x"); r != nil && !json.Valid(r) {
					t.Fatalf("a result: %s", r)
				}
			}
			_, _, _, _, _, _ = m.Text(), m.AppendMedia(nil), m.ToolCallID(), m.Shape(), m.Name(), m.Failed()
		}
		_, _, _, _, _ = b.State(), b.System(), b.Tools(), b.ToolChoice(), b.HasTools()
		for name, edit := range edits {
			for i := range min(len(list), 20) {
				e := b.Edit()
				edit(e, i)
				if after, err := e.Apply(); err == nil && !json.Valid(after) {
					t.Fatalf("%s of %d makes %s", name, i, after)
				}
			}
		}
		if !bytes.Equal(raw, before) {
			t.Fatal("the body has changed")
		}
	}
}

// Whatever turns are taken out of a session, and whatever else is done to it, an upstream
// takes the rest.
func TestResponsesTaken(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no recorded requests", err)
	}
	for _, file := range files {
		chat, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		ledger := new(upstreamtest.Ledger)
		raw := ledger.Converted("me", "s", string(chat))
		if status, why := ledger.Refuse("me", string(raw)); status != 0 {
			t.Logf("%s is no whole session: %s", file, why)
			continue
		}
		b := recoverytest.Parse(t, raw, transcript.Responses)
		for seed := range uint64(40) {
			r := rand.New(rand.NewPCG(seed, 1))
			e, did := b.Edit(), ""
			list := b.Messages()
			for i := 0; i < len(list); i++ {
				if list[i].Role != transcript.RoleAssistant || r.IntN(3) > 0 {
					continue
				}
				did += fmt.Sprint(" -", i)
				e.RemoveMessage(i)
				for ; i+1 < len(list) && list[i+1].Role == transcript.RoleTool; i++ {
					e.RemoveMessage(i + 1)
				}
			}
			for _, name := range []string{"note", "reasoning", "one", "own"} {
				if r.IntN(3) == 0 {
					edits[name](e, r.IntN(5))
					did += " " + name
				}
			}
			after, err := e.Apply()
			if err != nil {
				t.Errorf("%s:%s: %v", file, did, err)
			} else if status, why := ledger.Refuse("me", string(after)); status != 0 {
				t.Errorf("%s:%s: %s", file, did, why)
			}
		}
	}
}

// A Parser that knows how a session began reads what follows as one without: also where
// a turn goes on.
func TestResponsesParser(t *testing.T) {
	p := transcript.NewParser()
	head := `{"model":"m","input":[{"role":"user","content":"` + strings.Repeat("x", 9000) + `"},{"type":"reasoning","id":"rs_1"}`
	for _, more := range []string{"", `,{"type":"function_call","call_id":"1","name":"a","arguments":"{}"}`, `,{"type":"function_call","call_id":"2","name":"a","arguments":"{}"}`,
		`,{"type":"function_call_output","call_id":"1","output":"x"}`} {
		head += more
		raw := []byte(head + `],"store":false}`)
		one, err1 := p.Parse(raw, transcript.Responses, transcript.Limits{})
		two, err2 := transcript.Parse(raw, transcript.Responses, transcript.Limits{})
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		if fmt.Sprint(shapes(one)) != fmt.Sprint(shapes(two)) {
			t.Errorf("%v, want %v", shapes(one), shapes(two))
		}
	}
}

func shapes(b *transcript.Body) (out []string) {
	for _, m := range b.Messages() {
		out = append(out, fmt.Sprint(m.Role, m.Start, m.End, len(m.ToolCalls())))
	}
	return out
}
