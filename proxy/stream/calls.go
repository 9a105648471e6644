package stream

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// maxCalls bounds the calls of one answer that are put together. Beyond, an
// answer is not judged.
const maxCalls = 1024

// maxName bounds a name that comes in pieces. Beyond, an answer is not judged.
const maxName = 1024

// call is a tool call put together from what came of it.
type call struct {
	recovery.DraftCall // without its arguments until all of them are there
	args               []byte
	index              int
	numbered           bool     // index was given
	state              openJSON // of the arguments so far
	value              bool     // the arguments were no string
	names              int      // fragments with a name
	extra, inner       extra    // fields of the call, and of its function, that are passed on
	raw                string
	item               int   // of the output it is, in a response
	of                 *call // that it was made of, in a verdict
	again              bool  // it is one before it once more
}

// extra is fields that the gateway does not know, such as the signatures that
// a provider wants back with its calls.
type extra []struct{ key, raw string }

// maxExtra bounds the fields of one call that are kept.
const maxExtra = 64

func (e extra) with(key, raw string) extra {
	for i := range e {
		if e[i].key == key {
			e[i].raw = raw
			return e
		}
	}
	if len(e) >= maxExtra {
		return e // nobody has so many: what does not fit is left out where a call is rewritten
	}
	return append(e, struct{ key, raw string }{key, raw})
}

func (e extra) appendTo(b []byte) []byte {
	for _, f := range e {
		b = append(append(append(append(b, ','), f.key...), ':'), f.raw...)
	}
	return b
}

// calls puts the calls of one answer together, in all the ways in which servers
// send them.
type calls struct {
	list   []*call
	known  func(name string) bool // the request offers this tool
	odd    bool                   // a client that goes by the index puts something else together
	legacy bool                   // function_call
	over   bool                   // more than maxCalls
	fresh  []byte                 // arguments of the event read last
	whole  bool                   // they are those of a complete answer, and parts of it
}

func (Chat) calls(data []byte, d *Delta, s *calls) bool {
	s.fresh = s.fresh[:0]
	if s.whole {
		s.complete(d)
		return len(s.list) > 0
	}
	if s.message(gjson.ParseBytes(d.calls), gjson.ParseBytes(d.function)) {
		return true
	}
	if len(s.list) > 0 { // the whole message once more, or nothing
		return false
	}
	m := gjson.GetBytes(data, "choices.0.message")
	if !m.IsObject() || !s.message(m.Get("tool_calls"), m.Get("function_call")) {
		return false
	}
	s.odd = true // clients read the delta
	return true
}

// complete adds the calls of a complete message: each element of its list is one.
func (s *calls) complete(d *Delta) {
	add := func(f fragment, raw string) {
		c := &call{extra: f.extra, raw: raw}
		c.ID, c.Kind = f.id, f.kind
		c.Name, c.Arguments, c.value, c.inner = f.says()
		if c.Kind == "" {
			c.Kind = transcript.KindFunction
		}
		s.list, s.odd = append(s.list, c), s.odd || c.value
	}
	if list := gjson.Parse(viewString(d.calls)); list.IsArray() {
		list.ForEach(func(_, v gjson.Result) bool {
			if s.over = len(s.list) >= maxCalls; !s.over {
				add(fragmentOf(v), v.Raw)
			}
			return !s.over
		})
	}
	if len(s.list) == 0 && isObject(d.function) && !isEmpty(d.function) {
		s.legacy = true
		add(fragment{function: gjson.Parse(viewString(d.function))}, "")
	}
}

// items adds the calls of an answer in which each is an item of its own, which begins, comes in
// pieces and ends. read returns the call that an item is, nil for none.
func (s *calls) items(d *Delta, read func(gjson.Result) *call) bool {
	it := &d.item
	s.fresh = s.fresh[:0]
	add := func(c *call, index int) {
		if s.over = s.over || len(s.list) >= maxCalls; !s.over {
			c.item, c.index, c.numbered = index, len(s.list), true
			s.list, s.odd = append(s.list, c), s.odd || c.value
		}
	}
	if list := it.whole; s.whole || list != nil { // of a complete answer, or in no event before its end
		if s.whole {
			list = d.calls
		}
		gjson.Parse(viewString(list)).ForEach(func(i, v gjson.Result) bool {
			if c := read(v); c != nil {
				if add(c, int(i.Int())); !s.whole {
					c.args = []byte(c.Arguments)
				}
			}
			return !s.over
		})
		return len(s.list) > 0
	}
	if !it.call || s.over {
		return it.call
	}
	i := slices.IndexFunc(s.list, func(c *call) bool { return c.item == it.index })
	if it.event == eventAdded || it.event == eventDone && it.raw != nil {
		c := read(gjson.ParseBytes(it.raw))
		switch {
		case c == nil: // there is nothing to judge
			return true
		case i < 0:
			add(c, it.index)
		default:
			old := s.list[i]
			old.DraftCall, old.raw, old.value = c.DraftCall, c.raw, c.value
			s.odd, c = s.odd || c.value, old
		}
		if it.event == eventDone {
			if len(c.args) == 0 {
				s.fresh = append(s.fresh, c.Arguments...)
			}
			c.args = []byte(c.Arguments)
		}
		return true
	}
	if i < 0 {
		return true
	}
	switch c := s.list[i]; it.event {
	case eventPiece:
		text := textOf(it.piece)
		s.fresh = append(s.fresh, text...)
		c.args = append(c.args, text...)
		c.state.feed(text)
	case eventFull:
		c.args = []byte(textOf(it.full))
	}
	return true
}

// keep copies the calls of a complete answer.
func (s *calls) keep() {
	for _, c := range s.list {
		c.raw = strings.Clone(c.raw)
		c.DraftCall = recovery.DraftCall{ID: strings.Clone(c.ID), Kind: strings.Clone(c.Kind), Name: strings.Clone(c.Name), Arguments: strings.Clone(c.Arguments)}
	}
}

// message reads the calls of a delta, or of a message.
func (s *calls) message(list, f gjson.Result) bool {
	before := len(s.list)
	found := false
	switch {
	case list.IsArray():
		list.ForEach(func(_, c gjson.Result) bool {
			if c.IsObject() {
				found = true
				s.put(fragmentOf(c), before)
			}
			return !s.over
		})
	case list.IsObject():
		found, s.odd = true, true
		s.put(fragmentOf(list), before)
	}
	if f.IsObject() && !empty(f) {
		found, s.legacy = true, true
		s.put(fragment{numbered: true, function: f}, before)
	}
	return found
}

// fragment is one element of a chunk's list of calls.
type fragment struct {
	index    int
	numbered bool
	id, kind string
	function gjson.Result
	extra    extra
	raw      string
}

func fragmentOf(c gjson.Result) fragment {
	f := fragment{raw: c.Raw}
	if !c.IsObject() {
		return f
	}
	c.ForEach(func(k, v gjson.Result) bool {
		switch k.Str {
		case "index":
			f.index, f.numbered = int(v.Int()), v.Type == gjson.Number
		case "id":
			f.id = v.String()
		case "type":
			f.kind = v.String()
		case "function", "custom":
			if v.IsObject() {
				f.function = v
				if k.Str == "custom" && f.kind == "" {
					f.kind = "custom"
				}
			}
		default:
			if v.Type != gjson.Null {
				f.extra = f.extra.with(k.Raw, v.Raw)
			}
		}
		return true
	})
	return f
}

// put adds a fragment to its call, or begins one. Calls from before on are of
// the same chunk.
func (s *calls) put(f fragment, before int) {
	if s.over {
		return
	}
	name, text, value, inner := f.says()
	c := s.find(f, name)
	if c == nil && f.id+name+text == "" {
		return // a place for a call that may come
	}
	if c == nil || s.another(c, f, name, text, slices.Contains(s.list[before:], c)) {
		if len(s.list) >= maxCalls {
			s.over = true
			return
		}
		s.odd = s.odd || c != nil && c.numbered && f.numbered && c.index == f.index
		c = &call{index: f.index, numbered: f.numbered, raw: f.raw}
		s.list = append(s.list, c)
	}
	s.odd = s.odd || !f.numbered || c.numbered && f.index != c.index
	if c.ID == "" {
		c.ID = f.id
	}
	if c.Kind == "" {
		c.Kind = f.kind
	}
	if name != "" {
		s.name(c, name)
	}
	if value {
		c.value, s.odd = true, true
	}
	c.args = append(c.args, text...)
	c.state.feed(text)
	s.fresh = append(s.fresh, text...)
	for _, e := range f.extra {
		c.extra = c.extra.with(e.key, e.raw)
	}
	for _, e := range inner {
		c.inner = c.inner.with(e.key, e.raw)
	}
}

// says is what a fragment has of its call: a name, and a piece of the arguments, or all of
// them as a value that is no string.
func (f *fragment) says() (name, text string, value bool, inner extra) {
	f.function.ForEach(func(k, v gjson.Result) bool {
		switch k.Str {
		case "name":
			if v.Type == gjson.String {
				name = v.Str
			}
		case "arguments", "input":
			text, value = v.Str, v.Type != gjson.String && v.Type != gjson.Null
			if value {
				text = v.Raw
			}
		default:
			if v.Type != gjson.Null {
				inner = inner.with(k.Raw, v.Raw)
			}
		}
		return true
	})
	return name, text, value, inner
}

// find is the call that a fragment seems to belong to, nil for a new one.
func (s *calls) find(f fragment, name string) *call {
	n := len(s.list)
	if n == 0 {
		return nil
	}
	for i := n - 1; i >= 0 && f.id != ""; i-- {
		if c := s.list[i]; c.ID == f.id && (!f.numbered || !c.numbered || c.index == f.index) {
			return c
		}
	}
	last := s.list[n-1]
	if f.numbered {
		for i := n - 1; i >= 0; i-- {
			if s.list[i].numbered && s.list[i].index == f.index {
				return s.list[i]
			}
		}
		if f.id == "" && name == "" {
			return last // a call does not begin with its arguments
		}
		return nil
	}
	if f.id != "" && (last.ID != "" || name != "") {
		return nil
	}
	return last
}

// another reports whether a fragment that has the place of c begins another
// call: parallel calls that all have the same index (litellm#33678), or none.
func (s *calls) another(c *call, f fragment, name, text string, together bool) bool {
	switch {
	case f.id != "" && c.ID != "" && f.id != c.ID:
		return true
	case name == "" || c.Name == "":
		return false
	case together:
		return true
	case len(c.args) == 0:
		return name != c.Name && s.offers(c.Name) && s.offers(name) && !s.offers(c.Name+name)
	case name != c.Name:
		return true
	}
	return c.state.complete() && opens(text)
}

func (s *calls) offers(name string) bool { return s.known != nil && s.known(name) }

// name adds a name, or a piece of one, or the same once more.
func (s *calls) name(c *call, name string) {
	c.names++
	switch whole := c.Name + name; {
	case c.Name == "":
		c.Name = name
	case name == c.Name && (s.offers(c.Name) || !s.offers(whole)):
	case len(name) > len(c.Name) && name[:len(c.Name)] == c.Name && s.offers(name) && !s.offers(whole):
		c.Name = name // it is sent as far as it is known
	default:
		c.Name = whole
	}
	s.odd, s.over = s.odd || c.names > 1, s.over || c.names > 1 && len(c.Name) > maxName
}

// draft is the calls in their order.
func (s *calls) draft() []recovery.DraftCall {
	if len(s.list) == 0 {
		return nil
	}
	seen := make(map[int]bool, len(s.list))
	plain := true
	for _, c := range s.list {
		plain = plain && c.numbered && !seen[c.index]
		seen[c.index] = true
	}
	if plain {
		slices.SortStableFunc(s.list, func(a, b *call) int { return a.index - b.index })
	}
	for i, c := range s.list {
		s.odd = s.odd || plain && c.index != i
		if c.Kind == "" {
			c.Kind = "function"
		}
		c.assembled()
	}
	return s.drafts()
}

// assembled sets the arguments to what came in pieces, if any did.
func (c *call) assembled() {
	if len(c.args) > 0 {
		c.Arguments = string(c.args)
	}
}

// drafts are the calls for a judgement, each of them once.
func (s *calls) drafts() []recovery.DraftCall {
	s.once()
	out := make([]recovery.DraftCall, 0, len(s.list))
	for _, c := range s.list {
		if !c.again {
			out = append(out, c.DraftCall)
		}
	}
	return out
}

// once marks calls that were sent again: some servers repeat them, as a summary at the end
// or under another index (litellm#20480, new-api#6278).
func (s *calls) once() {
	first := map[string]*call{}
	for _, c := range s.list {
		switch before := first[c.ID]; {
		case c.ID == "":
		case before == nil:
			first[c.ID] = c
		case c.repeats(before):
			c.again, s.odd = true, true
		}
	}
}

// repeats reports whether a call is another one sent again: with the same id, name and
// arguments.
func (c *call) repeats(other *call) bool {
	return c.ID != "" && c.ID == other.ID && c.Name == other.Name && sameJSON(c.Arguments, other.Arguments)
}

// sameJSON reports whether two texts are equal, or mean the same as JSON.
func sameJSON(a, b string) bool {
	if a == b {
		return true
	}
	if transcript.Valid([]byte(a), maxDepth) != nil || transcript.Valid([]byte(b), maxDepth) != nil {
		return false
	}
	decode := func(s string) (v any) {
		d := json.NewDecoder(strings.NewReader(s))
		d.UseNumber()
		_ = d.Decode(&v)
		return v
	}
	return reflect.DeepEqual(decode(a), decode(b))
}

// match gives calls of a verdict the fields of those they were made of.
func (s *calls) match(list []recovery.DraftCall) []*call {
	out := make([]*call, len(list))
	byID, twice := map[string]*call{}, map[string]bool{}
	var live []*call
	for _, c := range s.list {
		if c.again {
			continue
		}
		live = append(live, c)
		twice[c.ID] = byID[c.ID] != nil
		byID[c.ID] = c
	}
	for i, d := range list {
		if d.Kind == "" {
			d.Kind = "function"
		}
		out[i] = &call{DraftCall: d}
		from := byID[d.ID]
		if len(list) == len(live) {
			from = live[i]
		} else if d.ID == "" || twice[d.ID] {
			from = nil
		}
		if from != nil {
			out[i].of = from
			out[i].extra, out[i].inner, out[i].raw = from.extra, from.inner, from.raw
			if d == from.DraftCall {
				out[i].value = from.value
			} else {
				out[i].raw = ""
			}
		}
	}
	return out
}

// openJSON follows a JSON value that comes in pieces, as far as its end.
type openJSON struct {
	depth            int
	quoted, escaping bool
	began            bool
}

func (j *openJSON) feed(text string) {
	for i := range len(text) {
		switch c := text[i]; {
		case j.escaping:
			j.escaping = false
		case j.quoted && c == '\\':
			j.escaping = true
		case c == '"':
			j.quoted, j.began = !j.quoted, true
		case j.quoted:
		case c == '{' || c == '[':
			j.depth, j.began = j.depth+1, true
		case c == '}' || c == ']':
			j.depth--
		}
	}
}

// complete reports whether all that was opened is closed.
func (j *openJSON) complete() bool { return j.began && j.depth <= 0 && !j.quoted }

// opens reports whether a text begins like an object.
func opens(text string) bool {
	for i := range len(text) {
		switch text[i] {
		case ' ', '\t', '\r', '\n':
			continue
		}
		return text[i] == '{' || text[i] == '"'
	}
	return false
}
