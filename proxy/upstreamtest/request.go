package upstreamtest

import (
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"
)

// request is what the mock needs to know of one call.
type request struct {
	n          int64
	model      string // with its script
	name       string // without
	credential string
	mockKey    string
	body       string

	stream, usage, logprobs bool
	choices                 int
	messages, tools         string // raw JSON; messages are the input of /v1/responses, too
	instructions            string
	lastRole                string
	prefix                  string // text of a last assistant message

	anthropic bool // of /v1/messages
	reads     int  // how many tokens of the prompt are read at most; 0: all

	// Of /v1/responses only.
	responses, background, stored bool
	of                            string // the response that the path names
	after                         int    // starting_after
	thread                        int    // tokens of what came before
}

var (
	errTooLarge = errors.New("request body is larger than the mock accepts")
	errNotJSON  = errors.New("body is not JSON")
)

// readBody reads a request's body.
func readBody(r *http.Request, limit int64) (string, error) {
	if r.ContentLength > limit {
		return "", errTooLarge
	}
	var b []byte
	var err error
	if r.ContentLength >= 0 {
		b = make([]byte, r.ContentLength)
		_, err = io.ReadFull(r.Body, b)
	} else {
		b, err = io.ReadAll(io.LimitReader(r.Body, limit+1))
	}
	if err != nil {
		return "", err
	}
	if int64(len(b)) > limit {
		return "", errTooLarge
	}
	return string(b), nil
}

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

// inspect reads the top-level fields in one pass over the body.
func (q *request) inspect(strict bool) error {
	if strict && !gjson.Valid(q.body) {
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
			if q.model == "" { // a deployment path has named it already
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
		q.readLast() // in the input of a response it is history
	}
	return nil
}

// readLast looks at the last message: an assistant's text there is a prefill.
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

// promptTokens is the mock's estimate: a token is four bytes of the messages
// and the tools.
func (q *request) promptTokens() int {
	n := (len(q.messages)+len(q.instructions)+len(q.tools))/4 + q.thread
	if q.reads > 0 {
		n = min(n, q.reads)
	}
	return n
}

// offered is a tool of a request.
type offered struct {
	name, namespace string
	custom          bool // its input is free text
}

// offers returns the first tool that is offered, or DefaultTool.
func (q *request) offers() offered {
	tool := gjson.Get(q.tools, "0")
	switch typ := tool.Get("type").Str; {
	case tool.Get("function.name").Str != "":
		return offered{name: tool.Get("function.name").Str}
	case typ == "namespace":
		return offered{name: tool.Get("tools.0.name").Str, namespace: tool.Get("name").Str}
	case tool.Get("name").Str != "":
		return offered{name: tool.Get("name").Str, custom: typ == "custom"}
	}
	return offered{name: DefaultTool}
}

// firstTool returns the name of the first function that is offered.
func (q *request) firstTool() string { return q.offers().name }
