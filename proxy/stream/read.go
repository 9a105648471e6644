package stream

import (
	"bytes"
	"slices"
	"unsafe"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// read validates an answer or chunk and sets d to its meaning, in one pass. message is the name of a
// choice's content field. known is the likely identity, or nil if the identity is not needed.
func (d *Delta) read(data []byte, message string, known *Identity) {
	*d = Delta{}
	var doc transcript.Document
	failed := false
	d.foreign = true
	top, ok := doc.Open(data, maxDepth)
	for ok && top.Next() {
		switch string(top.Name()) {
		case "id":
			if v := top.Value(); known != nil && !isEmpty(v) { // an empty id occurs in content filter results, which may come first
				d.ID.ID = same(known.ID, v)
			}
		case "created":
			if v := top.Value(); known != nil && !isEmpty(v) {
				d.ID.Created = same(known.Created, v)
			}
		case "choices":
			d.foreign = !d.choices(&top, message)
		case "usage":
			d.HasUsage = false // it precedes the usage in other places
			d.used(top.Value())
		case "x_groq":
			d.used([]byte(gjson.GetBytes(top.Value(), "usage").Raw))
		case "error":
			v := top.Value()
			failed = failed || !isEmpty(v)
		case "object", "type":
			v := top.Value()
			failed = failed || textOf(v) == "error"
		case "obfuscation": // OpenAI's: it gives all events the same length
			if v := top.Value(); isString(v) {
				d.padding = v
			}
		}
	}
	if ok && !doc.End(top) || !doc.Valid() {
		*d = Delta{Kind: KindNoise}
		return
	}
	if d.Kind == KindCut && (failed || d.faulty) {
		d.Kind = KindError // the error is more specific
	}
	if failed && d.Finishes == 0 && d.Kind != KindCall && d.Kind != KindText {
		d.Kind = KindError
	}
}

// same returns raw as a string, without an allocation if it equals known.
func same(known string, raw []byte) string {
	if known == string(raw) {
		return known
	}
	return string(raw)
}

// choices reads all choices, and reports whether they are an array.
func (d *Delta) choices(top *transcript.Cursor, message string) bool {
	list, ok := top.Enter()
	if !ok {
		return false
	}
	for list.Next() {
		d.Choices++
		if c, ok := list.Enter(); ok {
			d.choice(&c, message)
			list.Leave(c)
		}
	}
	all := top.Leave(list)
	return len(all) > 0 && all[0] == '['
}

// choice reads one choice.
func (d *Delta) choice(c *transcript.Cursor, message string) {
	index, finishes, limited := 0, d.Finishes, false
	for c.Next() {
		if string(c.Name()) == message {
			d.content(c)
			continue
		}
		switch string(c.Name()) {
		case "index":
			index = count(c.Value())
			d.Several = d.Several || index > 0
		case "logprobs":
			d.Several = !isNull(c.Value()) || d.Several
		case "finish_reason":
			switch v := c.Value(); {
			case noReason(v):
			case breaks(textOf(v)):
				d.raise(KindCut)
			default:
				d.Finishes++
				d.finish = finishIn(v)
				d.Truthful = d.Truthful || d.finish == recovery.FinishLength || d.finish == recovery.FinishFilter
			}
		case "native_finish_reason": // OpenRouter: that of the provider. A call that the limit cut is "tool_calls" beside it
			limited = finishIn(c.Value()) == recovery.FinishLength
		case "usage": // Moonshot's
			d.used(c.Value())
		case "error":
			v := c.Value()
			d.faulty = d.faulty || !isEmpty(v)
		case "text": // legacy completions
			if v := c.Value(); isString(v) && !isEmpty(v) {
				d.text(v)
			}
		}
	}
	if d.Finishes > finishes {
		d.over |= 1 << min(index, 63)
		if limited {
			d.finish, d.Truthful = recovery.FinishLength, true
		}
	}
}

// used records usage, unless there was some.
func (d *Delta) used(v []byte) {
	if isObject(v) && !d.HasUsage {
		d.HasUsage, d.Usage = true, usageOf(gjson.Parse(viewString(v)))
	}
}

// content reads a choice's delta or message.
func (d *Delta) content(c *transcript.Cursor) {
	fields, ok := c.Enter()
	if !ok {
		d.field(nil, c.Value())
		return
	}
	for fields.Next() {
		d.field(fields.Name(), fields.Value())
	}
	d.Several = d.Several || d.message != nil // JSON parsers differ in which of two they use
	d.message = c.Leave(fields)
}

// field reads one field of a delta or message. Every field that is not empty is meaningful, except the
// role, ids, MiniMax's name, and Groq's channel.
func (d *Delta) field(name, v []byte) {
	switch {
	case d.Choices > 1:
	case string(name) == "tool_calls" && d.calls == nil:
		d.calls = v
	case string(name) == "function_call" && d.function == nil:
		d.function = v
	}
	if isEmpty(v) {
		return
	}
	switch string(name) {
	case "role", "annotations", "reasoning_id", "id", "name", "channel":
	case "content":
		switch {
		case isString(v):
			d.text(v)
		case v[0] == '[' && thinks(gjson.ParseBytes(v)):
			d.reasons = true
			d.raise(KindReasoning)
		default:
			d.raise(KindCall) // a list of parts: passed on, never repeated
		}
	case "reasoning", "reasoning_content", "reasoning_text", "thinking":
		d.reasons = true
		if isString(v) && d.reasoning == nil && d.Choices == 1 {
			d.reasoning = v
		}
		if isObject(v) || v[0] == '[' {
			d.raise(KindCall)
		} else {
			d.raise(KindReasoning)
		}
	case "reasoning_details", "thinking_blocks":
		d.reasons = true
		if signed(gjson.ParseBytes(v)) {
			d.raise(KindCall)
		} else {
			d.raise(KindReasoning)
		}
	default:
		d.raise(KindCall)
	}
}

// text records a string of text. If an event has two, clients differ in which one they use.
func (d *Delta) text(v []byte) {
	d.raise(KindText)
	if d.texts != nil {
		d.Several = true
		return
	}
	d.Text, d.texts = textOf(v), v
}

func (d *Delta) raise(k Kind) { d.Kind = max(d.Kind, k) }

// first sets v to the current value, unless it is already set.
func first(v *[]byte, c *transcript.Cursor) {
	if *v == nil {
		*v = c.Value()
	}
}

// The following functions take valid JSON values or empty slices.

// textOf returns the text of a string, or "" for any other value. Without escapes the result shares
// v's memory.
func textOf(v []byte) string {
	if !isString(v) || bytes.IndexByte(v, '\\') >= 0 {
		return transcript.Text(v)
	}
	return viewString(v[1 : len(v)-1])
}

// viewString returns a string that shares v's memory.
func viewString(v []byte) string { return unsafe.String(unsafe.SliceData(v), len(v)) }

func isNull(v []byte) bool   { return len(v) > 0 && v[0] == 'n' }
func isString(v []byte) bool { return len(v) > 0 && v[0] == '"' }
func isObject(v []byte) bool { return len(v) > 0 && v[0] == '{' }

// isEmpty reports whether a value is null, false, "", {}, [] or missing.
func isEmpty(v []byte) bool {
	switch {
	case len(v) == 0:
		return true
	case v[0] == 'n', v[0] == 'f':
		return true
	case v[0] == '"':
		return len(v) == 2
	case v[0] == '{', v[0] == '[':
		next := bytes.TrimLeft(v[1:], " \t\r\n")[0]
		return next == '}' || next == ']'
	}
	return false
}

// signed reports whether reasoning has a signature or is encrypted: the provider accepts it back only
// unchanged, so it cannot be replaced.
func signed(v gjson.Result) bool {
	return slices.ContainsFunc(append(v.Get("#.signature").Array(), v.Get("#.data").Array()...), func(s gjson.Result) bool { return s.Str != "" })
}

// thinks reports whether a list of parts is thinking, as Mistral sends it.
func thinks(v gjson.Result) bool {
	return !slices.ContainsFunc(v.Array(), func(part gjson.Result) bool { return part.Get("type").Str != "thinking" })
}

// empty is isEmpty for a gjson result.
func empty(v gjson.Result) bool { return isEmpty([]byte(v.Raw)) }
