package load

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"fmt"
)

//go:embed testdata/session.json.gz
var session []byte

// message is what of a recorded message decides where a request may end.
type message struct {
	raw     json.RawMessage
	role    string
	calls   []toolCall
	answers string // id of the call that it is the result of
}

type toolCall struct {
	id  string
	raw json.RawMessage
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *toolCall) UnmarshalJSON(raw []byte) error {
	var named struct{ ID string }
	err := json.Unmarshal(raw, &named)
	c.id, c.raw = named.ID, bytes.Clone(raw)
	return err
}

// recording is a session as an agent had it.
type recording struct {
	tools    json.RawMessage
	messages []message
}

func readRecording() (*recording, error) {
	z, err := gzip.NewReader(bytes.NewReader(session))
	if err != nil {
		return nil, fmt.Errorf("reading the recorded session: %w", err)
	}
	var file struct {
		Tools    json.RawMessage
		Messages []json.RawMessage
	}
	if err := json.NewDecoder(z).Decode(&file); err != nil {
		return nil, fmt.Errorf("reading the recorded session: %w", err)
	}
	r := &recording{tools: file.Tools}
	for _, raw := range file.Messages {
		var m struct {
			Role    string
			Calls   []toolCall `json:"tool_calls"`
			Answers string     `json:"tool_call_id"`
		}
		if err := json.Unmarshal(raw, &m); err != nil {
			return nil, fmt.Errorf("reading the recorded session: %w", err)
		}
		r.messages = append(r.messages, message{raw, m.Role, m.Calls, m.Answers})
	}
	return r, nil
}

// recordedParts is how many parts of the session a connection sends in turn.
const recordedParts = 6

// bodies are parts of the recorded session, each from something that the user said
// up to the last results of tools that fit into size bytes. Fresh of these are one
// last turn: calls that the session holds next, as if they had been made in
// parallel. A connection's bodies differ from another's in their first message.
func (r *recording) bodies(model string, size, fresh int, stream bool, session int) (list [][]byte) {
	end := `],"model":"` + model + `"`
	if stream {
		end += `,"stream":true,"stream_options":{"include_usage":true}`
	}
	end += `,"tools":` + string(r.tools) + `}`
	for from, m := range r.messages {
		if m.role != "user" {
			continue
		}
		system := bytes.Replace(r.messages[0].raw, []byte(`"content":"`), fmt.Appendf(nil, `"content":"Session %06d. `, session), 1)
		body := r.part(append([]byte(`{"messages":[`), system...), from, size-fresh-len(end), fresh)
		if len(body)+len(end) > size*9/10 {
			list = append(list, append(body, end...))
		}
		if len(list) == recordedParts {
			break
		}
	}
	return list
}

// part appends messages up to the last results that fit into size bytes, and a turn
// of fresh bytes.
func (r *recording) part(b []byte, from, size, fresh int) []byte {
	whole, next := len(b), from
	for i := from; i < len(r.messages) && len(b)+len(r.messages[i].raw) < size; i++ {
		b = append(append(b, ','), r.messages[i].raw...)
		if i+1 < len(r.messages) && r.messages[i].role == "tool" && r.messages[i+1].role != "tool" {
			whole, next = len(b), i+1
		}
	}
	return append(b[:whole], r.turn(next, fresh)...)
}

// turn makes one turn of what follows: calls that fit into size bytes with their
// results, of which these are the larger part.
func (r *recording) turn(next, size int) string {
	var calls, results bytes.Buffer
	known := map[string]json.RawMessage{}
	for _, m := range r.messages[next:] {
		for _, c := range m.calls {
			known[c.id] = c.raw
		}
		if c := known[m.answers]; c != nil && 2*len(c) < len(m.raw) && calls.Len()+results.Len()+len(c)+len(m.raw) <= size {
			fmt.Fprintf(&calls, ",%s", c)
			fmt.Fprintf(&results, ",%s", m.raw)
		}
	}
	if calls.Len() == 0 {
		return ""
	}
	return `,{"role":"assistant","content":null,"tool_calls":[` + calls.String()[1:] + `]}` + results.String()
}
