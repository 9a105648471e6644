package transcript

import (
	"bytes"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
)

// Limits bounds what Parse accepts. What is not positive has its default.
type Limits struct {
	Depth    int // deepest nesting
	Messages int // of the history
	Calls    int // in all messages together
	Tools    int // that the request offers
	Values   int // JSON values of the whole body, about
}

// The limits when Limits names none. Depth: real requests stay below 20; some
// JSON libraries die of 10,000. Values: what mends a body works for each of them;
// so many messages and calls have a quarter as many. The others are ten times what the
// longest sessions have, and what the strictest provider takes (OpenAI: 2,048
// messages, 128 tools).
const (
	DefaultDepth    = 512
	DefaultMessages = 20_000
	DefaultCalls    = 20_000
	DefaultTools    = 4_000
	DefaultValues   = 1_000_000
)

// maxFields bounds a body's own fields. Formats have about 40.
const maxFields = 1_000

// Body is a request body and an index of it. It is immutable and safe for
// concurrent use, as long as nobody writes to the bytes it was parsed from.
type Body struct {
	raw    []byte
	format Format
	limits Limits

	fields   []field
	names    map[string]int // of all fields, once there are more than fewFields
	escaped  bool           // a field's name has escapes
	elements []element
	splits   []split // of the messages of which several elements were made

	model     string
	streaming bool
	usage     bool
	n         int
	called    int // calls in all messages
	offered   int // elements of the list of tools

	settingsOnce sync.Once
	set          settings
	messagesOnce sync.Once
	messages     []Message
	calls        []atomic.Pointer[[]ToolCall] // of the messages, nil until they are asked for
	toolsOnce    sync.Once
	tools        []Tool
}

// fewFields is the number of fields up to which a body has no map of them: nearly all have fewer.
const fewFields = 20

// field is a top-level field; the offsets of the key include its quotes.
type field struct{ key, keyEnd, val, valEnd int32 }

// element is a member of the history, with the values of its indexed fields.
type element struct {
	start, end int32
	keys       [keyCount]struct{ start, end int32 } // empty where there is no such field
	kind       uint8                                // what it is, as its format counts; in usualKinds
	wire       int32                                // its place in the list
	split      int32                                // which of the splits it is a part of, counted from 1; 0: it is whole
}

// checked is the limits with their defaults.
func (l Limits) checked() Limits {
	for _, v := range [...]struct {
		limit *int
		usual int
	}{{&l.Depth, DefaultDepth}, {&l.Messages, DefaultMessages}, {&l.Calls, DefaultCalls}, {&l.Tools, DefaultTools}, {&l.Values, DefaultValues}} {
		if *v.limit <= 0 {
			*v.limit = v.usual
		}
	}
	return l
}

// Parse validates and indexes a request body in one pass. The error is an
// *Error. raw is kept, not copied: it must not change any more.
func Parse(raw []byte, f Format, lim Limits) (*Body, error) { return new(parsing).parse(raw, f, lim) }

// parsing is one pass over a body. Where the body's beginning is known, the
// pass goes on behind it.
type parsing struct {
	known  *beginning          // nil: nothing is known
	behind func(from int) bool // whether what is behind the history is known, too
	same   bool                // it was

	listAt, behindList int // where the field with the history begins, and where its value ends
	inList, values     int // values up to the end of the history, and of the whole body
}

func (t *parsing) parse(raw []byte, f Format, lim Limits) (*Body, error) {
	if len(raw) > math.MaxInt32 {
		return nil, &Error{Code: CodeTooLarge, Message: "the body has 2 GiB or more"}
	}
	b := &Body{raw: raw, format: f, limits: lim.checked(), n: 1, fields: make([]field, 0, fewFields)}
	layout := f.layout()
	s := scanner{data: raw, limit: b.limits.Depth}
	at := s.begin()
	if at < 0 {
		return nil, s.err
	}
	if raw[at] != '{' {
		if i := s.value(at, 0); i < 0 || !s.end(i) {
			return nil, s.err
		}
		return nil, &Error{Code: CodeNotObject, Offset: at, Message: "the body must be a JSON object"}
	}
	list, offer, keys := layout.list, layout.offer, layout.indexed
	w := s.walk(at, 0)
	if t.known != nil {
		t.resume(b, &w, keys)
	}
	for !t.same && w.next() {
		if string(w.name) == list && w.val < len(raw) && raw[w.val] == '[' {
			w.to(b.indexElements(s.walk(w.val, w.depth), keys))
			t.listAt, t.behindList, t.inList = w.key, w.valEnd, s.values
		} else if string(w.name) == offer && w.val < len(raw) && raw[w.val] == '[' {
			w.to(b.countTools(s.walk(w.val, w.depth)))
		} else {
			w.skip()
		}
		if s.err != nil {
			return nil, s.err
		}
		if len(b.fields) == maxFields {
			return nil, &Error{Code: CodeTooMany, Offset: w.key, Message: "the body has more than " + strconv.Itoa(maxFields) + " fields"}
		}
		if !b.add(field{int32(w.key), int32(w.keyEnd), int32(w.val), int32(w.valEnd)}) {
			name := nameIn(raw[w.key:w.keyEnd]) // w.name would move the scanner to the heap
			return nil, &Error{Code: CodeDuplicateKey, Offset: w.key, Field: string(name),
				Message: "the field " + strconv.Quote(clip(name)) + " occurs twice, the second time at byte " + strconv.Itoa(w.key)}
		}
	}
	if s.err != nil || !t.same && !s.end(w.i) {
		return nil, s.err
	}
	if s.values > b.limits.Values {
		return nil, &Error{Code: CodeTooMany, Message: "the body has more than " + strconv.Itoa(b.limits.Values) + " JSON values (limits.values)"}
	}
	t.values = s.values
	if err := f.reader().check(b); err != nil {
		return nil, err
	}
	return b, nil
}

// resume takes over what is known, and reads the rest of the history.
func (t *parsing) resume(b *Body, w *walker, keys []indexed) {
	for _, f := range t.known.fields[:len(t.known.fields)-1] {
		b.add(f)
	}
	list := t.known.fields[len(t.known.fields)-1]
	b.elements, b.splits, b.called, b.offered, w.s.values = t.known.elements, t.known.splits, t.known.called, t.known.offered, t.known.values
	w.began, w.key, w.keyEnd, w.val = true, int(list.key), int(list.keyEnd), int(list.val)
	elements := w.s.walk(w.val, w.depth)
	elements.began, elements.i = true, t.known.end
	if w.to(b.indexElements(elements, keys)); w.s.err != nil {
		return
	}
	list.valEnd = int32(w.valEnd)
	b.add(list)
	t.listAt, t.behindList, t.inList = w.key, w.valEnd, w.s.values
	if t.same = t.behind(w.valEnd); t.same {
		for _, f := range t.known.rest {
			b.add(f.moved(w.valEnd))
		}
		w.s.values += t.known.restValues
	}
}

// clip shortens a name for a message.
func clip(name []byte) string {
	if len(name) > 64 {
		return string(name[:64]) + "…"
	}
	return string(name)
}

// indexElements scans the rest of an array and records its elements behind
// those that there are already, which belong to others too.
func (b *Body) indexElements(w walker, keys []indexed) int {
	s, known := w.s, len(b.elements)
	layout := b.format.layout()
	place := int32(0)
	if known > 0 {
		place = b.elements[known-1].wire + 1
	}
	for w.next() {
		if w.val >= len(s.data) || s.data[w.val] != '{' {
			return w.noObject(layout.list)
		}
		if len(b.elements) == b.limits.Messages {
			return s.fail(CodeTooMany, w.val, "the history has more than %d messages (limits.messages)", b.limits.Messages)
		}
		if n := len(b.elements); n == cap(b.elements) { // others stay with those that were known
			more := min(roomForTurn+n-known, b.limits.Messages-n)
			b.elements = append(make([]element, 0, n+more), b.elements...)
		}
		b.elements = append(b.elements, element{start: int32(w.val), wire: place})
		place++
		e := &b.elements[len(b.elements)-1]
		m := s.walk(w.val, w.depth)
		for m.next() {
			k, field := keyCount, ""
			for i := range keys {
				if string(m.name) == keys[i].name {
					k, field = keys[i].key, keys[i].name
					break
				}
			}
			if k == keyCalls && !layout.items && m.val < len(s.data) && s.data[m.val] == '[' {
				m.to(b.countCalls(s.walk(m.val, m.depth), field))
			} else {
				m.skip()
			}
			if k < keyCount {
				e.keys[k].start, e.keys[k].end = int32(m.val), int32(m.valEnd)
			}
			if k == keyKind && s.err == nil {
				e.kind = usualKind(m.value())
			}
		}
		if w.to(m.i); s.err != nil {
			return -1
		}
		e.end = int32(w.valEnd)
		if layout.blocks && !b.indexBlocks(s) {
			return -1
		}
	}
	if s.err != nil {
		return -1
	}
	return w.i
}

// countCalls scans the calls of a message, and counts them.
func (b *Body) countCalls(w walker, field string) int {
	for w.next() {
		if w.val >= len(w.s.data) || w.s.data[w.val] != '{' {
			return w.noObject(field)
		}
		if b.called++; b.called > b.limits.Calls {
			return w.s.fail(CodeTooMany, w.val, "the messages make more than %d tool calls (limits.calls)", b.limits.Calls)
		}
		w.skip()
	}
	if w.s.err != nil {
		return -1
	}
	return w.i
}

// countTools scans the list of tools, and counts them.
func (b *Body) countTools(w walker) int {
	b.offered = 0
	for w.next() {
		if b.offered++; b.offered > b.limits.Tools {
			return w.s.fail(CodeTooMany, w.val, "the request offers more than %d tools (limits.tools)", b.limits.Tools)
		}
		w.skip()
	}
	if w.s.err != nil {
		return -1
	}
	return w.i
}

// roomForTurn is for how many elements there is room beyond those that were known.
const roomForTurn = 4

// add records a field; it returns false if there is one of that name.
func (b *Body) add(f field) bool {
	name := b.name(&f)
	if b.find(string(name)) != nil {
		return false
	}
	b.escaped = b.escaped || len(name) != int(f.keyEnd-f.key)-2
	b.fields = append(b.fields, f)
	switch n := len(b.fields); {
	case b.names != nil:
		b.names[string(name)] = n - 1
	case n > fewFields:
		b.names = make(map[string]int, 4*fewFields)
		for i := range b.fields {
			b.names[string(b.name(&b.fields[i]))] = i
		}
	}
	return true
}

// name is a field's name without its quotes and escapes.
func (b *Body) name(f *field) []byte { return nameIn(b.raw[f.key:f.keyEnd]) }

func (b *Body) find(name string) *field {
	if b.names != nil {
		if i, ok := b.names[name]; ok {
			return &b.fields[i]
		}
		return nil
	}
	for i := range b.fields {
		f := &b.fields[i]
		if int(f.keyEnd-f.key)-2 == len(name) && string(b.raw[f.key+1:f.keyEnd-1]) == name || b.escaped && string(b.name(f)) == name {
			return f
		}
	}
	return nil
}

// Raw is the body's bytes, as they were given. They must not be changed.
func (b *Body) Raw() []byte { return b.raw }

// Parts is how many messages, calls and tools the body has. Each takes memory
// beyond its bytes.
func (b *Body) Parts() int { return len(b.elements) + b.called + b.offered }

// Format is the format that the body was parsed as.
func (b *Body) Format() Format { return b.format }

// Field is the value of a top-level field, as it stands in the body.
func (b *Body) Field(name string) (raw []byte, ok bool) {
	f := b.find(name)
	if f == nil {
		return nil, false
	}
	return b.raw[f.val:f.valEnd:f.valEnd], true
}

// Fields calls yield with the name and the value of every top-level field, in
// order, until it returns false.
func (b *Body) Fields(yield func(name string, raw []byte) bool) {
	for i := range b.fields {
		f := &b.fields[i]
		if !yield(string(b.name(f)), b.raw[f.val:f.valEnd:f.valEnd]) {
			return
		}
	}
}

// Model is the model that the client asks for, or "".
func (b *Body) Model() string { return b.model }

// Streaming reports whether the client asks for a stream.
func (b *Body) Streaming() bool { return b.streaming }

// N is the number of answers asked for, 1 by default.
func (b *Body) N() int { return b.n }

// IncludeUsage reports whether the client asks for usage in the stream.
func (b *Body) IncludeUsage() bool { return b.usage }

// OutputLimit is the limit of output tokens that the client set, and the field
// that sets it. Where several do, the newer field counts.
func (b *Body) OutputLimit() (field string, n int, ok bool) {
	for _, name := range b.format.layout().limits {
		if raw, found := b.Field(name); found && !isNull(raw) {
			if n, ok := integer(raw); ok {
				return name, n, true
			}
		}
	}
	return "", 0, false
}

// OutputField is the field that limits the output: the one that the client set,
// else the one that most servers know.
func (b *Body) OutputField() string {
	if field, _, ok := b.OutputLimit(); ok {
		return field
	}
	names := b.format.layout().limits
	return names[len(names)-1]
}

// OutputFields are the fields of the format that limit the output, newest first.
func (f Format) OutputFields() []string { return f.layout().limits }

// ResponseFormat reports whether the request demands structured output.
func (b *Body) ResponseFormat() bool {
	form, _ := b.ContentForm()
	return form != FormText
}

// Logprobs reports whether the request asks for log probabilities.
func (b *Body) Logprobs() bool { return b.settings().logprobs }

// Audio reports whether the request asks for spoken output.
func (b *Body) Audio() bool { return b.settings().audio }

// Reasoning reports whether the request asks the model to reason, in any of
// the ways that providers have for it. False does not mean that it will not.
func (b *Body) Reasoning() bool { return b.settings().reasoning }

// ServiceTier is the tier that the request asks for, or "".
func (b *Body) ServiceTier() string {
	raw, _ := b.Field("service_tier")
	return text(raw)
}

// CacheKey is the key under which the client wants its prompt cached, or, in the Messages
// API, whom it names as its user; or "". Some clients put their session id there.
func (b *Body) CacheKey() string {
	if b.format == Messages {
		metadata, _ := b.Field("metadata")
		return stringField(metadata, "user_id")
	}
	raw, _ := b.Field("prompt_cache_key")
	return text(raw)
}

// EstimateTokens is an estimate of the prompt's tokens: a quarter of the body's
// bytes. English text and code in JSON rarely exceed it; other scripts may,
// and inline images are far below. It is for budgets and routing, never a
// reason to rewrite a request.
func (b *Body) EstimateTokens() int { return (len(b.raw) + 3) / 4 }

// HasImages reports whether the history has images. It searches the bytes for
// the mark of an image part, so a call argument that is an object with such a
// field would count too.
func (b *Body) HasImages() bool {
	f := b.find(b.format.layout().list)
	return f != nil && bytes.Contains(b.raw[f.val:f.valEnd], []byte(b.format.layout().imageMark))
}

// integer reads an integral JSON number; huge ones become the largest int32.
func integer(raw []byte) (int, bool) {
	if len(raw) == 0 || raw[0] != '-' && raw[0]-'0' > 9 {
		return 0, false
	}
	if n, err := strconv.Atoi(string(raw)); err == nil {
		return max(min(n, math.MaxInt32), math.MinInt32), true
	}
	x, _ := strconv.ParseFloat(string(raw), 64)
	if x != math.Trunc(x) && !math.IsInf(x, 0) {
		return 0, false
	}
	return int(max(min(x, math.MaxInt32), math.MinInt32)), true
}
