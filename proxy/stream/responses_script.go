package stream

import (
	"bytes"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// script writes events of a response, one after the other, and numbers them.
type script struct {
	out []byte
	seq int // of the next event
}

// put writes an event with changes, as which item of the output it now belongs to;
// negative: to none, or to the same.
func (s *script) put(ev *Event, index int, list ...splice) {
	if at, ok := valueAt(ev.Data, "sequence_number"); ok {
		at.raw = strconv.AppendInt(nil, int64(s.seq), 10)
		list = append(list, at)
	}
	if at, ok := valueAt(ev.Data, "output_index"); ok && index >= 0 {
		at.raw = strconv.AppendInt(nil, int64(index), 10)
		list = append(list, at)
	}
	s.seq++
	data := spliced(ev.Data, list)
	if len(ev.Name) > 0 {
		s.out = append(append(append(s.out, "event: "...), ev.Name...), '\n')
	}
	s.out = append(s.out, frame(data)...)
}

// say writes an event of this type with these fields. Strings are made JSON, bytes are.
func (s *script) say(kind string, fields ...any) {
	data := appendField([]byte{'{'}, "type", kind)
	for i := 0; i+1 < len(fields); i += 2 {
		data = appendField(data, fields[i].(string), fields[i+1])
	}
	data = append(appendField(data, "sequence_number", s.seq), '}')
	s.seq++
	s.out = append(append(append(append(s.out, "event: "...), kind...), '\n'), frame(data)...)
}

// appendField appends a field to an object that is not closed yet.
func appendField(b []byte, name string, value any) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b = append(transcript.AppendString(b, name), ':')
	switch v := value.(type) {
	case string:
		return transcript.AppendString(b, v)
	case []byte:
		return append(b, v...)
	case int:
		return strconv.AppendInt(b, int64(v), 10)
	}
	return append(b, "null"...)
}

// valueAt is the place of a value, to be replaced.
func valueAt(data []byte, path string) (splice, bool) {
	v := gjson.GetBytes(data, path)
	return splice{start: v.Index, end: v.Index + len(v.Raw)}, v.Exists() && v.Index > 0
}

// with is data with the values at some paths replaced; what is not there stays away.
func with(data []byte, pairs ...any) []byte { return spliced(data, changes(data, pairs...)) }

func changes(data []byte, pairs ...any) (list []splice) {
	for i := 0; i+1 < len(pairs); i += 2 {
		at, ok := valueAt(data, pairs[i].(string))
		if !ok {
			continue
		}
		switch v := pairs[i+1].(type) {
		case string:
			at.raw = transcript.String(v)
		case []byte:
			at.raw = v
		case int:
			at.raw = strconv.AppendInt(nil, int64(v), 10)
		}
		list = append(list, at)
	}
	return list
}

// itemKind is the type of an item, itemID its id.
func itemKind(raw []byte) string { return gjson.GetBytes(raw, "type").Str }
func itemID(raw []byte) string   { return gjson.GetBytes(raw, "id").Str }

// joined is a list of items.
func listOf(items [][]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(items, []byte{','})...), ']')
}

// message is an item with text, as it is when its status is this.
func message(id, status string, text *string) []byte {
	b := appendField(appendField([]byte{'{'}, "id", id), "type", "message")
	b = appendField(appendField(b, "status", status), "role", "assistant")
	content := []byte("[]")
	if text != nil {
		content = append(append([]byte{'['}, textPart(*text)...), ']')
	}
	return append(appendField(b, "content", content), '}')
}

func textPart(text string) []byte {
	b := appendField([]byte(`{"type":"output_text","annotations":[],"logprobs":[]`), "text", text)
	return append(b, '}')
}

// message writes the events of an item with text.
func (s *script) message(id string, index int, text string) (item []byte) {
	s.say("response.output_item.added", "output_index", index, "item", message(id, "in_progress", nil))
	s.say("response.content_part.added", "item_id", id, "output_index", index, "content_index", 0, "part", textPart(""))
	if text != "" {
		s.text(id, index, text)
	}
	return s.ends(id, index, text, 0)
}

// text writes a piece of text.
func (s *script) text(id string, index int, text string) {
	s.say("response.output_text.delta", "item_id", id, "output_index", index, "content_index", 0, "delta", text, "logprobs", []byte("[]"))
}

// ends writes the end of an item with text, as far as it did not come.
func (s *script) ends(id string, index int, text string, from stage) (item []byte) {
	if from < stageText {
		s.say("response.output_text.done", "item_id", id, "output_index", index, "content_index", 0, "text", text, "logprobs", []byte("[]"))
	}
	if from < stagePart {
		s.say("response.content_part.done", "item_id", id, "output_index", index, "content_index", 0, "part", textPart(text))
	}
	item = message(id, "completed", &text)
	if from < stageItem {
		s.say("response.output_item.done", "output_index", index, "item", item)
	}
	return item
}

// stage is how far an item with text has ended.
type stage uint8

const (
	stageOpen stage = iota
	stageText
	stagePart
	stageItem
)

// call writes the events of a call that is complete.
func (s *script) call(item []byte, index int) {
	field, kind := "arguments", "response.function_call_arguments"
	if itemKind(item) == "custom_tool_call" {
		field, kind = "input", "response.custom_tool_call_input"
	}
	id, args := itemID(item), gjson.GetBytes(item, field).Str
	s.say("response.output_item.added", "output_index", index, "item", with(item, field, "", "status", "in_progress"))
	s.say(kind+".delta", "item_id", id, "output_index", index, "delta", args)
	s.say(kind+".done", "item_id", id, "output_index", index, "name", gjson.GetBytes(item, "name").Str, field, args)
	s.say("response.output_item.done", "output_index", index, "item", item)
}
