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
	raw   string // "": it is not of a list, but a function_call
	value bool   // the arguments are no string
}

// Each element of a message's list is a call. They are more than maxCalls where there
// are too many. odd means that clients read something else.
func (Chat) wholeCalls(d *Delta) (list []wholeCall, odd bool) {
	if calls := gjson.Parse(seen(d.calls)); calls.IsArray() {
		calls.ForEach(func(_, v gjson.Result) bool {
			list = append(list, callIn(v))
			odd = odd || list[len(list)-1].value
			return len(list) <= maxCalls
		})
	}
	if len(list) == 0 && isObject(d.function) && !isEmpty(d.function) {
		list = append(list, wholeCall{}.of(gjson.Parse(seen(d.function))))
		odd = list[0].value
	}
	return list, odd
}

// callIn is the call that an element of a list is. Of fields that occur twice the first counts.
func callIn(v gjson.Result) wholeCall {
	c := wholeCall{raw: v.Raw}
	if !v.IsObject() {
		return c.of(gjson.Result{})
	}
	c.ID, c.Kind = v.Get("id").String(), v.Get("type").String()
	f := v.Get("function")
	if !f.Exists() && v.Get("custom").IsObject() {
		c.Kind, f = "custom", v.Get("custom")
	}
	return c.of(f)
}

// of is the call of what stands in its function.
func (c wholeCall) of(f gjson.Result) wholeCall {
	field := "arguments"
	switch c.Kind {
	case "":
		c.Kind = transcript.KindFunction
	case "custom":
		field = "input"
	}
	if !f.IsObject() {
		return c
	}
	v := f.Get(field)
	c.Name, c.value = f.Get("name").String(), v.IsObject() || v.IsArray()
	c.Arguments = v.String()
	return c
}

// own takes over the calls of a complete message, as copies.
func (s *calls) own(list []wholeCall) {
	for i := range list {
		e := &list[i]
		s.odd, s.legacy = s.odd || e.value, e.raw == ""
		s.list = append(s.list, &call{raw: strings.Clone(e.raw), value: e.value, DraftCall: recovery.DraftCall{
			ID: strings.Clone(e.ID), Kind: strings.Clone(e.Kind), Name: strings.Clone(e.Name), Arguments: strings.Clone(e.Arguments)}})
	}
}
