package stream

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

func (Responses) calls(_ []byte, d *Delta, s *calls) bool {
	it := &d.item
	s.fresh = s.fresh[:0]
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
		if kind := v.Get("type").Str; kind != "function_call" && kind != "custom_tool_call" {
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

// inOutput adds the calls of a response that came in no event before its end.
func (s *calls) inOutput(list []byte) {
	gjson.ParseBytes(list).ForEach(func(i, v gjson.Result) bool {
		if kind := v.Get("type").Str; kind == "function_call" || kind == "custom_tool_call" {
			if s.over = s.over || len(s.list) >= maxCalls; s.over {
				return false
			}
			c := &call{DraftCall: draftOf(v), item: int(i.Int()), index: len(s.list), numbered: true, raw: v.Raw, value: v.Get("arguments").IsObject()}
			c.args = []byte(c.Arguments)
			s.odd = s.odd || c.value
			s.list = append(s.list, c)
		}
		return true
	})
}

func (Responses) wholeCalls(d *Delta) (list []wholeCall, odd bool) {
	gjson.ParseBytes(d.calls).ForEach(func(_, v gjson.Result) bool {
		if kind := v.Get("type").Str; kind == "function_call" || kind == "custom_tool_call" {
			c := wholeCall{DraftCall: draftOf(v), raw: v.Raw, value: v.Get("arguments").IsObject()}
			list, odd = append(list, c), odd || c.value
		}
		return len(list) <= maxCalls
	})
	return list, odd
}

// itemFor is the item of a call of a verdict: that which it was made of with other
// values, or a new one.
func (c *call) itemFor() []byte {
	field := "arguments"
	if c.Kind == "custom" {
		field = "input"
	}
	if from := c.of; from != nil && from.raw != "" {
		raw := []byte(from.raw)
		list := changes(raw, "call_id", c.ID, field, c.Arguments)
		if c.Name != from.Name {
			name, space := c.Name, gjson.Get(from.raw, "namespace").Str
			if rest, ok := strings.CutPrefix(c.Name, space+"."); space != "" && ok {
				name = rest
			} else if before, ok := strings.CutSuffix(c.Name, "."+from.Name); ok && space == "" {
				name = from.Name
				list = append(list, splice{1, 1, append(appendField([]byte{'{'}, "namespace", before)[1:], ',')})
			}
			list = append(list, changes(raw, "name", name)...)
		}
		return spliced(raw, list)
	}
	kind := "function_call"
	if field == "input" {
		kind = "custom_tool_call"
	}
	id := c.ID
	if id == "" {
		id = "call_rebound"
	}
	b := appendField(appendField([]byte{'{'}, "id", "fc_rebound_"+strings.TrimPrefix(id, "call_")), "type", kind)
	b = appendField(appendField(b, "status", "completed"), "call_id", id)
	return append(appendField(appendField(b, "name", c.Name), field, c.Arguments), '}')
}

// same reports whether a call of a verdict is what the model sent.
func (c *call) same() bool { return c.of != nil && c.DraftCall == c.of.DraftCall && !c.of.value }

// items is what becomes of the items of a response, by their output_index.
type items struct {
	w       *rewriting
	s       script
	calls   map[int]*call // in the place of an item; nil: it goes
	gone    []int         // items that go, in order
	message int           // that whose text changes, -1 for none
	said    bool          // the new text is out
	next    int           // index behind the last item
	fresh   [][]byte      // items that are new
}

func (Responses) rewrite(events []byte, w *rewriting) []byte {
	p := items{w: w, message: -1, calls: map[int]*call{}}
	p.survey(events)
	begun := false
	each(events, func(ev *Event, d *Delta) {
		if !begun && d.Kind != KindDone {
			begun, p.s.seq = ev.HasData, d.seq
		}
		p.event(ev, d)
	})
	return p.s.out
}

// each reads events of a response.
func each(events []byte, f func(ev *Event, d *Delta)) {
	known := new(Known)
	eachEvent(events, func(ev *Event) { f(ev, Responses{}.Delta(ev, known)) })
}

// survey finds out what becomes of which item.
func (p *items) survey(events []byte) {
	var was []int // items that are calls, in their order
	begins := map[int]bool{}
	each(events, func(_ *Event, d *Delta) {
		it := &d.item
		p.next = max(p.next, it.index+1)
		switch {
		case it.event == eventAdded && itemKind(it.raw) == "message":
			begins[it.index] = true
		case it.event == eventAdded && (itemKind(it.raw) == "function_call" || itemKind(it.raw) == "custom_tool_call"):
			was = append(was, it.index)
		case it.event == eventEnd && it.whole != nil:
			for i, v := range gjson.ParseBytes(it.whole).Array() {
				if kind := v.Get("type").Str; kind == "function_call" || kind == "custom_tool_call" {
					was = append(was, i)
				}
			}
		case d.Kind == KindText && p.message < 0, it.event == eventFull && !it.call && p.message < 0:
			p.message = it.index
		}
	})
	for k, index := range was {
		p.calls[index] = nil
		for _, c := range p.w.calls {
			if c.of != nil && c.of.index == k {
				p.calls[index] = c
			}
		}
		if p.calls[index] == nil {
			p.gone = append(p.gone, index)
		}
	}
	switch {
	case p.w.text == nil:
		p.message = -1
	case p.message >= 0 && begins[p.message] && p.w.shown+*p.w.text == "":
		p.gone = append(p.gone, p.message)
	}
}

// place is where an item is now.
func (p *items) place(index int) int {
	n := index
	for _, g := range p.gone {
		if g < index {
			n--
		}
	}
	return n
}

func (p *items) event(ev *Event, d *Delta) {
	it := &d.item
	c, called := p.calls[it.index]
	switch {
	case !ev.HasData, d.Kind == KindDone:
		p.s.out = append(p.s.out, ev.Raw...)
	case it.index >= 0 && slices.Contains(p.gone, it.index):
	case it.event == eventEnd:
		p.end(ev)
	case called && !c.same():
		if it.event == eventAdded {
			p.s.call(c.itemFor(), p.place(it.index))
		}
	case it.index >= 0 && it.index == p.message:
		p.text(ev, d)
	default:
		p.s.put(ev, p.place(it.index))
	}
}

// text writes an event of the item whose text changes.
func (p *items) text(ev *Event, d *Delta) {
	whole, at := p.w.shown+*p.w.text, p.place(d.item.index)
	switch {
	case d.Kind == KindText:
		if !p.said && *p.w.text != "" {
			p.s.put(ev, at, changes(ev.Data, "delta", *p.w.text, "obfuscation", "")...)
		}
		p.said = true
	default:
		p.s.put(ev, at, changes(ev.Data, "text", whole, "part.text", whole, "item.content.0.text", whole)...)
	}
}

// end writes what is new, and the response as it has become.
func (p *items) end(ev *Event) {
	next := p.place(p.next)
	if t := p.w.text; t != nil && p.message < 0 && *t != "" {
		p.fresh = append(p.fresh, p.s.message("msg_rebound_"+gjson.GetBytes(ev.Data, "response.id").Str, next, *t))
	}
	for _, c := range p.w.calls {
		if c.of == nil || c.of.raw == "" {
			item := c.itemFor()
			p.s.call(item, next+len(p.fresh))
			p.fresh = append(p.fresh, item)
		}
	}
	var list []splice
	if output := gjson.GetBytes(ev.Data, "response.output"); output.Get("#").Int() > 0 {
		list = changes(ev.Data, "response.output", p.output(output))
	}
	p.s.put(ev, -1, list...)
}

// output is the list of items as it has become.
func (p *items) output(old gjson.Result) []byte {
	var out [][]byte
	for i, v := range old.Array() {
		raw := []byte(v.Raw)
		c, called := p.calls[i]
		switch {
		case slices.Contains(p.gone, i):
			continue
		case called && !c.same():
			raw = c.itemFor()
		case i == p.message:
			raw = with(raw, "content.0.text", p.w.shown+*p.w.text)
		}
		out = append(out, raw)
	}
	return listOf(append(out, p.fresh...))
}

func (Responses) splices(body []byte, s *calls, v recovery.Verdict) []splice {
	matched := s.match(v.Calls)
	var out [][]byte
	k, said := 0, v.Text == nil
	gjson.GetBytes(body, "output").ForEach(func(_, it gjson.Result) bool {
		raw := []byte(it.Raw)
		switch it.Get("type").Str {
		case "function_call", "custom_tool_call":
			i := slices.IndexFunc(matched, func(c *call) bool { return c.of != nil && c.of == s.list[k] })
			if k++; i < 0 {
				return true
			}
			if !matched[i].same() {
				raw = matched[i].itemFor()
			}
		case "message":
			if !said && it.Get("content.0.text").Exists() {
				if said = true; *v.Text == "" {
					return true
				}
				raw = with(raw, "content.0.text", *v.Text)
			}
		}
		out = append(out, raw)
		return true
	})
	if !said && *v.Text != "" {
		text := *v.Text
		out = append(out, message("msg_rebound_"+gjson.GetBytes(body, "id").Str, "completed", &text))
	}
	for _, c := range matched {
		if c.of == nil {
			out = append(out, c.itemFor())
		}
	}
	return changes(body, "output", listOf(out))
}

// brand marks the response and its messages: the ids that clients send back.
func (Responses) brand(data []byte, request string) (list []splice, id string) {
	raw := transcript.String("resp_" + transcript.OwnMark + "_" + request)
	for _, path := range [...]string{"response.id", "response_id"} {
		list = append(list, changes(data, path, raw)...)
	}
	if gjson.GetBytes(data, "object").Str == "response" {
		list = append(list, changes(data, "id", raw)...)
	}
	own := func(at string, v gjson.Result) {
		if rest, ok := strings.CutPrefix(v.Str, "msg_"); ok && !strings.HasPrefix(rest, transcript.OwnMark) {
			list = append(list, changes(data, at, "msg_"+transcript.OwnMark+"_"+rest)...)
		}
	}
	for _, at := range [...]string{"item_id", "item.id"} {
		own(at, gjson.GetBytes(data, at))
	}
	for _, at := range [...]string{"response.output", "output"} {
		for i := range gjson.GetBytes(data, at).Array() {
			path := at + "." + strconv.Itoa(i) + ".id"
			own(path, gjson.GetBytes(data, path))
		}
	}
	return list, string(raw)
}
