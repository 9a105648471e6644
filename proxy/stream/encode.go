package stream

import (
	"bytes"
	"cmp"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// encoder rewrites the answers of one format for one client. One goroutine uses it.
type encoder interface {
	// event appends the replacement of an event: with the changes of e, and with the identity and
	// numbers of the answer that the client has. ok is false if the client has other content at this
	// place.
	event(out []byte, ev *Event, d *Delta, e *edit) (_ []byte, ok bool)
	// whole returns the changes that e makes to a complete answer.
	whole(body []byte, e *edit) []transcript.Splice
	// blank returns an empty answer of the gateway's own.
	blank(c *Composition, streamed bool) []byte
	// identify returns the changes that give an event or a complete answer the gateway's identity
	// for a request, and that identity.
	identify(data []byte, request string) (list []transcript.Splice, id string)
	// finish returns the data of an event that gives all choices a finish reason, or nil in formats
	// that end differently.
	finish(id Identity, model []byte, choices int, reason recovery.Finish) []byte
	// end returns the end of a stream: an error event for failure, which is an error body, or if
	// failure is nil whatever must follow the last event.
	end(failure []byte) []byte
}

// edit describes changes to events or to a complete answer. The zero edit changes nothing.
type edit struct {
	before   string          // new text in front of the event
	text     *string         // replaces the text, once; nil keeps it
	shown    string          // text that the client already has, before the replaced text
	recall   bool            // calls replace the calls
	calls    []*call         // each replaces the call that it was made from
	had      int             // number of calls before the change
	nth      int             // number of calls that replacement has passed
	finish   recovery.Finish // replaces the finish reason; FinishNone keeps it
	unfinish bool            // removes the finish reason
	modern   bool            // calls that came as function_call are written as tool_calls
	only     bool            // the client has the whole text: only calls and the end are written
	usage    *recovery.Usage // replaces the usage; nil keeps it
}

// said marks the new text as written.
func (e *edit) said() { e.text = new(string) }

// encode returns a stretch of a stream with the changes of e; ok is false if these changes cannot be
// written.
func encode(f Format, events []byte, e *edit) (out []byte, ok bool) {
	enc, known := f.encoder(nil), new(Known)
	ok = true
	eachEvent(events, func(ev *Event) {
		if ok {
			out, ok = enc.event(out, ev, f.Decode(ev, known), e)
		}
	})
	return out, ok
}

// frame returns data as an event. Data with line breaks gets one data line each.
func frame(data []byte) []byte { return appendFrame(make([]byte, 0, len(data)+8), "", data) }

// appendFrame appends data as an event with a name; "" means no name.
func appendFrame(out []byte, name string, data []byte) []byte {
	if name != "" {
		out = append(append(append(out, "event: "...), name...), '\n')
	}
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		out = append(append(append(out, "data: "...), line...), '\n')
	}
	return append(out, '\n')
}

// spliced returns data with all splices, or data itself if they overlap, as with some duplicate names.
func spliced(data []byte, list []transcript.Splice) []byte {
	if out, err := transcript.Spliced(data, list); err == nil {
		return out
	}
	return data
}

// valueAt returns the position of a value.
func valueAt(data []byte, path string) (transcript.Splice, bool) {
	v := gjson.GetBytes(data, path)
	return transcript.Splice{Start: v.Index, End: v.Index + len(v.Raw)}, v.Exists() && v.Index > 0
}

// with returns data with the values at some paths replaced; missing paths are ignored.
func with(data []byte, pairs ...any) []byte { return spliced(data, changes(data, pairs...)) }

// changes returns the splices of with. Strings and numbers are encoded as JSON, bytes are inserted as
// they are.
func changes(data []byte, pairs ...any) (list []transcript.Splice) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if at, ok := valueAt(data, pairs[i].(string)); ok {
			at.Raw = transcript.AppendValue(nil, pairs[i+1])
			list = append(list, at)
		}
	}
	return list
}

// field returns the splice that sets a field of the object at path ("" is data itself). A new field is
// added at the end of the object, or with front at its beginning.
func field(data []byte, path, name string, value any, front bool) (s transcript.Splice, ok bool) {
	at := name
	object := gjson.ParseBytes(data)
	if path != "" {
		at, object = path+"."+name, gjson.GetBytes(data, path)
	}
	if s, ok = valueAt(data, at); ok {
		s.Raw = transcript.AppendValue(nil, value)
		return s, true
	}
	if !object.IsObject() {
		return s, false
	}
	begin := object.Index
	if path == "" {
		begin = bytes.IndexByte(data, '{')
	}
	pair := transcript.AppendField([]byte{'{'}, name, value)[1:]
	comma := !empty(object)
	if front {
		if comma {
			pair = append(pair, ',')
		}
		return transcript.Splice{Start: begin + 1, End: begin + 1, Raw: pair}, true
	}
	if comma {
		pair = append([]byte{','}, pair...)
	}
	close := begin + len(object.Raw) - 1
	return transcript.Splice{Start: close, End: close, Raw: pair}, true
}

// edit returns the changes of a verdict on the answer with these calls. function_call becomes
// tool_calls, see verdict.
func (s *calls) edit(v recovery.Verdict) edit {
	e := edit{text: v.Text, recall: true, calls: s.match(v.Calls), had: len(s.list), finish: v.Finish, modern: s.legacy}
	if e.modern && len(e.calls) > 0 {
		e.finish = cmp.Or(e.finish, recovery.FinishCalls)
	}
	return e
}

// replacement returns what replaces the next call of the answer, or nil if it is omitted.
func (e *edit) replacement() *call {
	n := e.nth
	e.nth++
	for _, c := range e.calls {
		if c.original != nil && c.original.index == n {
			return c
		}
	}
	return nil
}
