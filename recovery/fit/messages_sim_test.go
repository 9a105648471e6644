package fit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
	"github.com/rebound-llm/rebound/recovery/fit"
	"github.com/rebound-llm/rebound/recovery/fit/count"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/transcript"
	"github.com/rebound-llm/rebound/store/memory"
)

// block is a content block of the Messages API.
type block map[string]any

// asMessages returns the first n messages of a session as Claude Code sends them: with thinking before calls, reminders
// behind results, a system message in the middle, and a cache mark that moves to the newest block.
func (c *conversation) asMessages(t testing.TB, n int) *transcript.Body {
	t.Helper()
	type message struct {
		Role    string `json:"role"`
		Content any    `json:"content"`
	}
	var system []block
	var list []message
	text := func(raw json.RawMessage) string {
		var s string
		if json.Unmarshal(raw, &s) == nil {
			return s
		}
		var parts []struct{ Text string }
		_ = json.Unmarshal(raw, &parts)
		for _, p := range parts {
			s += p.Text
		}
		return s
	}
	for i, raw := range c.Messages[:n] {
		var m struct {
			Role       string
			Content    json.RawMessage
			ToolCallID string `json:"tool_call_id"`
			ToolCalls  []struct {
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Fatal(err)
		}
		said := strings.TrimSpace(text(m.Content))
		switch m.Role {
		case "system", "developer":
			if len(list) > 0 {
				list = append(list, message{"system", said})
			} else {
				system = append(system, block{"type": "text", "text": said})
			}
		case "user":
			list = append(list, message{"user", said + " "})
			if len(list) == 1 {
				list = append(list, message{"system", "# Environment\nThe directory is /w."})
			}
		case "assistant":
			var blocks []block
			if len(m.ToolCalls) > 0 || i%5 == 0 {
				blocks = append(blocks, block{"type": "thinking", "thinking": fmt.Sprintf("I think %d", i), "signature": fmt.Sprintf("sig%d", i)})
			}
			if said != "" {
				blocks = append(blocks, block{"type": "text", "text": said})
			}
			for _, call := range m.ToolCalls {
				input := json.RawMessage(call.Function.Arguments)
				if !json.Valid(input) || input[0] != '{' {
					input = json.RawMessage("{}")
				}
				blocks = append(blocks, block{"type": "tool_use", "id": call.ID, "name": call.Function.Name, "input": input})
			}
			list = append(list, message{"assistant", blocks})
		case "tool":
			result := block{"type": "tool_result", "tool_use_id": m.ToolCallID, "content": text(m.Content)}
			if i%3 == 0 {
				result["content"] = []block{{"type": "text", "text": text(m.Content) + " "}}
			}
			if at := len(list) - 1; list[at].Role == "user" {
				blocks := list[at].Content.([]block)
				first := slices.IndexFunc(blocks, func(b block) bool { return b["type"] == "text" })
				if first < 0 {
					first = len(blocks)
				}
				list[at].Content = slices.Insert(blocks, first, result)
			} else {
				list = append(list, message{"user", []block{result}})
			}
			if i%4 == 0 {
				list[len(list)-1].Content = append(list[len(list)-1].Content.([]block), block{"type": "text", "text": fmt.Sprintf("<system-reminder>\nThe list of tasks is as before (%d).\n</system-reminder>", i)})
			}
		}
	}
	mark := block{"type": "ephemeral"}
	switch content := list[len(list)-1].Content.(type) {
	case string:
		list[len(list)-1].Content = []block{{"type": "text", "text": content, "cache_control": mark}}
	case []block:
		content[len(content)-1]["cache_control"] = mark
	}
	if len(system) > 0 {
		system[len(system)-1]["cache_control"] = mark
	}
	raw, err := json.Marshal(map[string]any{"model": simModel, "max_tokens": 2000, "thinking": block{"type": "enabled", "budget_tokens": 1024}, "system": system, "messages": list,
		"tools": []block{{"name": "bash", "input_schema": block{"type": "object"}}}})
	if err != nil {
		t.Fatal(err)
	}
	return recoverytest.Parse(t, string(raw), transcript.Messages)
}

// wireBlocks returns the blocks of a request in a form that the provider's cache does not distinguish.
func wireBlocks(t testing.TB, b *transcript.Body) (list []string) {
	t.Helper()
	var req struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	if err := json.Unmarshal(b.Raw(), &req); err != nil {
		t.Fatal(err)
	}
	for _, m := range req.Messages {
		var said string
		var blocks []map[string]json.RawMessage
		if json.Unmarshal(m.Content, &said) == nil {
			raw, _ := json.Marshal(said)
			blocks = []map[string]json.RawMessage{{"type": json.RawMessage(`"text"`), "text": raw}}
		} else if err := json.Unmarshal(m.Content, &blocks); err != nil {
			t.Fatal(err)
		}
		for _, one := range blocks {
			delete(one, "cache_control")
			raw, _ := json.Marshal(one)
			list = append(list, m.Role+" "+string(raw))
		}
	}
	return list
}

// A session over the Messages API is fitted to what Anthropic's servers accept, with its thinking unchanged, and
// later requests repeat the same beginning.
func TestMessagesSessions(t *testing.T) {
	for _, c := range append(recorded(t), synthetic(t, 7, 300_000)) {
		window, ok := map[string]int{"pi-large-session-seg0-slice0": 16_000, "pi-large-session-seg0-slice3": 16_000, "synthetic-7": 32_000}[c.name]
		if !ok {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := fit.New(fit.Defaults(), fit.Parts{Meter: count.NewMeter(), Store: fit.Replica(t, memory.New(memory.Config{})), Windows: fit.NewWindows()})
			defer f.Close(context.Background())
			r := &replayer{provider: newProvider(window), summarizer: newFakeSummarizer(), session: "s", fitter: f}
			turns := c.turns()
			for i, n := range turns {
				if i%max(1, len(turns)/12) != 0 && i != len(turns)-1 {
					continue
				}
				b := c.asMessages(t, n)
				if why := upstreamtest.MessagesProblem(string(b.Raw())); why != "" {
					t.Fatal("no session of this API: " + why)
				}
				at := len(r.sent)
				if r.send(t, b); len(r.sent) == at {
					t.Fatalf("request %d is not fitted", at)
				}
				if why := upstreamtest.MessagesProblem(string(r.sent[at].Raw())); why != "" {
					t.Fatalf("request %d is refused: %s", at, why)
				}
				now, original := wireBlocks(t, r.sent[at]), wireBlocks(t, b)
				for _, one := range now {
					if strings.Contains(one, `"type":"thinking"`) && !slices.Contains(original, one) {
						t.Errorf("thinking has changed: %s", one)
					}
				}
				if at == 0 || slices.Contains(r.edits, at) {
					continue
				}
				for k, one := range wireBlocks(t, r.sent[at-1]) {
					if k >= len(now) || one != now[k] {
						t.Fatalf("request %d differs at block %d:\n%.300s", at, k, one)
					}
				}
			}
			if len(r.edits) == 0 || r.provider.overflow > 1 {
				t.Errorf("edits at %v, %d overflows", r.edits, r.provider.overflow)
			}
		})
	}
}
