package stream

import (
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// IDPrefix begins the ids of answers that the gateway wrote, or had a model
// write in its own name.
const IDPrefix = "chatcmpl-rebound-"

// head appends a chunk or an answer up to its choice's own fields.
func (c *Composition) head(b []byte, object string) []byte {
	b = transcript.AppendString(append(b, `{"id":`...), IDPrefix+c.ID)
	b = append(append(append(b, `,"object":"`...), object...), `","created":`...)
	b = strconv.AppendInt(b, c.Created.Unix(), 10)
	return transcript.AppendString(append(b, `,"model":`...), c.Model)
}

func (c *Composition) reason() string {
	if len(c.Calls) > 0 {
		return `"tool_calls"`
	}
	return `"stop"`
}

const noUsage = `"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`

func (Chat) compose(c *Composition, streamed bool) []byte {
	if streamed {
		return c.chunks()
	}
	return c.whole()
}

// chunks is the answer as a stream.
func (c *Composition) chunks() []byte {
	var out []byte
	chunk := func(delta []byte, reason string) {
		out = c.head(append(out, "data: "...), "chat.completion.chunk")
		out = append(append(out, `,"choices":[{"index":0,"delta":`...), delta...)
		out = append(append(append(out, `,"logprobs":null,"finish_reason":`...), reason...), "}]"...)
		if c.Usage {
			out = append(out, `,"usage":null`...)
		}
		out = append(out, "}\n\n"...)
	}
	chunk([]byte(`{"role":"assistant","content":""}`), "null")
	if c.Text != "" {
		chunk(append(transcript.AppendString([]byte(`{"content":`), c.Text), '}'), "null")
	}
	for i, d := range (&calls{}).match(c.Calls) {
		delta := strconv.AppendInt([]byte(`{"tool_calls":[{"index":`), int64(i), 10)
		chunk(append(d.appendFields(append(delta, ',')), `}]}`...), "null")
	}
	chunk([]byte(`{}`), c.reason())
	if c.Usage {
		out = c.head(append(out, "data: "...), "chat.completion.chunk")
		out = append(append(append(out, `,"choices":[],`...), noUsage...), "}\n\n"...)
	}
	return append(out, doneEvent...)
}

// whole is the answer as one object.
func (c *Composition) whole() []byte {
	out := append(c.head(nil, "chat.completion"), `,"choices":[{"index":0,"message":{"role":"assistant","content":`...)
	if c.Text == "" && len(c.Calls) > 0 {
		out = append(out, `null`...)
	} else {
		out = transcript.AppendString(out, c.Text)
	}
	out = append(out, `,"refusal":null`...)
	for i, d := range (&calls{}).match(c.Calls) {
		if i == 0 {
			out = append(out, `,"tool_calls":[{`...)
		} else {
			out = append(out, `},{`...)
		}
		out = d.appendFields(out)
	}
	if len(c.Calls) > 0 {
		out = append(out, `}]`...)
	}
	out = append(append(out, `},"logprobs":null,"finish_reason":`...), c.reason()...)
	return append(append(append(out, `}],`...), noUsage...), '}')
}

func (Chat) brand(data []byte, request string) (list []splice, id string) {
	raw := transcript.String(IDPrefix + request)
	v := gjson.GetBytes(data, "id")
	if v.Exists() && v.Index > 0 {
		return []splice{{v.Index, v.Index + len(v.Raw), raw}}, string(raw)
	}
	at := 0
	for at < len(data) && data[at] != '{' {
		at++
	}
	if at == len(data) {
		return nil, string(raw)
	}
	at++
	field := append(append([]byte(`"id":`), raw...), ',')
	if empty(gjson.ParseBytes(data)) {
		field = field[:len(field)-1]
	}
	return []splice{{at, at, field}}, string(raw)
}
