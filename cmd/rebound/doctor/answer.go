package doctor

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

const (
	// maxAnswer is the limit of one answer in bytes. Lists of models are the largest.
	maxAnswer = 8 << 20
	// maxPieces is the number of text deltas after which read leaves an answer that may be endless.
	maxPieces = 40
)

// toolCall is a tool call in an answer.
type toolCall struct{ id, name, args string }

// answer is the outcome of a request.
type answer struct {
	status int
	header http.Header
	body   []byte        // nil for a stream
	skew   time.Duration // how far the server's clock is ahead; only if dated
	dated  bool

	text, finish   string
	opening        string // the first piece of a streamed text
	reasoned       bool
	calls          []toolCall
	merged         bool          // several calls share an index
	prompt, output int           // tokens, as the server reports
	pieces         int           // number of text deltas in a stream
	first, took    time.Duration // until the first text, and until the end
	ended          bool          // the stream is complete

	failure *recovery.Diagnosis // nil for a complete answer
	skipped bool                // not sent, because the target got its maximum of requests
}

// class is the class of the failure, "" without one.
func (a *answer) class() recovery.Class {
	if a.failure == nil {
		return ""
	}
	return a.failure.Spec.Class
}

// read reads a stream to its end, or to limit text deltas if limit is not 0. An error event is returned in failed.
func (a *answer) read(body io.Reader, api transcript.API, started time.Time, limit int) (failed []byte, err error) {
	lines := bufio.NewScanner(io.LimitReader(body, maxAnswer))
	lines.Buffer(nil, maxAnswer)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(bytes.TrimRight(lines.Bytes(), "\r"), []byte("data:"))
		if data = bytes.TrimSpace(data); !ok || len(data) == 0 {
			continue
		}
		if string(data) == "[DONE]" {
			a.ended = true
			break
		}
		event := gjson.ParseBytes(bytes.Clone(data))
		if event.Get("error").IsObject() {
			return []byte(event.Raw), nil
		}
		before := len(a.text)
		if api == transcript.Anthropic {
			a.message(event)
		} else {
			a.completion(event)
		}
		if len(a.text) > before {
			if a.pieces++; a.pieces == 1 {
				a.first, a.opening = time.Since(started), a.text
			}
			if limit > 0 && a.pieces >= limit {
				a.ended = true
				break
			}
		}
	}
	a.ended = a.ended || a.finish != ""
	a.took = time.Since(started)
	return nil, lines.Err()
}

// completion adds a chat completion, or a chunk of one.
func (a *answer) completion(e gjson.Result) {
	choice := e.Get("choices.0")
	said := choice.Get("delta")
	if !said.IsObject() {
		said = choice.Get("message")
	}
	a.text += said.Get("content").String()
	a.reasoned = a.reasoned || said.Get("reasoning_content").String() != "" || said.Get("reasoning").String() != ""
	said.Get("tool_calls").ForEach(func(_, c gjson.Result) bool {
		id := c.Get("id").Str
		if last := len(a.calls) - 1; last < 0 || id != "" && id != a.calls[last].id {
			a.merged = a.merged || last >= 0 && c.Get("index").Exists() && c.Get("index").Int() == int64(last)
			a.calls = append(a.calls, toolCall{id: id})
		}
		at := &a.calls[len(a.calls)-1]
		if name := c.Get("function.name").Str; at.name == "" {
			at.name = name
		}
		at.args += c.Get("function.arguments").String()
		return true
	})
	if f := choice.Get("finish_reason").Str; f != "" {
		a.finish = f
	}
	if u := e.Get("usage"); u.IsObject() {
		a.prompt, a.output = int(u.Get("prompt_tokens").Int()), int(u.Get("completion_tokens").Int())
	}
}

// message adds a message of the Messages API, or a stream event.
func (a *answer) message(e gjson.Result) {
	usage := func(u gjson.Result) {
		if n := u.Get("input_tokens").Int() + u.Get("cache_read_input_tokens").Int() + u.Get("cache_creation_input_tokens").Int(); n > 0 {
			a.prompt = int(n)
		}
		if n := u.Get("output_tokens").Int(); n > 0 {
			a.output = int(n)
		}
	}
	block := func(b gjson.Result) {
		switch b.Get("type").Str {
		case "text":
			a.text += b.Get("text").Str
		case "thinking", "redacted_thinking":
			a.reasoned = true
		case "tool_use":
			a.calls = append(a.calls, toolCall{id: b.Get("id").Str, name: b.Get("name").Str})
			if in := b.Get("input"); in.IsObject() && in.Raw != "{}" {
				a.calls[len(a.calls)-1].args = in.Raw
			}
		}
	}
	switch e.Get("type").Str {
	case "message":
		e.Get("content").ForEach(func(_, b gjson.Result) bool { block(b); return true })
		a.finish = e.Get("stop_reason").Str
		usage(e.Get("usage"))
	case "message_start":
		usage(e.Get("message.usage"))
	case "content_block_start":
		block(e.Get("content_block"))
	case "content_block_delta":
		a.text += e.Get("delta.text").Str
		if n := len(a.calls); n > 0 {
			a.calls[n-1].args += e.Get("delta.partial_json").Str
		}
	case "message_delta":
		if f := e.Get("delta.stop_reason").Str; f != "" {
			a.finish = f
		}
		usage(e.Get("usage"))
	case "message_stop":
		a.ended = true
	}
}

// usable reports whether a call has a name and arguments with a city.
func (c toolCall) usable() bool {
	return c.name == toolName && gjson.Valid(c.args) && strings.TrimSpace(gjson.Get(c.args, "city").Str) != ""
}
