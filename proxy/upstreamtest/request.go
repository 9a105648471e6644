package upstreamtest

import (
	"errors"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"
)

// request is one parsed request.
type request struct {
	n          int64
	model      string // with its script
	name       string // model without its script
	credential string
	mockKey    string
	body       string

	stream, usage, logprobs bool
	choices                 int
	messages, tools         string // raw JSON; for /v1/responses messages is the input
	instructions            string
	lastRole                string
	prefix                  string // text of a last assistant message

	anthropic bool // for /v1/messages
	readLimit int  // prompt tokens after which the prompt is truncated; 0: none

	// For /v1/responses only.
	responses, background, stored bool
	responseID                    string // the response in the path
	after                         int    // starting_after
	historyTokens                 int    // tokens of the previous responses
}

var errNotJSON = errors.New("body is not JSON")

// credentialOf returns the bearer token, or the key of Anthropic's or Azure's header.
func credentialOf(h http.Header) string {
	if a := h.Get("Authorization"); a != "" {
		if scheme, token, ok := strings.Cut(a, " "); ok && strings.EqualFold(scheme, "Bearer") {
			return token
		}
		return a
	}
	if key := h.Get("X-Api-Key"); key != "" {
		return key
	}
	return h.Get("Api-Key")
}

// inspect parses the top-level fields in one pass over the body.
func (q *request) inspect() error {
	if !gjson.Valid(q.body) {
		return errNotJSON
	}
	root := gjson.Parse(q.body)
	if !root.IsObject() {
		return errNotJSON
	}
	q.choices = 1
	root.ForEach(func(k, v gjson.Result) bool {
		switch k.Str {
		case "model":
			if q.model == "" { // not set from a deployment's path
				q.model = v.Str
			}
		case "stream":
			q.stream = v.Bool()
		case "stream_options":
			q.usage = v.Get("include_usage").Bool()
		case "messages", "input":
			q.messages = v.Raw
		case "instructions", "system":
			q.instructions = v.Raw
		case "background":
			q.background = v.Bool()
		case "tools":
			q.tools = v.Raw
		case "logprobs":
			q.logprobs = v.Bool()
		case "n":
			q.choices = int(min(max(v.Int(), 1), maxChoices))
		}
		return true
	})
	q.name = nameOf(q.model)
	if q.responses {
		q.stored = Stored(q.body)
	} else {
		q.readLast() // a last assistant item of a response's input is history, not a prefill
	}
	return nil
}

// readLast reads the last message. If the assistant wrote it, its text is a prefill.
func (q *request) readLast() {
	var last gjson.Result
	gjson.Parse(q.messages).ForEach(func(_, v gjson.Result) bool {
		last = v
		return true
	})
	q.lastRole = last.Get("role").Str
	if q.lastRole != "assistant" || last.Get("tool_calls.0").Exists() {
		return
	}
	content := last.Get("content")
	if content.Type == gjson.String {
		q.prefix = content.Str
		return
	}
	var b strings.Builder
	content.ForEach(func(_, part gjson.Result) bool {
		b.WriteString(part.Get("text").Str)
		return true
	})
	q.prefix = b.String()
}

// field returns a top-level field of the body.
func (q *request) field(name string) gjson.Result {
	return gjson.Get(q.body, gjson.Escape(name))
}

// promptTokens estimates the prompt's size, at four bytes of messages, instructions
// and tools per token.
func (q *request) promptTokens() int {
	n := (len(q.messages)+len(q.instructions)+len(q.tools))/4 + q.historyTokens
	if q.readLimit > 0 {
		n = min(n, q.readLimit)
	}
	return n
}

// offeredTool is a tool of a request.
type offeredTool struct {
	name, namespace string
	custom          bool // its input is free text
}

// firstOffered returns the request's first tool, or DefaultTool.
func (q *request) firstOffered() offeredTool {
	tool := gjson.Get(q.tools, "0")
	switch typ := tool.Get("type").Str; {
	case tool.Get("function.name").Str != "":
		return offeredTool{name: tool.Get("function.name").Str}
	case typ == "namespace":
		return offeredTool{name: tool.Get("tools.0.name").Str, namespace: tool.Get("name").Str}
	case tool.Get("name").Str != "":
		return offeredTool{name: tool.Get("name").Str, custom: typ == "custom"}
	}
	return offeredTool{name: DefaultTool}
}

// firstTool returns the name of the request's first tool, or DefaultTool.
func (q *request) firstTool() string { return q.firstOffered().name }
