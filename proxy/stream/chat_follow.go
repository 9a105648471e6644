package stream

import (
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// chatFollower gives chunks the identity that the client knows.
type chatFollower struct{ a *Answer }

func (Chat) follow(a *Answer) follower { return chatFollower{a} }

func (f chatFollower) event(ev *Event, d *Delta, c change) (out []byte, ok bool) {
	id, data := f.a.o.Sink.identity(), ev.Data
	if c.before == "" && d.Finishes == 0 && !d.HasUsage && d.Kind <= KindReasoning {
		return nil, true
	}
	if c.retext {
		data = Chat{}.WithText(data, c.text, id)
	}
	if c.before != "" {
		out = frame(Chat{}.TextEvent(data, c.before, id))
	}
	if c.usage != nil {
		data = Chat{}.WithUsage(data, *c.usage)
	}
	return append(out, frame(Chat{}.Later(data, id))...), true
}

func (f chatFollower) calls(ev *Event, d *Delta) []byte {
	if d.Finishes == 0 && !d.HasUsage && !(d.Kind == KindCall && d.calling()) {
		return nil
	}
	id := f.a.o.Sink.identity()
	return frame(Chat{}.Later(Chat{}.WithText(ev.Data, "", id), id))
}

// WithText replaces the first choice's text and sets the identity.
func (c Chat) WithText(data []byte, text string, id Identity) []byte {
	v := gjson.GetBytes(data, "choices.0.delta.content")
	if v.Index <= 0 {
		v = gjson.GetBytes(data, "choices.0.text") // legacy completions
	}
	if v.Index > 0 {
		out := make([]byte, 0, len(data)+len(text))
		out = append(out, data[:v.Index]...)
		out = append(out, transcript.String(text)...)
		data = append(out, data[v.Index+len(v.Raw):]...)
	}
	return c.Identify(data, id)
}

// Identify sets the identity.
func (Chat) Identify(data []byte, id Identity) []byte {
	for _, f := range [2]struct{ name, raw string }{{"id", id.ID}, {"created", id.Created}} {
		v := gjson.GetBytes(data, f.name)
		if f.raw == "" || v.Index <= 0 || v.Raw == f.raw {
			continue
		}
		out := make([]byte, 0, len(data)+len(f.raw))
		out = append(out, data[:v.Index]...)
		out = append(out, f.raw...)
		data = append(out, data[v.Index+len(v.Raw):]...)
	}
	return data
}

// WithUsage sets the tokens of the prompt, of the answer, and of both.
func (c Chat) WithUsage(data []byte, u recovery.Usage) []byte {
	for _, f := range [3]struct {
		path string
		n    int
	}{{"usage.prompt_tokens", u.Input}, {"usage.completion_tokens", u.Output}, {"usage.total_tokens", u.Input + u.Output}} {
		if v := gjson.GetBytes(data, f.path); v.Type == gjson.Number && v.Index > 0 {
			data = replaced(data, v.Index, len(v.Raw), strconv.AppendInt(nil, int64(f.n), 10))
		}
	}
	return data
}

// Later sets the identity and removes the role.
func (c Chat) Later(data []byte, id Identity) []byte {
	v := gjson.GetBytes(data, "choices.0.delta")
	if v.Index > 0 && v.IsObject() && v.Get("role").Exists() {
		out := make([]byte, 0, len(data))
		out = append(append(out, data[:v.Index]...), '{')
		v.ForEach(func(k, f gjson.Result) bool {
			if k.Str == "role" {
				return true
			}
			if out[len(out)-1] != '{' {
				out = append(out, ',')
			}
			out = append(append(append(out, k.Raw...), ':'), f.Raw...)
			return true
		})
		data = append(append(out, '}'), data[v.Index+len(v.Raw):]...)
	}
	return c.Identify(data, id)
}

// TextEvent builds a chunk with nothing but text.
func (c Chat) TextEvent(like []byte, text string, id Identity) []byte {
	out := []byte(`{"id":"","object":"chat.completion.chunk","created":0,"model":`)
	if m := gjson.GetBytes(like, "model"); m.Exists() {
		out = append(out, m.Raw...)
	} else {
		out = append(out, `""`...)
	}
	out = append(out, `,"choices":[{"index":0,"delta":{"content":`...)
	out = append(out, transcript.String(text)...)
	out = append(out, `},"finish_reason":null}]}`...)
	return c.Identify(out, id)
}
