package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Reply is what the model answers.
type Reply struct {
	Text  string
	Calls []Call
	// Finish is the finish_reason; by default stop, or tool_calls.
	Finish string
	// Cut is the share of the answer's chunks that are sent, 0 for all. Then the
	// connection breaks, or with Clean the answer just ends.
	Cut   float64
	Clean bool
	// Pause is how long a stream pauses between its text and its calls.
	Pause time.Duration
	// Status and Error make it an error with this body.
	Status int
	Error  string
}

// done: the model says its last word.
func done(format string, args ...any) Reply { return Reply{Text: fmt.Sprintf(format, args...)} }

// calls: the model says something and calls a tool.
func calls(text string, c ...Call) Reply { return Reply{Text: text, Calls: c} }

// created is the time of all answers, in seconds of the Unix epoch.
const created = 1790000000

type object = map[string]any

func (r *Reply) finish() string {
	switch {
	case r.Finish != "":
		return r.Finish
	case len(r.Calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

func (q *Request) usage(r *Reply) object {
	out := len(r.Text) / 4
	for _, c := range r.Calls {
		out += (len(c.Name) + len(c.Arguments)) / 4
	}
	return object{"prompt_tokens": q.Tokens(), "completion_tokens": out + 1, "total_tokens": q.Tokens() + out + 1}
}

// answer is a reply as it is sent: the pieces of a body, each flushed.
type answer struct {
	status int
	stream bool
	length int // announced, -1 for none
	pieces [][]byte
	pauses map[int]time.Duration // before a piece
}

// name gives the calls of a reply ids.
func (q *Request) name(r *Reply) {
	for i := range r.Calls {
		if r.Calls[i].ID == "" {
			r.Calls[i].ID = fmt.Sprintf("call_%08x_%d_%d", hash(q.Model), q.N, i)
		}
	}
}

// render writes a reply as a chat completion.
func (q *Request) render(r *Reply) answer {
	id := fmt.Sprintf("chatcmpl-%08x-%d", hash(q.Model), q.N)
	switch {
	case r.Status != 0:
		return whole(r.Status, []byte(r.Error), 0)
	case q.Stream:
		return answer{
			status: http.StatusOK, stream: true, length: -1, pieces: q.events(id, r),
			pauses: map[int]time.Duration{1 + len(pieces(r.Text, textPiece)): r.Pause}, // the role comes first
		}
	}
	message := object{"role": "assistant", "content": r.Text, "refusal": nil}
	if r.Text == "" {
		message["content"] = nil
	}
	if len(r.Calls) > 0 {
		var list []object
		for _, c := range r.Calls {
			list = append(list, object{"id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": c.Arguments}})
		}
		message["tool_calls"] = list
	}
	return whole(http.StatusOK, marshal(object{
		"id": id, "object": "chat.completion", "created": created, "model": q.Model, "usage": q.usage(r),
		"choices": []object{{"index": 0, "message": message, "logprobs": nil, "finish_reason": r.finish()}},
	}), r.Cut)
}

func whole(status int, body []byte, cut float64) answer {
	a := answer{status: status, length: len(body)}
	if cut > 0 {
		body = body[:int(float64(len(body))*cut)]
	}
	a.pieces = [][]byte{body}
	return a
}

// textPiece is how much text an event has, in bytes.
const textPiece = 24

// events are the events of a streamed reply: text and arguments in several pieces.
func (q *Request) events(id string, r *Reply) (out [][]byte) {
	var content []object
	for _, piece := range pieces(r.Text, textPiece) {
		content = append(content, object{"content": piece})
	}
	for i, c := range r.Calls {
		content = append(content, object{"tool_calls": []object{{"index": i, "id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": ""}}}})
		for _, piece := range pieces(c.Arguments, 6) {
			content = append(content, object{"tool_calls": []object{{"index": i, "function": object{"arguments": piece}}}})
		}
	}
	if r.Cut > 0 {
		content = content[:int(float64(len(content))*r.Cut)]
	}
	event := func(data []byte) { out = append(out, append(append([]byte("data: "), data...), "\n\n"...)) }
	chunk := func(choices []object, usage any) {
		c := object{"id": id, "object": "chat.completion.chunk", "created": created, "model": q.Model, "choices": choices}
		if q.Usage {
			c["usage"] = usage
		}
		event(marshal(c))
	}
	one := func(delta object, finish any) {
		chunk([]object{{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": finish}}, nil)
	}
	one(object{"role": "assistant", "content": ""}, nil)
	for _, delta := range content {
		one(delta, nil)
	}
	if r.Cut > 0 {
		return out
	}
	one(object{}, r.finish())
	if q.Usage {
		chunk([]object{}, q.usage(r))
	}
	event([]byte("[DONE]"))
	return out
}

// send writes an answer. It returns no error if the client left: the checks see that.
func (a *answer) send(ctx context.Context, w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	if a.stream {
		w.Header().Set("Content-Type", "text/event-stream")
	}
	if a.length >= 0 {
		w.Header().Set("Content-Length", fmt.Sprint(a.length))
	}
	w.WriteHeader(a.status)
	for i, p := range a.pieces {
		if d := a.pauses[i]; d > 0 {
			select {
			case <-time.After(d):
			case <-ctx.Done():
				return
			}
		}
		if _, err := w.Write(p); err != nil {
			return
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			return
		}
	}
}

func marshal(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("agents: %v", err)) // only maps and strings are sent
	}
	return raw
}

// pieces cuts a text of ASCII characters.
func pieces(s string, n int) (out []string) {
	for len(s) > n {
		out, s = append(out, s[:n]), s[n:]
	}
	if s != "" {
		out = append(out, s)
	}
	return out
}

// overflow refuses a request in OpenAI's words, which for a response have no numbers.
func overflow(r *Request) Reply {
	if r.Blocks {
		return tooLong(r)
	}
	if r.Responses {
		return Reply{Status: http.StatusBadRequest, Error: string(marshal(object{"error": object{
			"message": "Your input exceeds the context window of this model. Please adjust your input and try again.",
			"type":    "invalid_request_error", "param": "input", "code": "context_length_exceeded",
		}}))}
	}
	return Reply{Status: http.StatusBadRequest, Error: strings.TrimSpace(string(marshal(object{"error": object{
		"message": fmt.Sprintf("This model's maximum context length is %d tokens. However, your messages resulted in %d tokens. Please reduce the length of the messages.", window, r.Tokens()),
		"type":    "invalid_request_error", "param": "messages", "code": "context_length_exceeded",
	}})))}
}
