package stream

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// wholeCall is one call of a complete message. It consists of parts of the answer,
// and is valid as long as that is.
type wholeCall struct {
	recovery.DraftCall
	raw   []byte // nil: it is not of a list, but a function_call
	value bool   // the arguments are no string
}

// Each element of a message's list is a call. They are more than maxCalls where there
// are too many. odd means that clients read something else.
func (Chat) wholeCalls(d *Delta) (list []wholeCall, odd bool) {
	var doc transcript.Document
	if len(d.calls) > 0 && d.calls[0] == '[' {
		c, ok := doc.Open(d.calls, maxDepth)
		for ok && len(list) <= maxCalls && c.Next() {
			list = append(list, readCall(&c))
			odd = odd || list[len(list)-1].value
		}
	}
	if len(list) == 0 && isObject(d.function) && !isEmpty(d.function) {
		var f callee
		c, _ := doc.Open(d.function, maxDepth)
		f.fields(&c)
		list = append(list, f.called(wholeCall{DraftCall: recovery.DraftCall{Kind: transcript.KindFunction}}))
		odd = list[0].value
	}
	return list, odd
}

// list reads the current value, which is the list of calls of a complete message,
// in passing, and returns it.
func (d *Delta) list(fields *transcript.Cursor) []byte {
	c, ok := fields.Enter()
	if !ok {
		return fields.Value()
	}
	for c.Next() {
		if len(d.drafts) <= maxCalls {
			call := readCall(&c)
			d.drafts, d.odd = append(d.drafts, call.DraftCall), d.odd || call.value
		}
	}
	raw := fields.Leave(c)
	if len(raw) == 0 || raw[0] != '[' {
		d.drafts, d.odd = d.drafts[:0], false
	}
	return raw
}

// readCall reads the current value of a list. Of fields that occur twice the first counts.
func readCall(list *transcript.Cursor) (e wholeCall) {
	c, ok := list.Enter()
	if !ok {
		return wholeCall{DraftCall: recovery.DraftCall{Kind: transcript.KindFunction}, raw: list.Value()}
	}
	var id, kind []byte
	var function, custom callee
	for c.Next() {
		switch string(c.Name()) {
		case "id":
			first(&id, &c)
		case "type":
			first(&kind, &c)
		case "function":
			function.read(&c)
		case "custom":
			custom.read(&c)
		}
	}
	e.raw = list.Leave(c)
	e.ID, e.Kind = str(id), str(kind)
	if function.raw == nil && isObject(custom.raw) {
		e.Kind, function = "custom", custom
	}
	if e.Kind == "" {
		e.Kind = transcript.KindFunction
	}
	return function.called(e)
}

// callee is what a call calls.
type callee struct{ raw, name, arguments, input []byte }

// read reads the current value, if it is the first of its name.
func (f *callee) read(c *transcript.Cursor) {
	if f.raw != nil {
		return
	}
	inner, ok := c.Enter()
	if !ok {
		f.raw = c.Value()
		return
	}
	f.fields(&inner)
	f.raw = c.Leave(inner)
}

func (f *callee) fields(c *transcript.Cursor) {
	for c.Next() {
		switch string(c.Name()) {
		case "name":
			first(&f.name, c)
		case "arguments":
			first(&f.arguments, c)
		case "input":
			first(&f.input, c)
		}
	}
}

// called is the call of it.
func (f *callee) called(e wholeCall) wholeCall {
	v := f.arguments
	if e.Kind == "custom" {
		v = f.input
	}
	e.Name, e.value = str(f.name), len(v) > 0 && (v[0] == '{' || v[0] == '[')
	if e.value {
		e.Arguments = seen(v)
	} else {
		e.Arguments = str(v)
	}
	return e
}

// first sets v to the current value, unless there was one.
func first(v *[]byte, c *transcript.Cursor) {
	if *v == nil {
		*v = c.Value()
	}
}

// str is a string's text, as textOf; of any other value what gjson makes a string of.
func str(v []byte) string {
	if len(v) == 0 || isString(v) {
		return textOf(v)
	}
	return gjson.ParseBytes(v).String()
}

// own takes over the calls of a complete message, as copies.
func (s *calls) own(list []wholeCall) {
	for i := range list {
		e := &list[i]
		s.odd, s.legacy = s.odd || e.value, e.raw == nil
		s.list = append(s.list, &call{raw: string(e.raw), value: e.value, DraftCall: recovery.DraftCall{
			ID: strings.Clone(e.ID), Kind: strings.Clone(e.Kind), Name: strings.Clone(e.Name), Arguments: strings.Clone(e.Arguments)}})
	}
}

// drafts are the calls of a complete message for a judgement.
func (s *calls) drafts() []recovery.DraftCall {
	var out []recovery.DraftCall
	for _, c := range s.list {
		out = append(out, c.DraftCall)
	}
	return out
}
