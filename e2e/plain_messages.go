package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// defaultMaxTokens is sent where a case does not say: the format demands a limit.
const defaultMaxTokens = 1024

// messagesBody is a request for /v1/messages as the libraries spell it.
func (c Call) messagesBody() ([]byte, error) {
	m := map[string]any{"model": c.Model, "max_tokens": cmp.Or(c.MaxTokens, defaultMaxTokens)}
	var said []Message
	for _, message := range c.Messages {
		if message.Role == "system" {
			m["system"] = message.Content
		} else {
			said = append(said, message)
		}
	}
	m["messages"] = said
	if c.Stream {
		m["stream"] = true
	}
	var tools []any
	for _, t := range c.Tools {
		tools = append(tools, map[string]any{"name": t.Name, "description": t.Description, "input_schema": t.Parameters})
	}
	if tools != nil {
		m["tools"] = tools
	}
	if c.Temperature > 0 || c.Seed > 0 { // there is no seed: this is how not to sample
		m["temperature"] = c.Temperature
	}
	return json.Marshal(m)
}

// message is a whole one, or what its first event has of it.
type message struct {
	ID         string         `json:"id"`
	Type       string         `json:"type"`
	Role       string         `json:"role"`
	Model      string         `json:"model"`
	Content    []messageBlock `json:"content"`
	StopReason string         `json:"stop_reason"`
	Usage      *messageUsage  `json:"usage"`
}

// messageBlock is a block of its content.
type messageBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
}

// messageUsage is cumulative; what an event does not name stays.
type messageUsage struct {
	Input  *int `json:"input_tokens"`
	Output *int `json:"output_tokens"`
}

// messageEvent is an event of a streamed message.
type messageEvent struct {
	Type    string        `json:"type"`
	Index   int           `json:"index"`
	Message *message      `json:"message"`
	Block   *messageBlock `json:"content_block"`
	Delta   struct {
		Type       string `json:"type"`
		Text       string `json:"text"`
		Thinking   string `json:"thinking"`
		Signature  string `json:"signature"`
		Partial    string `json:"partial_json"`
		StopReason string `json:"stop_reason"`
	} `json:"delta"`
	Usage *messageUsage `json:"usage"`
}

// errorTypes are those that Anthropic documents: its clients know no other.
var errorTypes = []string{
	"invalid_request_error", "authentication_error", "billing_error", "permission_error", "not_found_error", "conflict_error",
	"request_too_large", "rate_limit_error", "api_error", "timeout_error", "overloaded_error",
}

// judgeError holds an error against Anthropic's envelope.
func (a *Answer) judgeError(data []byte) {
	var e struct {
		Type  string `json:"type"`
		Error struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(data, &e) != nil || e.Type != "error" || !slices.Contains(errorTypes, e.Error.Type) || e.Error.Message == "" {
		a.Wrong = append(a.Wrong, fmt.Sprintf("no error of this format: %.300s", data))
	}
}

// messagesValidator reads the events of one message and holds them against the rules
// that clients rely on.
type messagesValidator struct {
	a     *Answer
	begun time.Time
	next  int           // index of the next block
	open  *messageBlock // with its pieces, nil between blocks
	input string        // pieces of the input of a call
	usage Usage
}

// messagesReader adds a message, or one event of it, to the answer.
func (a *Answer) messagesReader(begun time.Time) reader {
	w := &messagesValidator{a: a, begun: begun}
	return func(name string, data []byte) error {
		var e messageEvent
		if err := json.Unmarshal(data, &e); err != nil {
			return fmt.Errorf("%w: %.100q", err, data)
		}
		if e.Type == "message" {
			return a.takeMessage(data)
		}
		if name != e.Type {
			w.wrong("the event %q has the type %q", name, e.Type)
		}
		w.event(&e)
		return nil
	}
}

func (w *messagesValidator) wrong(format string, args ...any) {
	w.a.Wrong = append(w.a.Wrong, fmt.Sprintf(format, args...))
}

func (w *messagesValidator) event(e *messageEvent) {
	a := w.a
	if a.Done {
		w.wrong("%s after the end", e.Type)
	}
	if started := len(a.IDs) > 0; e.Type != "ping" && started == (e.Type == "message_start") {
		w.wrong("%s, where %d messages were started", e.Type, len(a.IDs))
	}
	if e.Type != "ping" && strings.HasPrefix(e.Type, "message_") && w.open != nil {
		w.wrong("%s, while block %d is open", e.Type, w.next-1)
	}
	if a.Finishes > 0 && e.Type != "ping" && e.Type != "message_stop" {
		w.wrong("%s after the stop_reason", e.Type)
	}
	switch e.Type {
	case "ping":
		a.Comments = append(a.Comments, time.Since(w.begun).Milliseconds())
	case "message_start":
		w.start(e.Message)
	case "content_block_start":
		w.begin(e)
	case "content_block_delta":
		w.piece(e)
	case "content_block_stop":
		w.stop(e.Index)
	case "message_delta":
		w.count(e.Usage)
		if e.Delta.StopReason != "" {
			a.Finishes++
			a.FinishReason = finishReason(e.Delta.StopReason)
		}
	case "message_stop":
		a.Done = true
		if calls := len(a.ToolCalls) > 0; a.Finishes != 1 || calls != (a.FinishReason == "tool_calls") {
			w.wrong("message_stop with %d stop_reasons, the last %q, and %d calls", a.Finishes, a.FinishReason, len(a.ToolCalls))
		}
	default:
		w.wrong("an event %q", e.Type)
	}
}

func (w *messagesValidator) start(m *message) {
	if m == nil || m.ID == "" || m.Type != "message" || m.Role != "assistant" || m.Content == nil || m.Usage == nil || m.Usage.Input == nil {
		w.wrong("message_start with %+v", m)
		return
	}
	w.a.IDs = append(w.a.IDs, m.ID)
	w.a.Model = m.Model
	w.count(m.Usage)
}

func (w *messagesValidator) count(u *messageUsage) {
	if u == nil || u.Output == nil {
		w.wrong("usage without output_tokens")
		return
	}
	if u.Input != nil {
		w.usage.Prompt = *u.Input
	}
	w.usage.Completion = *u.Output
	w.usage.Total = w.usage.Prompt + w.usage.Completion
	w.a.Usage = &w.usage
}

func (w *messagesValidator) begin(e *messageEvent) {
	switch {
	case w.open != nil || e.Index != w.next:
		w.wrong("block %d begins where %d is next, one is open: %v", e.Index, w.next, w.open != nil)
	case e.Block == nil:
		w.wrong("a block that is none begins")
		return
	case e.Block.Type == "tool_use" && (e.Block.ID == "" || e.Block.Name == ""):
		w.wrong("a call %+v", e.Block)
	}
	w.open, w.input = e.Block, ""
	w.next = e.Index + 1
}

// pieceOf is what pieces of a block are called.
var pieceOf = map[string][]string{
	"text": {"text_delta", "citations_delta"}, "tool_use": {"input_json_delta"}, "thinking": {"thinking_delta", "signature_delta"},
}

func (w *messagesValidator) piece(e *messageEvent) {
	if w.open == nil || e.Index != w.next-1 || !slices.Contains(pieceOf[w.open.Type], e.Delta.Type) {
		w.wrong("%s for block %d, while %+v is open", e.Delta.Type, e.Index, w.open)
		return
	}
	a := w.a
	w.open.Text += e.Delta.Text
	w.open.Thinking += e.Delta.Thinking
	w.open.Signature += e.Delta.Signature
	w.input += e.Delta.Partial
	a.Text += e.Delta.Text
	if e.Delta.Text != "" || e.Delta.Partial != "" {
		a.Chunks++
		if a.FirstTokenMS < 0 {
			a.FirstTokenMS = time.Since(w.begun).Milliseconds()
		}
	}
}

func (w *messagesValidator) stop(index int) {
	b := w.open
	if b == nil || index != w.next-1 {
		w.wrong("block %d ends, %d is the last", index, w.next-1)
		return
	}
	w.open = nil
	switch b.Type {
	case "text":
		if b.Text == "" {
			w.wrong("block %d is an empty text, which no request may have", index)
		}
	case "thinking":
		if b.Signature == "" {
			w.wrong("block %d is thinking without a signature, which no request may have", index)
		}
	case "tool_use":
		if w.input == "" {
			w.input = "{}"
		}
		w.a.call(b, w.input)
	}
}

// call adds a call, whose input must be an object.
func (a *Answer) call(b *messageBlock, input string) {
	if json.Unmarshal([]byte(input), new(map[string]any)) != nil {
		a.Wrong = append(a.Wrong, fmt.Sprintf("the input of %s is %.200q", b.Name, input))
	}
	a.ToolCalls = append(a.ToolCalls, ToolCall{ID: b.ID, Name: b.Name, Arguments: input})
}

// takeMessage adds a message that was not streamed.
func (a *Answer) takeMessage(data []byte) error {
	var m message
	if err := json.Unmarshal(data, &m); err != nil {
		return fmt.Errorf("%w: %.100q", err, data)
	}
	a.Model, a.FinishReason = m.Model, finishReason(m.StopReason)
	if u := m.Usage; u != nil && u.Input != nil && u.Output != nil {
		a.Usage = &Usage{Prompt: *u.Input, Completion: *u.Output, Total: *u.Input + *u.Output}
	}
	for i := range m.Content {
		a.Text += m.Content[i].Text
		if b := &m.Content[i]; b.Type == "tool_use" {
			a.call(b, string(b.Input))
		}
	}
	return nil
}

// finishReason is a stop_reason in the words of the other formats.
func finishReason(stop string) string {
	switch stop {
	case "end_turn", "stop_sequence":
		return "stop"
	case "tool_use":
		return "tool_calls"
	case "max_tokens":
		return "length"
	}
	return stop
}
