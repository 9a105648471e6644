package stream

import (
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// script writes and numbers the events of a response.
type script struct {
	out []byte
	seq int // of the next event
}

// put writes an event with changes and with the output index of its item; a negative index keeps the
// old one.
func (s *script) put(ev *Event, index int, list ...transcript.Splice) {
	if at, ok := valueAt(ev.Data, "sequence_number"); ok {
		at.Raw = strconv.AppendInt(nil, int64(s.seq), 10)
		list = append(list, at)
	}
	if at, ok := valueAt(ev.Data, "output_index"); ok && index >= 0 {
		at.Raw = strconv.AppendInt(nil, int64(index), 10)
		list = append(list, at)
	}
	s.seq++
	s.out = appendFrame(s.out, string(ev.Name), spliced(ev.Data, list))
}

// say writes an event with a type and fields. Strings are encoded as JSON, bytes are inserted as they
// are.
func (s *script) say(kind string, fields ...any) {
	data := transcript.Object(append(append([]any{"type", kind}, fields...), "sequence_number", s.seq)...)
	s.seq++
	s.out = appendFrame(s.out, kind, data)
}

// itemKind returns the type of an item, itemID its id.
func itemKind(raw []byte) string { return gjson.GetBytes(raw, "type").Str }
func itemID(raw []byte) string   { return gjson.GetBytes(raw, "id").Str }

// message returns a message item.
func message(id, text string) []byte {
	return transcript.Object("id", id, "type", "message", "status", "completed", "role", "assistant", "content", transcript.List([][]byte{textPart(text)}))
}

func textPart(text string) []byte {
	return transcript.Object("type", "output_text", "annotations", []byte("[]"), "logprobs", []byte("[]"), "text", text)
}

// message writes the events of a complete message item with one text.
func (s *script) message(item []byte, index int) {
	id, text := itemID(item), gjson.GetBytes(item, "content.0.text").Str
	s.say("response.output_item.added", "output_index", index, "item", with(item, "status", "in_progress", "content", []byte("[]")))
	s.say("response.content_part.added", "item_id", id, "output_index", index, "content_index", 0, "part", textPart(""))
	if text != "" {
		s.text(id, index, text)
	}
	s.ends(item, index, stageOpen)
}

// text writes a piece of text.
func (s *script) text(id string, index int, text string) {
	s.say("response.output_text.delta", "item_id", id, "output_index", index, "content_index", 0, "delta", text, "logprobs", []byte("[]"))
}

// ends writes the events that end a message item, those after stage from.
func (s *script) ends(item []byte, index int, from stage) {
	id, part := itemID(item), gjson.GetBytes(item, "content.0")
	if from < stageText {
		s.say("response.output_text.done", "item_id", id, "output_index", index, "content_index", 0, "text", part.Get("text").Str, "logprobs", []byte("[]"))
	}
	if from < stagePart && part.Exists() {
		s.say("response.content_part.done", "item_id", id, "output_index", index, "content_index", 0, "part", []byte(part.Raw))
	}
	s.say("response.output_item.done", "output_index", index, "item", item)
}

// stage is how much of a message item's end was sent.
type stage uint8

const (
	stageOpen stage = iota
	stageText
	stagePart
	stageItem
)

// call writes the events of a complete call.
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
