package stream

import (
	"slices"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

func (Responses) calls(_ []byte, d *Delta, s *calls) bool {
	it := &d.item
	s.fresh = s.fresh[:0]
	if s.whole {
		s.inOutput(d.calls)
		return len(s.list) > 0
	}
	if !it.call || s.over {
		return it.call
	}
	if it.event == eventEnd {
		s.inOutput(it.whole)
		return true
	}
	i := slices.IndexFunc(s.list, func(c *call) bool { return c.item == it.index })
	if it.event == eventAdded || it.event == eventDone {
		v := gjson.ParseBytes(it.raw)
		if !isCall(v.Get("type").Str) {
			return true // there is nothing to judge
		}
		if i < 0 {
			if s.over = len(s.list) >= maxCalls; s.over {
				return true
			}
			i = len(s.list)
			s.list = append(s.list, &call{item: it.index, index: i, numbered: true})
		}
		c := s.list[i]
		args := len(c.args)
		c.DraftCall, c.raw = draftOf(v), v.Raw
		if it.event == eventDone || args == 0 {
			c.args = []byte(c.Arguments)
			if args == 0 {
				s.fresh = append(s.fresh, c.args...)
			}
		}
		c.value = v.Get("arguments").IsObject()
		s.odd = s.odd || c.value
		return true
	}
	if i < 0 {
		return true
	}
	switch c := s.list[i]; it.event {
	case eventPiece:
		s.fresh = append(s.fresh, textOf(it.piece)...)
		c.args = append(c.args, s.fresh...)
	case eventFull:
		c.args = []byte(textOf(it.full))
	}
	return true
}

// inOutput adds the calls of a complete response, or those that came in no event before its end.
func (s *calls) inOutput(list []byte) {
	gjson.Parse(seen(list)).ForEach(func(i, v gjson.Result) bool {
		if !isCall(v.Get("type").Str) {
			return true
		}
		if s.over = s.over || len(s.list) >= maxCalls; s.over {
			return false
		}
		c := &call{DraftCall: draftOf(v), item: int(i.Int()), index: len(s.list), numbered: true, raw: v.Raw, value: v.Get("arguments").IsObject()}
		if !s.whole {
			c.args = []byte(c.Arguments)
		}
		s.odd = s.odd || c.value
		s.list = append(s.list, c)
		return true
	})
}

// draftOf is a call as an item.
func draftOf(v gjson.Result) recovery.DraftCall {
	c := recovery.DraftCall{ID: v.Get("call_id").Str, Kind: transcript.KindFunction, Name: transcript.Qualified(v.Get("namespace").Str, v.Get("name").Str)}
	arguments := v.Get("arguments")
	if v.Get("type").Str == "custom_tool_call" {
		c.Kind, arguments = "custom", v.Get("input")
	}
	if c.Arguments = arguments.Str; arguments.IsObject() || arguments.IsArray() {
		c.Arguments = arguments.Raw
	}
	return c
}
