package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// responsesBody is a request for /v1/responses as the libraries spell it.
func (c Call) responsesBody() ([]byte, error) {
	m := map[string]any{"model": c.Model, "input": c.Messages}
	if c.Stream {
		m["stream"] = true
	}
	var tools []any
	for _, t := range c.Tools {
		tools = append(tools, map[string]any{"type": "function", "name": t.Name, "description": t.Description, "parameters": t.Parameters, "strict": false})
	}
	if tools != nil {
		m["tools"] = tools
	}
	if c.MaxTokens > 0 {
		m["max_output_tokens"] = c.MaxTokens
	}
	if c.Temperature > 0 || c.Seed > 0 { // there is no seed: this is how not to sample
		m["temperature"] = c.Temperature
	}
	if c.Store != nil {
		m["store"] = *c.Store
	}
	return json.Marshal(m)
}

// response is a whole one.
type response struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	Model  string `json:"model"`
	Error  *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	Incomplete *struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Output []json.RawMessage `json:"output"`
	Usage  *struct {
		Input  int `json:"input_tokens"`
		Output int `json:"output_tokens"`
		Total  int `json:"total_tokens"`
	} `json:"usage"`
}

// item is one of its output.
type item struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	Content   []struct {
		Text string `json:"text"`
	} `json:"content"`
}

// responseEvent is an event of a streamed response.
type responseEvent struct {
	Type     string          `json:"type"`
	Sequence *int            `json:"sequence_number"`
	Index    int             `json:"output_index"`
	ItemID   string          `json:"item_id"`
	Delta    string          `json:"delta"`
	Item     json.RawMessage `json:"item"`
	Response *response       `json:"response"`
	Code     string          `json:"code"`
	Message  string          `json:"message"`
}

// responsesValidator reads the events of one response and holds them against the rules that
// clients rely on.
type responsesValidator struct {
	a     *Answer
	begun time.Time
	last  int
	ended bool
	open  map[int]item            // by output_index, from added to done
	done  map[int]json.RawMessage // the item
}

// responsesReader adds a response, or one event of it, to the answer.
func (a *Answer) responsesReader(begun time.Time) reader {
	w := &responsesValidator{a: a, begun: begun, last: -1, open: map[int]item{}, done: map[int]json.RawMessage{}}
	return func(_ string, data []byte) error {
		var e responseEvent
		if err := json.Unmarshal(data, &e); err != nil {
			return fmt.Errorf("%w: %.100q", err, data)
		}
		if e.Type != "" {
			return w.event(&e)
		}
		var r response
		if err := json.Unmarshal(data, &r); err != nil {
			return fmt.Errorf("%w: %.100q", err, data)
		}
		return a.takeResponse(&r, true)
	}
}

func (w *responsesValidator) wrong(format string, args ...any) {
	w.a.Wrong = append(w.a.Wrong, fmt.Sprintf(format, args...))
}

func (w *responsesValidator) event(e *responseEvent) error {
	a := w.a
	if e.Sequence == nil || *e.Sequence != w.last+1 {
		w.wrong("after sequence_number %d comes %v of %s", w.last, e.Sequence, e.Type)
	}
	if e.Sequence != nil {
		w.last = *e.Sequence
	}
	if w.ended {
		w.wrong("%s after the end", e.Type)
	}
	if created := e.Type == "response.created"; created != (len(a.IDs) == 0) {
		w.wrong("%s, where %d responses were created", e.Type, len(a.IDs))
	}
	if e.Response != nil && !slices.Contains(a.IDs, e.Response.ID) {
		a.IDs = append(a.IDs, e.Response.ID)
	}
	if e.ItemID != "" && w.open[e.Index].ID != e.ItemID {
		w.wrong("%s is about %q, item %d is %q", e.Type, e.ItemID, e.Index, w.open[e.Index].ID)
	}
	if e.Delta != "" {
		a.Chunks++
		if a.FirstTokenMS < 0 {
			a.FirstTokenMS = time.Since(w.begun).Milliseconds()
		}
	}
	switch e.Type {
	case "response.output_text.delta":
		a.Text += e.Delta
	case "response.output_item.added", "response.output_item.done":
		return w.item(e)
	case "error":
		a.Code = e.Code
		return fmt.Errorf("%s (code %s)", e.Message, e.Code)
	case "response.completed", "response.incomplete", "response.failed":
		w.ended = true
		a.Finishes++
		w.end(e)
		return a.takeResponse(e.Response, false)
	}
	return nil
}

// item takes an item that begins or ends.
func (w *responsesValidator) item(e *responseEvent) error {
	var it item
	if err := json.Unmarshal(e.Item, &it); err != nil {
		return err
	}
	was, known := w.open[e.Index]
	switch {
	case e.Type == "response.output_item.added" && known, e.Type == "response.output_item.done" && !known:
		w.wrong("%s for item %d, which was added before: %v", e.Type, e.Index, known)
	case known && (was.ID != it.ID || was.Type != it.Type || was.CallID != it.CallID):
		w.wrong("item %d was added as %+v and is done as %+v", e.Index, was, it)
	}
	w.open[e.Index] = it
	if e.Type == "response.output_item.done" {
		w.done[e.Index] = e.Item
	}
	return nil
}

// end holds the response against what was streamed.
func (w *responsesValidator) end(e *responseEvent) {
	if e.Response == nil {
		w.wrong("%s has no response", e.Type)
		e.Response = &response{}
	}
	if e.Type == "response.failed" {
		return
	}
	if len(e.Response.Output) != len(w.done) || len(w.open) != len(w.done) {
		w.wrong("%d items were added, %d done, the response has %d", len(w.open), len(w.done), len(e.Response.Output))
		return
	}
	for i, it := range e.Response.Output {
		if string(it) != string(w.done[i]) {
			w.wrong("item %d is %.300s, in the response %.300s", i, w.done[i], it)
		}
	}
}

// takeResponse adds the response; the text of a stream is there already.
func (a *Answer) takeResponse(r *response, whole bool) error {
	a.Model = r.Model
	if r.Usage != nil {
		a.Usage = &Usage{Prompt: r.Usage.Input, Completion: r.Usage.Output, Total: r.Usage.Total}
	}
	var text strings.Builder
	for _, raw := range r.Output {
		var it item
		if err := json.Unmarshal(raw, &it); err != nil {
			return err
		}
		for _, part := range it.Content {
			text.WriteString(part.Text)
		}
		if it.Type == "function_call" {
			a.ToolCalls = append(a.ToolCalls, ToolCall{ID: it.CallID, Name: it.Name, Arguments: it.Arguments})
		}
	}
	if whole {
		a.Text = text.String()
	} else if r.Status == "completed" && a.Text != text.String() {
		a.Wrong = append(a.Wrong, "the text of the response is not what was streamed")
	}
	switch r.Status {
	case "completed":
		a.FinishReason = "stop"
		if len(a.ToolCalls) > 0 {
			a.FinishReason = "tool_calls"
		}
	case "incomplete":
		a.FinishReason = "length"
	case "failed":
		if r.Error == nil {
			return errors.New("failed without an error")
		}
		a.Code = r.Error.Code
		return fmt.Errorf("%s (code %s)", r.Error.Message, r.Error.Code)
	}
	return nil
}
