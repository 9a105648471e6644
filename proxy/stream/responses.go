package stream

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Responses is the format of the Responses API. Its events name the item of the output, and the part
// of it, that they belong to; the last event has the whole response.
type Responses struct{}

var _ Format = Responses{}

// item is the part of an event of a response that concerns an item of the output.
type item struct {
	event eventKind
	index int    // output_index, -1 without one
	raw   []byte // the item, if the event has it
	part  []byte // the part of an item, if the event has it
	piece []byte // a string: the new piece
	full  []byte // a string: the complete text of the pieces
	whole []byte // the output, if its items come only in the last event
	call  bool   // the item is a call that the client runs; it waits until the response has ended
}

// eventKind is a type of event, as far as this package distinguishes them.
type eventKind uint8

const (
	eventOther    eventKind = iota
	eventCreated            // the response begins
	eventProgress           // the response is queued or in progress
	eventAdded              // an item begins
	eventPart               // a part of an item begins or ends
	eventPiece              // text, or arguments of a call
	eventFull               // the complete text of the pieces
	eventDone               // an item ends
	eventEnd                // the response ends
)

// Decode reads one event.
func (Responses) Decode(ev *Event, known *Known) *Delta {
	return known.decode(ev, (*Delta).event, eventFields[:], `"response.`)
}

// eventFields are the first fields of events.
var eventFields = [...]string{"type", "sequence_number", "response", "item", "item_id", "output_index", "content_index", "summary_index", "delta", "part", "text", "event_id"}

// event reads an event. name is used if the data has no type. It returns false if data is not JSON.
func (d *Delta) event(data []byte, name string, known *Known) bool {
	*d = Delta{Choices: 1, item: item{index: -1}}
	var doc transcript.Document
	var kind, response, fault []byte
	part := 0
	top, ok := doc.Open(data, maxDepth)
	for ok && top.Next() {
		switch string(top.Name()) {
		case "type":
			first(&kind, &top)
		case "sequence_number":
			d.seq = count(top.Value())
		case "output_index":
			d.item.index = count(top.Value())
		case "content_index":
			part = count(top.Value())
		case "delta":
			first(&d.item.piece, &top)
		case "text", "arguments", "input":
			first(&d.item.full, &top)
		case "item":
			first(&d.item.raw, &top)
		case "part":
			first(&d.item.part, &top)
		case "response":
			first(&response, &top)
		case "error":
			first(&fault, &top)
		}
	}
	if !ok || !doc.End(top) || !doc.Valid() {
		return false
	}
	if v := textOf(kind); v != "" {
		name = v
	}
	switch kind, found := strings.CutPrefix(name, "response."); {
	case name == "error", !found && !isEmpty(fault):
		d.Kind = KindError
	case found:
		d.means(kind, response, known)
		if d.Kind == KindText {
			at := d.item.index<<16 + part
			if !known.said {
				known.part = at
			}
			d.apart = known.part != at
		}
		known.said = known.said || d.Kind == KindText || d.Kind == KindCall
	}
	return true
}

// means sets the meaning of an event with this type, given without "response.".
func (d *Delta) means(kind string, response []byte, known *Known) {
	it := &d.item
	switch kind {
	case "output_text.delta":
		it.event = eventPiece
		if isString(it.piece) && !isEmpty(it.piece) {
			d.text(it.piece)
		}
		d.ID = known.ID
	case "function_call_arguments.delta", "custom_tool_call_input.delta":
		it.event, it.call, d.Kind = eventPiece, true, KindCall
	case "function_call_arguments.done", "custom_tool_call_input.done":
		it.event, it.call, d.Kind = eventFull, true, KindCall
	case "reasoning_summary_text.delta", "reasoning_text.delta":
		it.event, d.frame, d.reasons = eventPart, true, true
		if isString(it.piece) && !isEmpty(it.piece) {
			d.Kind, d.reasoning = KindReasoning, it.piece
		}
	case "reasoning_summary_part.added", "reasoning_summary_part.done", "reasoning_summary_text.done", "reasoning_text.done", "content_part.added", "content_part.done":
		if it.event, d.frame = eventPart, true; kind == "content_part.done" {
			d.atOnce(gjson.GetBytes(it.part, "text").Str, known)
		}
	case "output_text.done":
		it.event, d.frame, d.ends = eventFull, true, true
		d.atOnce(textOf(it.full), known)
	case "refusal.delta":
		if it.event = eventPiece; !isEmpty(it.piece) {
			d.Kind = KindCall
		}
	case "output_item.added", "output_item.done":
		it.event, d.frame = eventAdded, true
		if kind == "output_item.done" {
			it.event = eventDone
		}
		d.itemOf(known)
	case "created":
		it.event, d.frame = eventCreated, true
		d.ID.ID = same(known.ID.ID, []byte(gjson.GetBytes(response, "id").Raw))
		known.ID = d.ID
	case "in_progress", "queued":
		it.event = eventProgress
	case "completed", "incomplete", "cancelled", "done":
		it.event = eventEnd
		d.ID = known.ID
		if output := d.whole(response); d.Kind == KindNothing && !known.said {
			if d.output(output) {
				d.item.call, d.item.whole = true, []byte(output.Raw)
			}
			if d.Kind == KindText { // it came without pieces
				d.Kind = KindCall
			}
		}
		if known.called && d.finish == recovery.FinishStop {
			d.finish = recovery.FinishCalls
		}
	case "failed":
		d.Kind, d.fault = KindError, faultOf(response)
	default:
		for name, what := range hosted {
			if rest, ok := strings.CutPrefix(kind, name); ok && rest != "" && (rest[0] == '.' || rest[0] == '_') {
				d.Kind = what
			}
		}
	}
}

// hosted are the calls of tools that run at the provider. Those that only read can be repeated.
var hosted = map[string]Kind{
	"web_search_call": KindReasoning, "file_search_call": KindReasoning, "mcp_list_tools": KindReasoning, "tool_search_call": KindReasoning,
	"mcp_call": KindCall, "code_interpreter_call": KindCall, "image_generation_call": KindCall,
}

// maxItems limits the item ids that are kept of one response.
const maxItems = 1000

// itemOf sets the meaning of an item's beginning or end.
func (d *Delta) itemOf(known *Known) {
	it, done := &d.item, d.item.event == eventDone
	kind := gjson.GetBytes(it.raw, "type").Str
	if id := gjson.GetBytes(it.raw, "id").Str; known.keeps && done && id != "" && len(known.items) < maxItems {
		known.items = append(known.items, strings.Clone(id))
	}
	switch kind {
	case "reasoning":
		d.reasons = done
	case "message":
		d.ends = done
		if done {
			d.atOnce(textIn(gjson.GetBytes(it.raw, "content")), known)
		}
	case "function_call", "custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call", "computer_call":
		it.call, d.Kind = true, KindCall
		known.called = known.called || kind == "function_call" || kind == "custom_tool_call"
	default:
		if what, ok := hosted[kind]; ok {
			d.Kind = what
		} else if done {
			d.Kind = KindCall
		}
	}
}

// atOnce records text of a server that sends no pieces.
func (d *Delta) atOnce(text string, known *Known) {
	if !known.said && text != "" {
		d.Kind, d.Text = KindCall, text
	}
}

// output reads the items of a complete response; called reports whether one is a call that is judged.
func (d *Delta) output(list gjson.Result) (called bool) {
	texts := 0
	list.ForEach(func(_, v gjson.Result) bool {
		switch v.Get("type").Str {
		case "reasoning":
			d.reasons = true
			for _, path := range [...]string{"summary.0.text", "content.0.text"} {
				if t := v.Get(path); d.reasoning == nil && t.Type == gjson.String && t.Str != "" {
					d.reasoning = []byte(t.Raw)
				}
			}
		case "message":
			v.Get("content").ForEach(func(_, part gjson.Result) bool {
				if t := part.Get("text").Str; t != "" {
					if texts++; texts > 1 {
						t = d.Text + t
					}
					d.Kind, d.Text = max(d.Kind, KindText), t
				} else if part.Get("refusal").Str != "" {
					d.Kind = KindCall
				}
				return true
			})
		case "function_call", "custom_tool_call":
			d.Kind, called = KindCall, true
			if d.finish == recovery.FinishStop {
				d.finish = recovery.FinishCalls
			}
		default:
			d.Kind, d.ran = KindCall, d.ran || hosted[v.Get("type").Str] != KindReasoning
		}
		return true
	})
	d.apart = texts > 1
	return called
}

// textIn returns all text of a message's content, including refusals.
func textIn(content gjson.Result) (text string) {
	content.ForEach(func(_, part gjson.Result) bool {
		text += part.Get("text").Str + part.Get("refusal").Str
		return true
	})
	return text
}

// whole reads a complete response except its output, which it returns.
func (d *Delta) whole(response []byte) (output gjson.Result) {
	status, failed := "", false
	gjson.Parse(viewString(response)).ForEach(func(k, v gjson.Result) bool {
		switch k.Str {
		case "id":
			d.ID.ID = same(d.ID.ID, []byte(v.Raw))
		case "status":
			status = v.Str
		case "error":
			failed = !empty(v)
		case "output":
			output = v
		case "incomplete_details":
			d.finish = finishIn([]byte(v.Get("reason").Raw))
		case "usage":
			if v.IsObject() {
				d.HasUsage, d.Usage = true, usageOf(v)
			}
		}
		return true
	})
	switch {
	case status == "failed", failed && status != "incomplete":
		d.Kind, d.fault = KindError, faultOf(response)
		return output
	case breaks(string(d.finish)):
		d.Kind = KindCut
		return output
	case status == "queued", status == "in_progress": // a background response
		d.Kind = KindCall
	case status != "completed" && status != "":
		d.Truthful = true
	}
	d.Finishes = 1
	if d.finish == recovery.FinishNone {
		d.finish = recovery.FinishStop
	}
	return output
}

// faultOf returns the error of a failed response as an error body, or nil.
func faultOf(response []byte) []byte {
	v := gjson.GetBytes(response, "error")
	if empty(v) {
		return nil
	}
	return append(append([]byte(`{"error":`), v.Raw...), '}')
}

// DecodeWhole reads a complete response.
func (Responses) DecodeWhole(body []byte) (d Delta) {
	d.item.index = -1
	if body = wholeObject(body); body == nil {
		return Delta{Kind: KindNoise}
	}
	output := d.whole(body)
	switch {
	case d.Kind == KindError, d.Kind == KindCut:
		var before Delta
		if before.output(output); before.ran {
			d.Kind = KindCall // the client gets it as it is
		}
		return d
	case !output.IsArray():
		if d.foreign = true; !empty(gjson.GetBytes(body, "error")) {
			d.Kind = KindError
		}
		return d
	}
	d.Choices, d.message = 1, body
	d.calls = body[output.Index : output.Index+len(output.Raw)]
	d.output(output)
	return d
}

func (Responses) calls(_ []byte, d *Delta, s *calls) bool { return s.items(d, itemCall) }

// itemCall returns the call in an item, or nil if it is not a call that is judged.
func itemCall(v gjson.Result) *call {
	kind := v.Get("type").Str
	if !isCall(kind) {
		return nil
	}
	c := &call{raw: v.Raw}
	c.ID, c.Kind, c.Name = v.Get("call_id").Str, transcript.KindFunction, transcript.Qualified(v.Get("namespace").Str, v.Get("name").Str)
	arguments := v.Get("arguments")
	if kind == "custom_tool_call" {
		c.Kind, arguments = "custom", v.Get("input")
	}
	c.value = v.Get("arguments").IsObject()
	if c.Arguments = arguments.Str; arguments.IsObject() || arguments.IsArray() {
		c.Arguments = arguments.Raw
	}
	return c
}
