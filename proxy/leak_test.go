package proxy_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// leaking is a model whose answer is a text, in so many chunks.
func leaking(text string, chunks int) string {
	return fmt.Sprintf("m@leak=%s,chunks=%d", url.QueryEscape(text), chunks)
}

// TestLeaksAfterText: a call that a server left in the text of its model comes out
// as one, streamed or not, in each dialect, wherever the stream is split.
func TestLeaksAfterText(t *testing.T) {
	g, _ := startMending(t, "")
	const said = "Let me look: 1 < 2.\n"
	for name, leak := range map[string]string{
		"Hermes":   "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\":\"Paris\"}}\n</tool_call>",
		"Qwen":     "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n</tool_call>",
		"Kimi":     `<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city":"Paris"}<|tool_call_end|><|tool_calls_section_end|>`,
		"DeepSeek": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{\"city\":\"Paris\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
		"Mistral":  `[TOOL_CALLS]get_weather{"city":"Paris"}`,
		"JSON":     `{"name": "get_weather", "arguments": {"city":"Paris"}}`,
	} {
		for _, before := range []string{said, ""} {
			for _, chunks := range []int{0, 1, 2, 3, 5, 7, 11, 13, 1000} { // 0: no stream
				h := g.call(t, leaking(before+leak, max(1, chunks)), chunks > 0, "")
				if !h.complete() || h.finish != "tool_calls" || len(h.calls) != 1 || h.calls[0] != paris || strings.TrimSpace(h.text) != strings.TrimSpace(before) {
					t.Errorf("%s after %q in %d chunks: got %s\n%s", name, before, chunks, h, h.raw)
				}
			}
		}
	}
}

// TestNoLeaks: a text that is no call reaches the client as the upstream sent it.
func TestNoLeaks(t *testing.T) {
	g, _ := startMending(t, "")
	for _, text := range []string{
		"Put it into <tool and then </tool>, or <tool_calling>.",
		"The tag `<tool_call>` begins a call, `</tool_call>` ends it. <tool_call> alone is no call.",
		"Like this:\n```json\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n```\nand so on.",
		"```json\n{\"name\": \"Paris\"}\n```", "{\"name\": \"Paris\", \"size\": 2}", "- [ ] one\n- [x] two\n[link](x)",
		"Hermes writes <tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}</tool_call> for a call, which its server reads.",
	} {
		for _, chunks := range []int{1, 2, 3, 7, 1000} {
			model := leaking(text, chunks)
			_, got := g.bytesOf(t, model, "act", true)
			_, want := g.bytesOf(t, model, "off", true)
			if got != want || !strings.Contains(got, "[DONE]") {
				t.Errorf("%q in %d chunks: got\n%.3000s\nwant\n%.3000s", text, chunks, got, want)
			}
		}
	}
}
