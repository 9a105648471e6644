package agents

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

// wireBlock is a block of a message of /v1/messages.
type wireBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
}

// ParseMessages reads a request for a message. A user's message with results is one
// message for each of them, and one for what stands behind.
func ParseMessages(raw []byte) (*Request, error) {
	var w struct {
		Model    string          `json:"model"`
		Stream   bool            `json:"stream"`
		System   json.RawMessage `json:"system"`
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
		ToolChoice struct {
			Type string `json:"type"`
		} `json:"tool_choice"`
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(raw, &w); err != nil {
		return nil, fmt.Errorf("not a request for a message: %w", err)
	}
	r := &Request{Model: w.Model, Stream: w.Stream, Blocks: true, NoCalls: w.ToolChoice.Type == "none", Raw: raw}
	if system := textOf(w.System); system != "" {
		r.Messages = append(r.Messages, Message{Role: "system", Text: system})
	}
	for _, m := range w.Messages {
		var blocks []wireBlock
		if json.Unmarshal(m.Content, &blocks) != nil {
			r.Messages = append(r.Messages, Message{Role: m.Role, Text: textOf(m.Content)})
			continue
		}
		said, texts := Message{Role: m.Role}, []string(nil)
		for _, b := range blocks {
			switch b.Type {
			case "text":
				texts = append(texts, b.Text)
			case "tool_result":
				r.Messages = append(r.Messages, Message{Role: "tool", Text: textOf(b.Content), Answers: b.ToolUseID})
			case "tool_use":
				said.Calls = append(said.Calls, Call{ID: b.ID, Name: b.Name, Arguments: string(b.Input)})
			}
		}
		if said.Text = strings.Join(texts, "\n"); said.Text != "" || m.Role == "assistant" {
			r.Messages = append(r.Messages, said)
		}
	}
	for _, t := range w.Tools {
		r.Tools = append(r.Tools, t.Name)
	}
	return r, nil
}

// renderMessage writes a reply as a message, with thinking before it. Arguments that are
// no JSON can only be streamed.
func (q *Request) renderMessage(account string, r *Reply) answer {
	id := fmt.Sprintf("msg_%08x_%d", hash(q.Model), q.N)
	stop := map[string]string{"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}[r.finish()]
	usage := object{"input_tokens": q.Tokens(), "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": q.usage(r)["completion_tokens"]}
	m := object{"id": id, "type": "message", "role": "assistant", "model": q.Model, "content": []object{}, "stop_reason": nil, "stop_sequence": nil, "usage": usage}
	var events [][]byte
	event := func(typ string, fields object) []byte {
		fields["type"] = typ
		return append(append([]byte("event: "+typ+"\ndata: "), marshal(fields)...), "\n\n"...)
	}
	var blocks []object
	var starts []int // of the pieces, among events
	block := func(ended, begin object, deltas ...object) {
		at := len(blocks)
		blocks = append(blocks, ended)
		events = append(events, event("content_block_start", object{"index": at, "content_block": begin}))
		for _, d := range deltas {
			starts = append(starts, len(events)+1) // behind message_start
			events = append(events, event("content_block_delta", object{"index": at, "delta": d}))
		}
		events = append(events, event("content_block_stop", object{"index": at}))
	}
	call := -1 // the event that begins the first call
	if r.Text != "" || len(r.Calls) > 0 {
		sealed := upstreamtest.Seal(account, "thinking_"+id)
		block(object{"type": "thinking", "thinking": thought, "signature": sealed}, object{"type": "thinking", "thinking": "", "signature": ""},
			object{"type": "thinking_delta", "thinking": thought}, object{"type": "signature_delta", "signature": sealed})
	}
	if r.Text != "" {
		var deltas []object
		for _, p := range pieces(r.Text, textPiece) {
			deltas = append(deltas, object{"type": "text_delta", "text": p})
		}
		block(object{"type": "text", "text": r.Text}, object{"type": "text", "text": ""}, deltas...)
	}
	for _, c := range r.Calls {
		if call < 0 {
			call = len(events) + 1
		}
		var deltas []object
		for _, p := range pieces(c.Arguments, 6) {
			deltas = append(deltas, object{"type": "input_json_delta", "partial_json": p})
		}
		begin := object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": object{}}
		ended := begin
		if json.Valid([]byte(c.Arguments)) {
			ended = object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": json.RawMessage(c.Arguments)}
		}
		block(ended, begin, deltas...)
	}
	if !q.Stream {
		m["content"], m["stop_reason"] = blocks, stop
		return whole(http.StatusOK, marshal(m), r.Cut)
	}
	all := append([][]byte{event("message_start", object{"message": m})}, events...)
	all = append(all, event("message_delta", object{"delta": object{"stop_reason": stop, "stop_sequence": nil}, "usage": object{"output_tokens": usage["output_tokens"]}}),
		event("message_stop", object{}))
	a := answer{status: http.StatusOK, stream: true, length: -1, pieces: all, pauses: map[int]time.Duration{}}
	if r.Pause > 0 && call > 0 {
		a.pauses[call] = r.Pause
	}
	if r.Cut > 0 && len(starts) > 0 {
		a.pieces = all[:starts[min(len(starts)-1, int(float64(len(starts))*r.Cut))]]
	}
	return a
}

// inAnthropicsWords is an error in Anthropic's envelope.
func inAnthropicsWords(status int, body string) string {
	var e struct {
		Error *struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal([]byte(body), &e) != nil || e.Error == nil {
		return body
	}
	typ := map[int]string{http.StatusTooManyRequests: "rate_limit_error", http.StatusNotFound: "not_found_error"}[status]
	if typ == "" {
		typ = "invalid_request_error"
	}
	return string(marshal(object{"type": "error", "error": object{"type": typ, "message": e.Error.Message}}))
}

// tooLong refuses a request in Anthropic's words.
func tooLong(r *Request) Reply {
	return Reply{Status: http.StatusBadRequest, Error: string(marshal(object{"type": "error", "error": object{
		"type": "invalid_request_error", "message": fmt.Sprintf("prompt is too long: %d tokens > %d maximum", r.Tokens(), r.window()),
	}}))}
}
