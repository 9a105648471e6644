package proxy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// A refusal of what a client of the Messages API usually sends, by a model or a server that does not
// take it, does not end a session: the provider's words say what to leave out.
func TestMessagesRefusals(t *testing.T) {
	t.Parallel()
	const (
		needsThinking = "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`. When `thinking` is enabled, a final `assistant` message must start with a " +
			"thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable `thinking`."
		budget, adaptive = `"thinking":{"type":"enabled","budget_tokens":1024},`, `"thinking":{"type":"adaptive"},`
		clears           = `"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]},`
		call             = `{"type":"tool_use","id":"toolu_1","name":"ls","input":{"path":"a"}}`
		thought          = `{"type":"thinking","thinking":"Hm","signature":"s"}`
		marked           = `"cache_control":{"type":"ephemeral","ttl":"1h","scope":"global"}`
		result           = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"x"}]}`
	)
	thinks := func(b gjson.Result) bool {
		return slices.Contains([]string{"enabled", "adaptive"}, b.Get("thinking.type").Str)
	}
	has := func(what string) func(b gjson.Result) bool {
		return func(b gjson.Result) bool { return strings.Contains(b.Raw, what) }
	}
	refusal := func(message string, when func(gjson.Result) bool) func(gjson.Result) string {
		return func(b gjson.Result) string {
			if when(b) {
				return message
			}
			return ""
		}
	}
	unthinking := refusal("`clear_thinking_20251015` strategy requires `thinking` to be enabled or adaptive",
		func(b gjson.Result) bool { return has("clear_thinking")(b) && !thinks(b) })
	for name, c := range map[string]struct {
		fields, answer, system string // answer: the blocks of the model's last message
		refuses                func(b gjson.Result) string
		attempts               int
		lasting                bool // later requests are adapted in advance
		keeps                  string
	}{
		"thinking missing": {fields: budget + clears, answer: `{"type":"text","text":"B"},` + call, attempts: 2,
			refuses: refusal(needsThinking, func(b gjson.Result) bool { return thinks(b) && b.Get("messages.1.content.0.type").Str != "thinking" })},
		"thinking without thinking": {answer: thought + "," + call, attempts: 2,
			refuses: refusal("messages.1.content.0: When thinking is disabled, an `assistant` message in the final position cannot contain `thinking`. To use thinking blocks, enable `thinking` in your request.",
				func(b gjson.Result) bool { return !thinks(b) && has(`"thinking":"Hm"`)(b) })},
		"context management": {fields: adaptive + clears, refuses: refusal("context_management: Extra inputs are not permitted", has("context_management")), attempts: 2, lasting: true, keeps: `"adaptive"`},
		"context management at LiteLLM": {fields: adaptive + clears, attempts: 2, lasting: true,
			refuses: refusal(`{"message":"context_management: Extra inputs are not permitted"}. Received Model Group=m Available Model Group Fallbacks=None`, has("context_management"))},
		"clearing without thinking": {fields: clears, refuses: unthinking, attempts: 2, lasting: true},
		"other edits":               {fields: strings.Replace(clears, `[{`, `[{"type":"clear_tool_uses_20250919"},{`, 1), refuses: unthinking, attempts: 2, lasting: true, keeps: "clear_tool_uses"},
		"adaptive thinking": {fields: adaptive + clears, attempts: 3, lasting: true, refuses: func(b gjson.Result) string {
			if b.Get("thinking.type").Str == "adaptive" {
				return "thinking: Input tag 'adaptive' found using 'type' does not match any of the expected tags: 'disabled', 'enabled'"
			}
			return unthinking(b)
		}},
		"effort": {fields: `"output_config":{"effort":"high"},`, refuses: refusal("output_config: Extra inputs are not permitted", has("output_config")), attempts: 2, lasting: true},
		"effort of a turn": {fields: `"output_config":{"effort":"high"},`, system: "message", attempts: 2, lasting: true, keeps: `"output_config":{"effort":"high"},`,
			refuses: refusal("messages.1.output_config: Extra inputs are not permitted", func(b gjson.Result) bool { return b.Get("messages.1.output_config").Exists() })},
		"another version's edits": {fields: adaptive + clears, attempts: 2, keeps: `"adaptive"`,
			refuses: refusal("context_management.edits.0: Input tag 'clear_thinking_20251015' found using 'type' does not match any of the expected tags: 'clear_tool_uses_20250919'", has("clear_thinking"))},
		"effort alone": {fields: `"output_config":{"effort":"high","task_budget":{"type":"tokens","total":9}},`, refuses: refusal("This model does not support the effort parameter.", has(`"effort"`)), attempts: 2, lasting: true, keeps: "task_budget"},
		"level of effort": {fields: `"output_config":{"effort":"xhigh"},`, attempts: 2, lasting: true,
			refuses: refusal("output_config.effort: This model does not support effort level 'xhigh'. Supported levels: high, low, max, medium.", has(`"xhigh"`))},
		"mark on nothing": {answer: `{"type":"text","text":"",` + marked + `},` + call, attempts: 2, lasting: true,
			refuses: refusal("messages.1.content.0.text: cache_control cannot be set for empty text blocks", has(`"text":""`))},
		"scope of a mark": {system: `{"type":"text","text":"Rules",` + marked + `}`, refuses: refusal("system.0.cache_control.ephemeral.scope: Extra inputs are not permitted", has(`"scope"`)), attempts: 2, lasting: true, keeps: `"ttl"`},
		"time of a mark":  {system: `{"type":"text","text":"Rules",` + marked + `}`, refuses: refusal("system.0.cache_control.ephemeral.ttl: Extra inputs are not permitted", has(`"ttl"`)), attempts: 2, lasting: true, keeps: `"ephemeral"`},
		"marks":           {system: `{"type":"text","text":"Rules",` + marked + `}`, refuses: refusal("system.0.cache_control: Extra inputs are not permitted", has("cache_control")), attempts: 2, lasting: true},
		"too many marks": {system: strings.Repeat(`{"type":"text","text":"Rules",`+marked+`},`, 3) + `{"type":"text","text":"The last"}`,
			answer: `{"type":"text","text":"B",` + marked + `},{"type":"tool_use","id":"toolu_1","name":"ls","input":{"path":"a"},` + marked + `}`, attempts: 2,
			refuses: func(b gjson.Result) string {
				if n := strings.Count(b.Raw, "cache_control"); n > 4 {
					return fmt.Sprintf("A maximum of 4 blocks with cache_control may be provided. Found %d.", n)
				}
				return ""
			}, keeps: `"name":"ls","input":{"path":"a"},"cache_control"`},
		"citations": {answer: `{"type":"text","text":"B","citations":null}`, refuses: refusal("messages.1.content.0.text.citations: Extra inputs are not permitted", has("citations")), attempts: 2, lasting: true},
		"system messages": {answer: `{"type":"text","text":"B"}`, system: "message", attempts: 2, lasting: true, keeps: "Rules",
			refuses: refusal("messages: Unexpected role \"system\". The Messages API accepts a top-level `system` parameter, not \"system\" as an input message role.", has(`"role":"system"`))},
		"system messages of a model": {system: "message", attempts: 2, lasting: true, keeps: "Rules",
			refuses: refusal("messages.1.role: role 'system' is not supported on this model", func(b gjson.Result) bool { return has(`"role":"system"`)(b) || has("developer")(b) })},
		"system messages at MiniMax": {system: "message", attempts: 2, lasting: true, keeps: "Rules",
			refuses: refusal("invalid params, chat content has invalid message role: system (2013)", has(`"role":"system"`))},
		"system messages at DeepSeek": {system: "message", attempts: 2, lasting: true, keeps: "Rules",
			refuses: refusal("Failed to deserialize the JSON body into the target type: messages[1].role: unknown variant `system`, expected `user` or `assistant` at line 1 column 33985", has(`"role":"system"`))},
		"system messages at a server": {system: "message", attempts: 2, lasting: true, keeps: "Rules",
			refuses: refusal("Messages API does not support role=\"system\"", has(`"role":"system"`))},
		"name of the user": {fields: `"metadata":{"user_id":"{\"device_id\":\"d0d0d0d0d0d0d0d0d0d0d0d0\",\"session_id\":\"s0s0s0s0s0s0s0s0s0s0\"}"},`, attempts: 2, lasting: true,
			refuses: refusal("Invalid 'user_id': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", has("user_id"))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &recorded{answer: func(body string) (int, string) {
				if m := c.refuses(gjson.Parse(body)); m != "" {
					return 400, `{"type":"error","error":{"type":"invalid_request_error","message":` + string(mustJSON(m)) + `},"request_id":"req_1"}`
				}
				return 200, said
			}}
			messages, system := `{"role":"user","content":"A"}`, ""
			switch c.system {
			case "":
			case "message":
				messages += `,{"role":"system","content":"Rules","output_config":{"effort":"low"}}`
			default:
				system = `"system":[` + c.system + `],`
			}
			answer := c.answer
			if answer == "" {
				answer = call
			}
			messages += `,{"role":"assistant","content":[` + answer + `]},`
			if strings.Contains(answer, call) {
				messages += result
			} else {
				messages += `{"role":"user","content":"C"}`
			}
			body := fmt.Sprintf(`{"model":"m","max_tokens":4000,%s%s%s"messages":[%s]}`, c.fields, system, oneTool, messages)
			g := upstreamOf(t, r, "")
			for _, want := range []int{c.attempts, 1} {
				if want == 1 && !c.lasting {
					break
				}
				before := len(r.sent())
				m := g.say("/v1/messages", body, nil)
				sent := r.sent()
				if last := sent[len(sent)-1]; m.text != "Done." || len(sent)-before != want || !strings.Contains(last, c.keeps) || !gjson.Valid(last) {
					t.Errorf("%d attempts, want %d: %s\n%s", len(sent)-before, want, m.raw, last)
				}
			}
		})
	}
}
