package stream

import (
	"bytes"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// neutral is a finish reason of the wire in neutral words.
func neutral(reason string) recovery.Finish {
	switch reason {
	case "tool_calls", "function_call":
		return recovery.FinishCalls
	case "content_filter":
		return recovery.FinishFilter
	}
	return recovery.Finish(reason)
}

// finishIn is neutral of a finish reason as it stands in an answer.
func finishIn(raw []byte) recovery.Finish {
	switch string(raw) { // the usual ones need no memory
	case `"stop"`:
		return recovery.FinishStop
	case `"tool_calls"`:
		return recovery.FinishCalls
	}
	return neutral(transcript.Text(raw))
}

// wireFinish is the opposite of neutral.
func wireFinish(f recovery.Finish, legacy bool) string {
	switch f {
	case recovery.FinishCalls:
		if legacy {
			return "function_call"
		}
		return "tool_calls"
	case recovery.FinishFilter:
		return "content_filter"
	}
	return string(f)
}

// rewriting replaces the calls, the text or the end in a stretch of a stream.
type rewriting struct {
	calls  []*call
	text   *string // nil leaves it
	finish recovery.Finish
	legacy bool   // calls go out as function_call
	shown  string // text that the client has, before the stretch

	out     []byte
	emitted bool // the calls are out
	said    bool // the text is
}

// What is new is made in the likeness of the event in whose place it comes: the same
// fields around one choice, one event for each call.
func (Chat) rewrite(events []byte, w *rewriting) []byte {
	eachEvent(events, func(ev *Event) { w.event(*ev) })
	return w.out
}

func (w *rewriting) event(ev Event) {
	choice := gjson.GetBytes(ev.Data, "choices.0")
	if !ev.HasData || !choice.IsObject() {
		w.out = append(w.out, ev.Raw...)
		return
	}
	delta := choice.Get("delta")
	called := hasCalls(delta) || hasCalls(choice.Get("message"))
	content := delta.Get("content")
	said := w.text != nil && content.Type == gjson.String && content.Str != ""
	reason := choice.Get("finish_reason")
	ends := reason.Type == gjson.String && reason.Str != ""
	if !called && !said && !ends {
		w.out = append(w.out, ev.Raw...)
		return
	}
	data := bytes.Clone(ev.Data) // its bytes are the reader's
	rest, speaks := w.rest(delta, said)
	switch {
	case called && !w.emitted && len(w.calls) > 0:
		if w.text != nil && !w.said && !said {
			w.say(data)
		}
		w.call(data, rest)
	case called || said:
		if speaks || delta.Get("role").Exists() {
			w.chunk(data, rest, "null", false)
		}
	case speaks && w.pending():
		w.chunk(data, rest, "null", false)
	case speaks:
		w.end(ev, data, rest, reason)
		return
	}
	if !ends {
		return
	}
	if w.text != nil && !w.said {
		w.say(data)
	}
	if !w.emitted {
		w.call(data, nil)
	}
	if called || said || speaks {
		w.end(ev, data, nil, reason)
		return
	}
	w.end(ev, data, rest, reason)
}

// pending reports whether something has to come before the end.
func (w *rewriting) pending() bool {
	return len(w.calls) > 0 && !w.emitted || w.text != nil && !w.said && *w.text != ""
}

// end writes an event with a finish reason: as it came, where it has to say
// nothing else.
func (w *rewriting) end(ev Event, data, rest []byte, reason gjson.Result) {
	raw := []byte(reason.Raw)
	if w.finish != recovery.FinishNone {
		raw = transcript.String(wireFinish(w.finish, w.legacy))
	}
	if rest == nil {
		w.chunk(data, nil, string(raw), true)
		return
	}
	if string(raw) == reason.Raw {
		w.out = append(w.out, ev.Raw...)
	} else {
		w.out = append(w.out, frame(with(data, "choices.0.finish_reason", raw))...)
	}
}

// rest is a delta without its calls and with the new text, as the inside of an
// object; speaks is false where nothing of it says anything.
func (w *rewriting) rest(delta gjson.Result, said bool) (rest []byte, speaks bool) {
	rest = []byte{}
	if !delta.IsObject() {
		return rest, false
	}
	delta.ForEach(func(k, v gjson.Result) bool {
		raw := v.Raw
		switch k.Str {
		case "tool_calls", "function_call":
			return true
		case "content":
			if said {
				text := ""
				if !w.said {
					text, w.said = *w.text, true
				}
				raw = string(transcript.String(text))
				speaks = speaks || text != ""
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

// say writes the new text as an event of its own.
func (w *rewriting) say(like []byte) {
	if w.said = true; *w.text != "" {
		w.chunk(like, append([]byte(`"content":`), transcript.String(*w.text)...), "null", false)
	}
}

// call writes the calls; the first one together with the rest of a delta.
func (w *rewriting) call(like, rest []byte) {
	w.emitted = true
	for i, c := range w.calls {
		inside := bytes.Clone(rest)
		rest = nil
		if len(inside) > 0 {
			inside = append(inside, ',')
		}
		if w.legacy {
			inside = append(c.appendFunction(append(inside, `"function_call":`...)), '}')
			w.chunk(like, inside, "null", false)
			return // there can be no other
		}
		inside = append(inside, `"tool_calls":[{"index":`...)
		inside = strconv.AppendInt(inside, int64(i), 10)
		inside = append(c.appendFields(append(inside, ',')), `}]`...)
		w.chunk(like, inside, "null", false)
		if i == 0 && len(w.calls) > 1 {
			like = lean(like) // the rest of the event is for the client once
		}
	}
}

// lean is an event without its large fields, for more events in its likeness.
func lean(like []byte) []byte {
	const large = 256
	out := []byte{'{'}
	gjson.ParseBytes(like).ForEach(func(k, v gjson.Result) bool {
		raw := v.Raw
		if k.Str == "choices" {
			raw = `[{"index":` + strconv.FormatInt(v.Get("0.index").Int(), 10) + `}]`
		}
		if len(k.Raw)+len(raw) > large {
			return true
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, k.Raw...), ':'), raw...)
		return true
	})
	return append(out, '}')
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

// appendFunction appends a function up to its last brace.
func (c *call) appendFunction(b []byte) []byte {
	b = transcript.AppendString(append(b, `{"name":`...), c.Name)
	b = transcript.AppendString(append(b, `,"arguments":`...), c.Arguments)
	return c.inner.appendTo(b)
}

// chunk writes an event with this inside of a delta, and all else as in another
// event. Only the end has what an end has: usage, and its own fields.
func (w *rewriting) chunk(like, inside []byte, reason string, last bool) {
	out := make([]byte, 0, len(like)+len(inside)+64)
	comma := func() {
		if n := len(out); out[n-1] != '{' {
			out = append(out, ',')
		}
	}
	out = append(out, '{')
	gjson.ParseBytes(like).ForEach(func(k, v gjson.Result) bool {
		switch {
		case k.Str == "choices":
			comma()
			out = append(append(out, k.Raw...), `:[{`...)
			v.Get("0").ForEach(func(k, v gjson.Result) bool {
				raw := v.Raw
				switch {
				case k.Str == "delta", k.Str == "message", k.Str == "finish_reason":
					return true
				case k.Str != "index" && !last && v.Type != gjson.Null:
					return true
				}
				comma()
				out = append(append(append(out, k.Raw...), ':'), raw...)
				return true
			})
			comma()
			out = append(append(append(out, `"delta":{`...), inside...), `},"finish_reason":`...)
			out = append(append(out, reason...), `}]`...)
			return true
		case k.Str == "usage" && !last && v.Type != gjson.Null:
			return true
		}
		comma()
		out = append(append(append(out, k.Raw...), ':'), v.Raw...)
		return true
	})
	w.out = append(w.out, frame(append(out, '}'))...)
}
