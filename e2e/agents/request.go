package agents

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Call is a call of a tool.
type Call struct {
	ID        string `json:"id,omitempty"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Message is one message of a request, as far as a play needs it.
type Message struct {
	Role    string
	Text    string
	Calls   []Call
	Answers string // the id of the call that a tool's result answers
}

// Request is what a model is asked.
type Request struct {
	Model    string
	N        int // requests of this model before it
	Stream   bool
	Usage    bool // stream_options.include_usage
	Messages []Message
	Tools    []string
	NoCalls  bool // tool_choice is none
	Raw      []byte

	Responses bool // the format is that of /v1/responses
	Blocks    bool // the format is that of /v1/messages
	Stored    bool // the answer is stored, so that it can be referred to
	Sealed    bool // encrypted reasoning is asked for
}

// wireRequest is a request as it is sent.
type wireRequest struct {
	Model         string `json:"model"`
	Stream        bool   `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Messages []struct {
		Role      string          `json:"role"`
		Content   json.RawMessage `json:"content"`
		ToolCalls []struct {
			ID       string `json:"id"`
			Function struct {
				Name      string `json:"name"`
				Arguments string `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
		ToolCallID string `json:"tool_call_id"`
	} `json:"messages"`
	ToolChoice json.RawMessage `json:"tool_choice"`
	Tools      []struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	} `json:"tools"`
}

// ParseRequest reads a chat completion request.
func ParseRequest(raw []byte) (*Request, error) {
	var w wireRequest
	if err := json.Unmarshal(raw, &w); err != nil {
		return nil, fmt.Errorf("not a chat completion request: %w", err)
	}
	r := &Request{Model: w.Model, Stream: w.Stream, Usage: w.StreamOptions.IncludeUsage, NoCalls: string(w.ToolChoice) == `"none"`, Raw: raw}
	for _, m := range w.Messages {
		out := Message{Role: m.Role, Text: textOf(m.Content), Answers: m.ToolCallID}
		for _, c := range m.ToolCalls {
			out.Calls = append(out.Calls, Call{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
		}
		r.Messages = append(r.Messages, out)
	}
	for _, t := range w.Tools {
		r.Tools = append(r.Tools, t.Function.Name)
	}
	return r, nil
}

// textOf is the text of a content: a string, parts, or nothing.
func textOf(content json.RawMessage) string {
	var s string
	if json.Unmarshal(content, &s) == nil {
		return s
	}
	var parts []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(content, &parts) // null and absent have no text
	var all []string
	for _, p := range parts {
		all = append(all, p.Text)
	}
	return strings.Join(all, "\n")
}

// Tokens is what the model counts: four bytes each.
func (r *Request) Tokens() int { return len(r.Raw) / 4 }

const (
	// noteMark begins every note of the gateway.
	noteMark = "[gateway note"
	// compressedMark is in every text that the gateway put in the place of another.
	compressedMark = "_compressed"
	// reaskMark tells a note about the model's own last answer.
	reaskMark = "Your last answer was discarded"
)

// Note is the last note of the gateway in the request, "" without one.
func (r *Request) Note() string {
	for _, m := range slices.Backward(r.Messages) {
		if i := strings.LastIndex(m.Text, noteMark); i >= 0 {
			return m.Text[i:]
		}
	}
	return ""
}

// Notes counts the notes of the gateway.
func (r *Request) Notes() int {
	n := 0
	for _, m := range r.Messages {
		n += strings.Count(m.Text, noteMark)
	}
	return n
}

// Reasked reports whether the gateway asks again for an answer.
func (r *Request) Reasked() bool { return r.reasks() > 0 }

// reasks counts the notes that ask again.
func (r *Request) reasks() int {
	n := 0
	for _, m := range r.Messages {
		n += strings.Count(m.Text, reaskMark)
	}
	return n
}

// Prompt is what the user wrote last: no note, and no digest of what was removed.
func (r *Request) Prompt() string {
	for _, m := range slices.Backward(r.Messages) {
		if m.Role == "user" && !strings.HasPrefix(m.Text, noteMark) && !strings.HasPrefix(m.Text, `{"`+compressedMark) {
			return m.Text
		}
	}
	return ""
}

// Turns counts the assistant's turns.
func (r *Request) Turns() int {
	n := 0
	for _, m := range r.Messages {
		if m.Role == "assistant" {
			n++
		}
	}
	return n
}

// find returns the last match in what tools answered, nil without one.
func (r *Request) find(p *regexp.Regexp) []string {
	for _, m := range slices.Backward(r.Messages) {
		if m.Role != "tool" {
			continue
		}
		if found := p.FindAllStringSubmatch(m.Text, -1); found != nil {
			return found[len(found)-1]
		}
	}
	return nil
}

// lastCall is the newest call of the history.
func (r *Request) lastCall() (Call, bool) {
	for _, m := range slices.Backward(r.Messages) {
		if len(m.Calls) > 0 {
			return m.Calls[len(m.Calls)-1], true
		}
	}
	return Call{}, false
}

// unpaired says which result answers no call, or which call has no result; nil
// is a history that a strict provider takes.
func (r *Request) unpaired() error {
	open := map[string]bool{}
	for i, m := range r.Messages {
		if m.Role == "tool" {
			if !open[m.Answers] {
				return fmt.Errorf("message %d is the result of %q, which is no open call", i, m.Answers)
			}
			delete(open, m.Answers)
			continue
		}
		if len(open) > 0 {
			return fmt.Errorf("before message %d a call has no result", i)
		}
		for _, c := range m.Calls {
			if open[c.ID] {
				return fmt.Errorf("message %d has the call %q twice", i, c.ID)
			}
			open[c.ID] = true
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("at the end a call has no result")
	}
	return nil
}

// offers reports whether the request offers a tool.
func (r *Request) offers(tool string) bool { return slices.Contains(r.Tools, tool) }

// readMark begins the commands by which a client reads that has no tool for it.
const readMark = "cat -- "

// read is a call that reads a file, with the tool that the client has for it.
func (r *Request) read(path string) Call {
	switch {
	case r.offers("glob"): // opencode
		return Call{Name: "read", Arguments: arguments("filePath", path)}
	case r.offers("read"):
		return Call{Name: "read", Arguments: arguments("path", path)}
	case r.offers("Read"): // Claude Code
		return Call{Name: "Read", Arguments: arguments("file_path", path)}
	case r.offers("exec_command"): // codex
		return r.run(readMark + path)
	}
	return Call{Name: "read_file", Arguments: arguments("path", path)}
}

// run is a call that runs a command.
func (r *Request) run(command string) Call {
	switch {
	case r.offers("exec_command"):
		return Call{Name: "exec_command", Arguments: arguments("cmd", command)}
	case r.offers("Bash"):
		return Call{Name: "Bash", Arguments: arguments("command", command)}
	case r.offers("bash"):
		return Call{Name: "bash", Arguments: arguments("command", command)}
	}
	return Call{Name: "run_command", Arguments: arguments("command", command)}
}

// DidRead and DidRun make the calls of clients that tell in other words what they executed.
func DidRead(path string) Call { return Call{Name: "read_file", Arguments: arguments("path", path)} }

// DidRun is a command, or what it reads if that is all that it does.
func DidRun(command string) Call {
	if path, ok := strings.CutPrefix(command, readMark); ok {
		return DidRead(path)
	}
	return Call{Name: "run_command", Arguments: arguments("command", command)}
}

// offersReading reports whether the request is one of the agent's own.
func (r *Request) offersReading() bool {
	return r.offers("read_file") || r.offers("read") || r.offers("Read") || r.offers("exec_command")
}

func arguments(key, value string) string {
	raw, _ := json.Marshal(map[string]string{key: value}) // strings always are JSON
	return string(raw)
}
