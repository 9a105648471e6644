package stream

import (
	"github.com/tidwall/gjson"

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
		data = withText(data, c.text)
	}
	if c.before != "" {
		out = frame(textEvent(data, c.before, id))
	}
	if u := c.usage; u != nil {
		data = with(data, "usage.prompt_tokens", u.Input, "usage.completion_tokens", u.Output, "usage.total_tokens", u.Input+u.Output)
	}
	return append(out, frame(later(data, id))...), true
}

func (f chatFollower) calls(ev *Event, d *Delta) []byte {
	if d.Finishes == 0 && !d.HasUsage && !(d.Kind == KindCall && d.calling()) {
		return nil
	}
	return frame(later(withText(ev.Data, ""), f.a.o.Sink.identity()))
}

// withText replaces the first choice's text.
func withText(data []byte, text string) []byte {
	path := "choices.0.delta.content"
	if _, ok := valueAt(data, path); !ok {
		path = "choices.0.text" // legacy completions
	}
	return with(data, path, text)
}

// identified is an event with the identity that the client knows.
func identified(data []byte, id Identity) []byte {
	var list []splice
	if id.ID != "" {
		list = changes(data, "id", []byte(id.ID))
	}
	if id.Created != "" {
		list = append(list, changes(data, "created", []byte(id.Created))...)
	}
	return spliced(data, list)
}

// later is an event that follows others: with their identity, and without a role.
func later(data []byte, id Identity) []byte {
	if v := gjson.GetBytes(data, "choices.0.delta"); v.IsObject() && v.Get("role").Exists() {
		delta := []byte{'{'}
		v.ForEach(func(k, f gjson.Result) bool {
			if k.Str != "role" {
				delta = appendField(delta, k.Str, []byte(f.Raw))
			}
			return true
		})
		data = with(data, "choices.0.delta", append(delta, '}'))
	}
	return identified(data, id)
}

// textEvent is a chunk with nothing but text, of the same model as another.
func textEvent(like []byte, text string, id Identity) []byte {
	model := gjson.GetBytes(like, "model").Raw
	if model == "" {
		model = `""`
	}
	return identified([]byte(`{"id":"","object":"chat.completion.chunk","created":0,"model":`+model+
		`,"choices":[{"index":0,"delta":{"content":`+string(transcript.String(text))+`},"finish_reason":null}]}`), id)
}
