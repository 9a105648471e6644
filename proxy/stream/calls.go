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

// maxCalls limits the calls that are collected from one answer. An answer with more is not judged.
const maxCalls = 1024

// maxName limits a name that arrives in fragments, in bytes. An answer with a longer one is not
// judged.
const maxName = 1024

// call is a tool call, assembled from its fragments.
type call struct {
	recovery.DraftCall // Arguments is empty until assembled
	args               []byte
	index              int
	numbered           bool     // index was given
	state              openJSON // of the arguments so far
	value              bool     // the arguments were not a string
	names              int      // number of fragments with a name
	extra, inner       extra    // unknown fields of the call, and of its function, that are kept
	raw                string
	item               int   // index in the output of a response
	original           *call // the original call, in a verdict
	duplicate          bool  // duplicate of an earlier call
}

// extra holds fields that the gateway does not know, such as signatures that a provider requires with
// its calls.
type extra []struct{ key, raw string }

// maxExtra limits the unknown fields of one call that are kept.
const maxExtra = 64

func (e extra) with(key, raw string) extra {
	for i := range e {
		if e[i].key == key {
			e[i].raw = raw
			return e
		}
	}
	if len(e) >= maxExtra {
		return e // further fields are dropped if the call is rewritten
	}
	return append(e, struct{ key, raw string }{key, raw})
}

func (e extra) appendTo(b []byte) []byte {
	for _, f := range e {
		b = append(append(append(append(b, ','), f.key...), ':'), f.raw...)
	}
	return b
}

// calls collects the calls of one answer, in all the ways in which servers send them.
type calls struct {
	list   []*call
	known  func(name string) bool // reports whether the request offers a tool
	odd    bool                   // clients that use the index would assemble something else
	legacy bool                   // the calls came as function_call
	over   bool                   // more than maxCalls
	fresh  []byte                 // arguments in the last event
	whole  bool                   // the calls are from a complete answer, and share its memory
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
	if len(s.list) > 0 { // a repetition of the whole message, or nothing
		return false
	}
	m := gjson.GetBytes(data, "choices.0.message")
	if !m.IsObject() || !s.message(m.Get("tool_calls"), m.Get("function_call")) {
		return false
	}
	s.odd = true // clients read the delta
	return true
}

// complete adds the calls of a complete message: each element of its list is one call.
func (s *calls) complete(d *Delta) {
	add := func(f fragment, raw string) {
		c := &call{extra: f.extra, raw: raw}
		c.ID, c.Kind = f.id, f.kind
		c.Name, c.Arguments, c.value, c.inner = f.content()
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

// items adds the calls of a format in which each item has a beginning, pieces and an end. read returns
// the call in an item, or nil.
func (s *calls) items(d *Delta, read func(gjson.Result) *call) bool {
	it := &d.item
	s.fresh = s.fresh[:0]
	add := func(c *call, index int) {
		if s.over = s.over || len(s.list) >= maxCalls; !s.over {
			c.item, c.index, c.numbered = index, len(s.list), true
			s.list, s.odd = append(s.list, c), s.odd || c.value
		}
	}
	if list := it.whole; s.whole || list != nil { // a complete answer, or a stream whose items come only in its end
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
	i := len(s.list) - 1
	for i >= 0 && s.list[i].item != it.index {
		i--
	}
	if it.event == eventAdded || it.event == eventDone && it.raw != nil {
		c := read(gjson.ParseBytes(it.raw))
		switch {
		case c == nil: // nothing to judge
			return true
		case i < 0, c.ID != s.list[i].ID && it.event == eventAdded && s.list[i].ID != "": // another with the same index
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

// keep copies the calls' strings, so that they outlive the answer's buffer.
func (s *calls) keep() {
	for _, c := range s.list {
		c.raw = strings.Clone(c.raw)
		c.DraftCall = recovery.DraftCall{ID: strings.Clone(c.ID), Kind: strings.Clone(c.Kind), Name: strings.Clone(c.Name), Arguments: strings.Clone(c.Arguments)}
	}
}

// message reads the calls of a delta or a message.
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

// put adds a fragment to its call, or begins a new one. The calls in s.list[before:] are from the
// same chunk.
func (s *calls) put(f fragment, before int) {
	if s.over {
		return
	}
	name, text, value, inner := f.content()
	c := s.find(f, name)
	if c == nil && f.id+name+text == "" {
		return // a placeholder for a later call
	}
	if c == nil || s.beginsCall(c, f, name, text, slices.Contains(s.list[before:], c)) {
		if len(s.list) >= maxCalls {
			s.over = true
			return
		}
		s.odd = s.odd || c != nil && c.numbered && f.numbered && c.index == f.index
		c = &call{index: f.index, numbered: f.numbered, raw: f.raw}
		s.list = append(s.list, c)
	}
	s.odd = s.odd || !f.numbered || c.numbered && f.index != c.index || f.id != "" && c.ID != "" && f.id != c.ID
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

// content returns the contents of a fragment: a name, and a piece of the arguments, or with value all of
// them as a JSON value other than a string.
func (f *fragment) content() (name, text string, value bool, inner extra) {
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

// find returns the call that a fragment seems to belong to, or nil for a new one.
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

// beginsCall reports whether a fragment with the index of c begins another call: some servers give
// parallel calls the same index (litellm#33678), or none.
func (s *calls) beginsCall(c *call, f fragment, name, text string, together bool) bool {
	switch {
	case f.id != "" && c.ID != "" && f.id != c.ID: // Poolside gives the pieces of one call several ids
		return name != "" || text != "" && c.state.complete()
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

// name adds a name, a further piece of it, or a repetition of it.
func (s *calls) name(c *call, name string) {
	c.names++
	switch whole := c.Name + name; {
	case c.Name == "":
		c.Name = name
	case name == c.Name && (s.offers(c.Name) || !s.offers(whole)):
	case len(name) > len(c.Name) && name[:len(c.Name)] == c.Name && s.offers(name) && !s.offers(whole):
		c.Name = name // each fragment repeats the name so far
	default:
		c.Name = whole
	}
	s.odd, s.over = s.odd || c.names > 1, s.over || c.names > 1 && len(c.Name) > maxName
}

// draft returns the calls, sorted by index.
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

// assembled sets the arguments from their pieces, if there are any.
func (c *call) assembled() {
	if len(c.args) > 0 {
		c.Arguments = string(c.args)
	}
}

// drafts returns the calls for the judgement, without duplicates.
func (s *calls) drafts() []recovery.DraftCall {
	s.markDuplicates()
	out := make([]recovery.DraftCall, 0, len(s.list))
	for _, c := range s.list {
		if !c.duplicate {
			out = append(out, c.DraftCall)
		}
	}
	return out
}

// markDuplicates marks duplicate calls: some servers repeat calls in a summary at the end or under another index
// (litellm#20480, new-api#6278).
func (s *calls) markDuplicates() {
	first := map[string]*call{}
	for _, c := range s.list {
		switch before := first[c.ID]; {
		case c.ID == "":
		case before == nil:
			first[c.ID] = c
		case c.repeats(before):
			c.duplicate, s.odd = true, true
		}
	}
}

// repeats reports whether c is a duplicate of other: same id, name and arguments.
func (c *call) repeats(other *call) bool {
	return c.ID != "" && c.ID == other.ID && c.Name == other.Name && sameJSON(c.Arguments, other.Arguments)
}

// sameJSON reports whether two texts are equal, or equal as JSON values.
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

// match converts the calls of a verdict, with the unknown fields of the original calls.
func (s *calls) match(list []recovery.DraftCall) []*call {
	out := make([]*call, len(list))
	byID, twice := map[string]*call{}, map[string]bool{}
	var live []*call
	for _, c := range s.list {
		if c.duplicate {
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
			out[i].original = from
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

// openJSON tracks the nesting of a JSON value that arrives in pieces.
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

// complete reports whether everything that was opened is closed.
func (j *openJSON) complete() bool { return j.began && j.depth <= 0 && !j.quoted }

// opens reports whether a text begins like an object or a string.
func opens(text string) bool {
	text = strings.TrimLeft(text, blanks)
	return strings.HasPrefix(text, "{") || strings.HasPrefix(text, `"`)
}
