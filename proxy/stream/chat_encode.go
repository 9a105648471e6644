package stream

import (
	"bytes"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// IDPrefix begins the ids of answers that the gateway wrote, or that carry its identity.
const IDPrefix = "chatcmpl-rebound-"

// chatEncoder writes chunks. A new chunk copies the fields of the chunk that it replaces, except the
// choice's content, to preserve provider-specific fields.
type chatEncoder struct {
	follows bool     // the client has the beginning of the answer, from another attempt
	id      Identity // the identity that the client has
	out     []byte
}

func (Chat) encoder(s *Sink) encoder {
	if s == nil {
		return &chatEncoder{}
	}
	return &chatEncoder{follows: true, id: s.identity()}
}

func (c *chatEncoder) event(out []byte, ev *Event, d *Delta, e *edit) ([]byte, bool) {
	if c.follows && e.before == "" && d.Finishes == 0 && (d.Kind == KindReasoning || !d.HasUsage && d.Kind < KindReasoning) {
		return out, true // the client already has a role and reasoning
	}
	c.out = out
	if c.follows {
		data := ev.Data
		if e.text != nil {
			data = with(data, "choices.0.delta.content", *e.text, "choices.0.text", *e.text) // choices.0.text is for legacy completions
		}
		if u := e.usage; u != nil {
			data = with(data, "usage.prompt_tokens", u.Input, "usage.completion_tokens", u.Output, "usage.total_tokens", u.Input+u.Output)
		}
		data = withoutRole(with(data, "id", raw(data, "id", c.id.ID), "created", raw(data, "created", c.id.Created)))
		if e.before != "" {
			c.say(lean(data), e.before)
		}
		c.out = appendFrame(c.out, "", data)
	} else if !c.edited(ev, e) {
		c.out = append(c.out, ev.Raw...)
	}
	return c.out, true
}

// raw returns value as JSON, or if it is "" the value at path.
func raw(data []byte, path, value string) []byte {
	if value == "" {
		value = gjson.GetBytes(data, path).Raw
	}
	return []byte(value)
}

// withoutRole returns a chunk without the role of its first choice.
func withoutRole(data []byte) []byte {
	v := gjson.GetBytes(data, "choices.0.delta")
	if !v.IsObject() || !v.Get("role").Exists() {
		return data
	}
	delta := []byte{'{'}
	v.ForEach(func(k, f gjson.Result) bool {
		if k.Str != "role" {
			delta = transcript.AppendField(delta, k.Str, []byte(f.Raw))
		}
		return true
	})
	return with(data, "choices.0.delta", append(delta, '}'))
}

// edited writes a chunk with the changes of e as one or more chunks. It returns false if there are
// none.
func (c *chatEncoder) edited(ev *Event, e *edit) bool {
	choice := gjson.GetBytes(ev.Data, "choices.0")
	if !ev.HasData || !choice.IsObject() {
		return false
	}
	delta := choice.Get("delta")
	called := e.recall && (hasCalls(delta) || hasCalls(choice.Get("message")))
	text := delta.Get("content")
	said := e.text != nil && text.Type == gjson.String && text.Str != ""
	reason := choice.Get("finish_reason")
	ends := reason.Type == gjson.String && reason.Str != ""
	if !called && !said && !ends {
		return false
	}
	data := bytes.Clone(ev.Data) // ev.Data belongs to the reader
	rest, speaks := c.rest(delta, said, e)
	switch {
	case called && len(e.calls) > 0:
		if !said {
			c.text(data, e)
		}
		c.call(data, rest, e)
		rest = nil
	case called || said:
		if speaks || delta.Get("role").Exists() {
			c.chunk(data, rest, "null", false)
		}
		rest = nil
	case speaks && (len(e.calls) > 0 || e.text != nil && *e.text != ""):
		c.chunk(data, rest, "null", false)
		rest = nil
	}
	if !ends {
		return true
	}
	c.text(data, e)
	c.call(data, nil, e)
	end := []byte(reason.Raw)
	switch {
	case e.unfinish:
		end = []byte("null")
	case e.finish != recovery.FinishNone:
		end = transcript.String(wireFinish(e.finish))
	}
	switch {
	case rest == nil:
		c.chunk(data, nil, string(end), true)
	case string(end) == reason.Raw:
		c.out = append(c.out, ev.Raw...)
	default:
		c.out = appendFrame(c.out, "", with(data, "choices.0.finish_reason", end))
	}
	return true
}

// text writes the new text, unless a chunk already had it.
func (c *chatEncoder) text(like []byte, e *edit) {
	if e.text != nil {
		c.say(like, *e.text)
		e.said()
	}
}

// rest returns the fields of a delta without its calls and with the new text; speaks reports whether
// any of them has content.
func (c *chatEncoder) rest(delta gjson.Result, said bool, e *edit) (rest []byte, speaks bool) {
	rest = []byte{}
	if !delta.IsObject() {
		return rest, false
	}
	delta.ForEach(func(k, v gjson.Result) bool {
		raw := v.Raw
		switch k.Str {
		case "tool_calls", "function_call":
			if e.recall {
				return true
			}
			speaks = speaks || !empty(v)
		case "content":
			if said {
				raw, speaks = string(transcript.String(*e.text)), speaks || *e.text != ""
				e.said()
			} else {
				speaks = speaks || !empty(v)
			}
		case "role":
		default:
			speaks = speaks || !empty(v)
		}
		if len(rest) > 0 {
			rest = append(rest, ',')
		}
		rest = append(append(append(rest, k.Raw...), ':'), raw...)
		return true
	})
	return rest, speaks
}

func hasCalls(m gjson.Result) bool {
	return m.IsObject() && (!empty(m.Get("tool_calls")) || !empty(m.Get("function_call")))
}

// say writes text as a separate chunk.
func (c *chatEncoder) say(like []byte, text string) {
	if text != "" {
		c.chunk(like, append([]byte(`"content":`), transcript.String(text)...), "null", false)
	}
}

// call writes each call as a chunk; the first one includes rest.
func (c *chatEncoder) call(like, rest []byte, e *edit) {
	list := e.calls
	e.calls = nil
	for i, d := range list {
		inside := bytes.Clone(rest)
		rest = nil
		if len(inside) > 0 {
			inside = append(inside, ',')
		}
		inside = append(inside, `"tool_calls":[{"index":`...)
		inside = strconv.AppendInt(inside, int64(i), 10)
		inside = append(d.appendFields(append(inside, ',')), `}]`...)
		c.chunk(like, inside, "null", false)
		if i == 0 && len(list) > 1 {
			like = lean(like)
		}
	}
}

// lean returns a template for further chunks: like without its large fields, which the client gets
// only once.
func lean(like []byte) []byte {
	const large = 256
	out := []byte{'{'}
	gjson.ParseBytes(like).ForEach(func(k, v gjson.Result) bool {
		raw := v.Raw
		if k.Str == "choices" {
			raw = `[{"index":` + strconv.FormatInt(v.Get("0.index").Int(), 10) + `}]`
		}
		if len(k.Raw)+len(raw) <= large {
			out = transcript.AppendField(out, k.Str, []byte(raw))
		}
		return true
	})
	return append(out, '}')
}

// chunk writes a chunk with the fields inside in its delta, and all other fields from like. Only the
// last chunk has usage and the end's own fields.
func (c *chatEncoder) chunk(like, inside []byte, reason string, last bool) {
	out := make([]byte, 1, len(like)+len(inside)+64)
	out[0] = '{'
	gjson.ParseBytes(like).ForEach(func(k, v gjson.Result) bool {
		switch {
		case k.Str == "choices":
			choice := []byte{'{'}
			v.Get("0").ForEach(func(k, v gjson.Result) bool {
				switch {
				case k.Str == "delta", k.Str == "message", k.Str == "finish_reason":
				case k.Str == "index", last, v.Type == gjson.Null:
					choice = transcript.AppendField(choice, k.Str, []byte(v.Raw))
				}
				return true
			})
			choice = transcript.AppendField(choice, "delta", append(append([]byte{'{'}, inside...), '}'))
			out = transcript.AppendField(out, k.Str, transcript.List([][]byte{append(transcript.AppendField(choice, "finish_reason", []byte(reason)), '}')}))
		case k.Str == "usage" && !last && v.Type != gjson.Null:
		default:
			out = transcript.AppendField(out, k.Str, []byte(v.Raw))
		}
		return true
	})
	c.out = appendFrame(c.out, "", append(out, '}'))
}

func (*chatEncoder) whole(body []byte, e *edit) (list []transcript.Splice) {
	const message = "choices.0.message"
	put := func(path, name string, value any) {
		if s, ok := field(body, path, name, value, false); ok {
			list = append(list, s)
		}
	}
	if raw, changed := listOfCalls(e); changed {
		put(message, "tool_calls", raw)
		if e.modern {
			put(message, "function_call", nil)
		}
	}
	if e.text != nil {
		put(message, "content", *e.text)
	}
	if e.finish != recovery.FinishNone {
		put("choices.0", "finish_reason", wireFinish(e.finish))
	}
	return list
}

// listOfCalls returns the list of calls; elements that did not change keep their bytes.
func listOfCalls(e *edit) (raw []byte, changed bool) {
	changed = len(e.calls) != e.had
	items := make([][]byte, len(e.calls))
	for i, c := range e.calls {
		if items[i] = []byte(c.raw); c.raw == "" || c.value {
			items[i], changed = append(c.appendFields([]byte{'{'}), '}'), true
		}
	}
	return transcript.List(items), changed
}

// appendFields appends the fields of a call without its braces.
func (c *call) appendFields(b []byte) []byte {
	if c.ID != "" {
		b = append(transcript.AppendString(append(b, `"id":`...), c.ID), ',')
	}
	b = transcript.AppendString(append(b, `"type":`...), c.Kind)
	if c.Kind == "custom" {
		b = transcript.AppendString(append(b, `,"custom":{"name":`...), c.Name)
		b = transcript.AppendString(append(b, `,"input":`...), c.Arguments)
		b = c.inner.appendTo(b)
	} else {
		b = c.appendFunction(append(b, `,"function":`...))
	}
	return c.extra.appendTo(append(b, '}'))
}

// appendFunction appends a function without its closing brace.
func (c *call) appendFunction(b []byte) []byte {
	b = transcript.AppendString(append(b, `{"name":`...), c.Name)
	b = transcript.AppendString(append(b, `,"arguments":`...), c.Arguments)
	return c.inner.appendTo(b)
}

// head returns the fields of a chunk or an answer before its choices.
func (id Identity) head(object string, model []byte) []byte {
	out := []byte{'{'}
	if id.ID != "" {
		out = transcript.AppendField(out, "id", []byte(id.ID))
	}
	out = transcript.AppendField(out, "object", object)
	if id.Created != "" {
		out = transcript.AppendField(out, "created", []byte(id.Created))
	}
	return transcript.AppendField(out, "model", model)
}

func (*chatEncoder) blank(c *Composition, streamed bool) (out []byte) {
	usage := []byte(`{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`)
	id := Identity{ID: string(transcript.String(IDPrefix + c.ID)), Created: strconv.FormatInt(c.Created.Unix(), 10)}
	model := transcript.String(c.Model)
	if !streamed {
		choice := `[{"index":0,"message":{"role":"assistant","content":null,"refusal":null},"logprobs":null,"finish_reason":"stop"}]`
		return append(transcript.AppendField(transcript.AppendField(id.head("chat.completion", model), "choices", []byte(choice)), "usage", usage), '}')
	}
	for _, choices := range [...]string{
		`[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]`, `[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]`, `[]`,
	} {
		chunk := transcript.AppendField(id.head("chat.completion.chunk", model), "choices", []byte(choices))
		switch {
		case choices == `[]` && !c.Usage:
			continue
		case choices == `[]`:
			chunk = transcript.AppendField(chunk, "usage", usage)
		case c.Usage:
			chunk = transcript.AppendField(chunk, "usage", nil)
		}
		out = appendFrame(out, "", append(chunk, '}'))
	}
	return append(out, doneEvent...)
}

func (*chatEncoder) identify(data []byte, request string) (list []transcript.Splice, id string) {
	value := transcript.String(IDPrefix + request)
	if s, ok := field(data, "", "id", value, true); ok {
		list = []transcript.Splice{s}
	}
	return list, string(value)
}

func (*chatEncoder) finish(id Identity, model []byte, choices int, reason recovery.Finish) []byte {
	list := make([][]byte, choices)
	for i := range list {
		list[i] = transcript.Object("index", i, "delta", []byte("{}"), "finish_reason", wireFinish(reason))
	}
	return append(transcript.AppendField(id.head("chat.completion.chunk", model), "choices", transcript.List(list)), '}')
}

func (*chatEncoder) end(failure []byte) []byte {
	if failure == nil {
		return doneEvent
	}
	return append(append([]byte("data: "), oneLine(failure)...), "\n\n"...)
}

// wireFinish returns a finish reason in the words of this format.
func wireFinish(f recovery.Finish) string {
	switch f {
	case recovery.FinishCalls:
		return "tool_calls"
	case recovery.FinishFilter:
		return "content_filter"
	}
	return string(f)
}
