package agents

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

// wireItem is an item of a request for a response.
type wireItem struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Input     string          `json:"input"`
	Output    json.RawMessage `json:"output"`
}

// ParseResponses reads a request for a response. input are its items, with those
// that it refers to: what the model made in one answer is one message.
func ParseResponses(raw []byte, input string) (*Request, error) {
	var w struct {
		Model        string          `json:"model"`
		Stream       bool            `json:"stream"`
		Instructions string          `json:"instructions"`
		Include      []string        `json:"include"`
		ToolChoice   json.RawMessage `json:"tool_choice"`
		Tools        []struct {
			Name string `json:"name"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(raw, &w); err != nil {
		return nil, fmt.Errorf("not a request for a response: %w", err)
	}
	var items []wireItem
	if err := json.Unmarshal([]byte("["+input+"]"), &items); err != nil {
		return nil, fmt.Errorf("the input: %w", err)
	}
	r := &Request{Model: w.Model, Stream: w.Stream, Responses: true, NoCalls: string(w.ToolChoice) == `"none"`, Raw: raw}
	r.Sealed = len(w.Include) > 0 && strings.Contains(strings.Join(w.Include, " "), "reasoning.encrypted_content")
	for _, t := range w.Tools {
		r.Tools = append(r.Tools, t.Name)
	}
	if w.Instructions != "" {
		r.Messages = append(r.Messages, Message{Role: "system", Text: w.Instructions})
	}
	turn := func() *Message { // the model's, which this item belongs to
		if n := len(r.Messages); n == 0 || r.Messages[n-1].Role != "assistant" {
			r.Messages = append(r.Messages, Message{Role: "assistant"})
		}
		return &r.Messages[len(r.Messages)-1]
	}
	for _, it := range items {
		switch {
		case it.Role == "assistant":
			turn().Text += textOf(it.Content)
		case it.Role != "":
			r.Messages = append(r.Messages, Message{Role: strings.Replace(it.Role, "developer", "system", 1), Text: textOf(it.Content)})
		case it.Type == upstreamtest.FunctionCall, it.Type == upstreamtest.CustomCall:
			m := turn()
			m.Calls = append(m.Calls, Call{ID: it.CallID, Name: it.Name, Arguments: it.Arguments + it.Input})
		case strings.HasSuffix(it.Type, "_call_output"):
			r.Messages = append(r.Messages, Message{Role: "tool", Text: textOf(it.Output), Answers: it.CallID})
		case it.Type == upstreamtest.Reasoning:
			turn()
		}
	}
	return r, nil
}

// thought is what the model thinks before each answer.
const thought = "First I look at what was asked and at what is there, then I decide."

// response is a reply as a response, with reasoning before it.
func (q *Request) response(account string, r *Reply) *upstreamtest.Response {
	id := fmt.Sprintf("%08x_%d", hash(q.Model), q.N)
	out := &upstreamtest.Response{ID: "resp_" + id, Model: q.Model, Created: created, In: q.Tokens(), Stored: q.Stored}
	out.Out = q.usage(r)["completion_tokens"].(int)
	if r.finish() == "length" {
		out.Incomplete = "max_output_tokens"
	}
	if r.Text == "" && len(r.Calls) == 0 {
		return out
	}
	thinks := upstreamtest.Item{Kind: upstreamtest.Reasoning, ID: "rs_" + id, Text: []string{thought}}
	if q.Sealed {
		thinks.Sealed = upstreamtest.Seal(account, thinks.ID)
	}
	out.Items = append(out.Items, thinks)
	if r.Text != "" {
		out.Items = append(out.Items, upstreamtest.Item{Kind: upstreamtest.Message, ID: "msg_" + id, Text: pieces(r.Text, textPiece)})
	}
	for i, c := range r.Calls {
		out.Items = append(out.Items, upstreamtest.Item{
			Kind: upstreamtest.FunctionCall, ID: fmt.Sprintf("fc_%s_%d", id, i), CallID: c.ID, Name: c.Name, Text: pieces(c.Arguments, 6),
		})
	}
	return out
}

// renderResponse writes a reply in the other format.
func (q *Request) renderResponse(out *upstreamtest.Response, r *Reply) answer {
	if !q.Stream {
		return whole(http.StatusOK, out.Whole(), r.Cut)
	}
	events, content := out.Events()
	a := answer{status: http.StatusOK, stream: true, length: -1, pieces: events, pauses: map[int]time.Duration{}}
	if texts := 1 + len(pieces(r.Text, textPiece)); r.Pause > 0 && texts < len(content) { // reasoning has one
		a.pauses[content[texts]] = r.Pause
	}
	if r.Cut > 0 && len(content) > 0 {
		a.pieces = events[:content[int(math.Min(float64(len(content)-1), float64(len(content))*r.Cut))]]
	}
	return a
}
