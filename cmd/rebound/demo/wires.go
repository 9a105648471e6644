package demo

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/tidwall/gjson"
)

// wire is the API that the agent uses, as "rebound crashtest --format" names it. The zero value
// is the same as chat.
type wire string

const (
	chat      wire = "chat" // Chat Completions
	responses wire = "responses"
	messages  wire = "messages"
)

// notChat reports whether w is not Chat Completions.
func (w wire) notChat() bool { return w == responses || w == messages }

// path returns the path of requests below /v1.
func (w wire) path() string {
	if w.notChat() {
		return "/" + string(w)
	}
	return "/chat/completions"
}

// ask returns a request without history in a format other than Chat Completions, with store false.
func (w wire) ask(model, text string) string {
	if w == responses {
		return fmt.Sprintf(`{"model":%s,"stream":true,"store":false,"input":[{"role":"system","content":"You are a coding agent."},{"role":"user","content":%q}]}`, quote(model), text)
	}
	return fmt.Sprintf(`{"model":%s,"stream":true,"max_tokens":1024,"system":"You are a coding agent.","messages":[{"role":"user","content":%q}]}`, quote(model), text)
}

// read reads a stream as most SDKs do: a stream that ends without an error is a complete answer,
// even without its last event.
func (w wire) read(body io.Reader) (r reply) {
	var text strings.Builder
	event := r.chatEvent
	switch w {
	case responses:
		event = r.responseEvent
	case messages:
		event = r.messageEvent
	}
	s := bufio.NewScanner(body)
	s.Buffer(nil, maxEvent)
	for s.Scan() && r.err == nil && !r.done {
		data, ok := bytes.CutPrefix(s.Bytes(), []byte("data:"))
		if !ok {
			continue
		}
		data = bytes.TrimSpace(data)
		switch {
		case string(data) == "[DONE]":
			r.done = true
		case !json.Valid(data):
			r.err = errBadEvent
		default:
			text.WriteString(event(gjson.ParseBytes(data)))
		}
	}
	if r.text = text.String(); r.err == nil && !r.done {
		r.err = s.Err()
	}
	return r
}

// chatEvent adds an event of a chat completion and returns its text.
func (r *reply) chatEvent(e gjson.Result) string {
	if e.Get("error").Exists() {
		r.err = errEvent
		return ""
	}
	if r.id == "" {
		r.id = e.Get("id").Str
	}
	r.calls = appendCalls(r.calls, e.Get("choices.0.delta.tool_calls"))
	return e.Get("choices.0.delta.content").Str
}

// responseEvent adds an event of a response and returns its text.
func (r *reply) responseEvent(e gjson.Result) string {
	switch e.Get("type").Str {
	case "response.created":
		r.id = e.Get("response.id").Str
	case "response.output_text.delta":
		return e.Get("delta").Str
	case "response.completed":
		r.done = true
	case "response.failed", "error":
		r.err = errEvent
	}
	return ""
}

// messageEvent adds an event of a message and returns its text.
func (r *reply) messageEvent(e gjson.Result) string {
	switch e.Get("type").Str {
	case "message_start":
		r.id = e.Get("message.id").Str
	case "content_block_delta":
		return e.Get("delta.text").Str
	case "message_stop":
		r.done = true
	case "error":
		r.err = errEvent
	}
	return ""
}
