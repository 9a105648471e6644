package upstreamtest

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// maxCacheControls is how many blocks of a request may have cache_control.
const maxCacheControls = 4

// MessagesProblem returns the message with which Anthropic's servers refuse a request, or "".
func MessagesProblem(body string) string {
	if n := strings.Count(body, `"cache_control"`); n > maxCacheControls {
		return fmt.Sprintf("A maximum of 4 blocks with cache_control may be provided. Found %d.", n)
	}
	if gjson.Get(body, "max_tokens").Int() < 1 {
		return "max_tokens: Field required"
	}
	list := joined(gjson.Get(body, "messages").Array())
	if len(list) == 0 {
		return "messages: at least one message is required"
	}
	for i, m := range list {
		if problem := m.problem(i); problem != "" {
			return problem
		}
		if problem := m.resultsProblem(i, list); problem != "" {
			return problem
		}
	}
	last := len(list) - 1
	if gjson.Get(body, "thinking.type").Str != "enabled" || last < 1 || !list[last].has("tool_result") {
		return ""
	}
	if first := list[last-1].blocks[0].Get("type").Str; first != "thinking" && first != "redacted_thinking" {
		return fmt.Sprintf("messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found `%s`. When `thinking` is enabled, a final `assistant` message "+
			"must start with a thinking block.", last-1, first)
	}
	return ""
}

// joinedMessage is a run of messages of one role.
type joinedMessage struct {
	role   string
	blocks []gjson.Result
}

// joined merges consecutive messages of one role, as the server does.
func joined(messages []gjson.Result) (list []joinedMessage) {
	for _, m := range messages {
		role, content := m.Get("role").Str, m.Get("content")
		if role == "system" { // it does not separate turns
			continue
		}
		if len(list) == 0 || list[len(list)-1].role != role {
			list = append(list, joinedMessage{role: role})
		}
		at := &list[len(list)-1]
		if content.Type == gjson.String {
			at.blocks = append(at.blocks, gjson.Parse(`{"type":"text","text":`+content.Raw+`}`))
		} else {
			at.blocks = append(at.blocks, content.Array()...)
		}
	}
	return list
}

func (m joinedMessage) has(kind string) bool {
	return slices.ContainsFunc(m.blocks, func(b gjson.Result) bool { return b.Get("type").Str == kind })
}

// problem returns the message that refuses m by itself, or "".
func (m joinedMessage) problem(i int) string {
	if m.role != "user" && m.role != "assistant" {
		return fmt.Sprintf("messages.%d.role: Input should be 'user' or 'assistant'", i)
	}
	if len(m.blocks) == 0 {
		return fmt.Sprintf("messages.%d: all messages must have non-empty content except for the optional final assistant message", i)
	}
	callID := regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	for n, b := range m.blocks {
		switch b.Get("type").Str {
		case "text":
			if strings.TrimSpace(b.Get("text").Str) == "" {
				return fmt.Sprintf("messages.%d.content.%d: text content blocks must be non-empty", i, n)
			}
		case "tool_use":
			if !b.Get("input").IsObject() {
				return fmt.Sprintf("messages.%d.content.%d.tool_use.input: Input should be a valid dictionary", i, n)
			}
			if !callID.MatchString(b.Get("id").Str) {
				return fmt.Sprintf("messages.%d.content.%d.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'", i, n)
			}
		case "thinking":
			if b.Get("signature").Str == "" {
				return fmt.Sprintf("messages.%d.content.%d.thinking.signature: Field required", i, n)
			}
		case "":
			return fmt.Sprintf("messages.%d.content.%d.type: Field required", i, n)
		}
	}
	return ""
}

// resultsProblem returns the message that refuses m because tool results do not
// come first after their calls, or "".
func (m joinedMessage) resultsProblem(i int, list []joinedMessage) string {
	var calls []string
	if i > 0 {
		for _, b := range list[i-1].blocks {
			if b.Get("type").Str == "tool_use" {
				calls = append(calls, b.Get("id").Str)
			}
		}
	}
	answered, other := map[string]bool{}, false
	for n, b := range m.blocks {
		if b.Get("type").Str != "tool_result" {
			other = true
			continue
		}
		id := b.Get("tool_use_id").Str
		switch {
		case m.role != "user":
			return fmt.Sprintf("messages.%d: `tool_result` blocks can only be in `user` messages", i)
		case !strings.Contains(" "+strings.Join(calls, " ")+" ", " "+id+" "):
			return fmt.Sprintf("messages.%d.content.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a corresponding "+
				"`tool_use` block in the previous message.", i, n, id)
		case answered[id]:
			return fmt.Sprintf("messages.%d.content.%d: each tool_use must have a single result. Found multiple `tool_result` blocks with id: %s", i, n, id)
		case other && len(calls) > 0:
			return fmt.Sprintf("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a corresponding "+
				"`tool_result` block in the next message.", i-1, id)
		}
		answered[id] = true
	}
	if m.role == "user" {
		for _, id := range calls {
			if !answered[id] {
				return fmt.Sprintf("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a corresponding "+
					"`tool_result` block in the next message.", i-1, id)
			}
		}
	}
	return ""
}

// refuseMessages returns the error for a request that Anthropic's servers refuse, or nil.
func refuseMessages(body string) *apiError {
	if problem := MessagesProblem(body); problem != "" {
		return &apiError{status: http.StatusBadRequest, message: problem, typ: "invalid_request_error", anthropic: true}
	}
	return nil
}
