package transcript

import (
	"bytes"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
)

// Limits limits what Parse accepts. A value of 0 or less means the default.
type Limits struct {
	Depth    int // levels of nesting
	Messages int // elements of the history
	Calls    int // tool calls in all messages together
	Tools    int // tools that the request offers
	Values   int // JSON values in the whole body, approximately
}

// The default limits. Depth: real requests stay below 20; some JSON libraries crash at
// 10,000. Values: the repair of a body costs time for each of them; a body with the
// allowed number of messages and calls has a quarter as many. The others are ten times
// what the longest sessions have, and what the strictest provider accepts (OpenAI: 2,048
// messages, 128 tools).
const (
	DefaultDepth    = 512
	DefaultMessages = 20_000
	DefaultCalls    = 20_000
	DefaultTools    = 4_000
	DefaultValues   = 1_000_000
)

// byteOrderMark may precede a request: PowerShell writes it, and Python's, Node's and other servers read it.
const byteOrderMark = "\ufeff"

// maxFields limits the top-level fields of a body. Formats have about 40.
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
	splits   []split // the messages whose blocks are elements of their own

	model     string
	streaming bool
	usage     bool
	n         int
	called    int // calls in all messages
	offered   int // tools in the list of tools

	settingsOnce sync.Once
	set          settings
	messagesOnce sync.Once
	messages     []Message
	calls        []atomic.Pointer[[]ToolCall] // by message; nil until ToolCalls reads them
	toolsOnce    sync.Once
	tools        []Tool
}

// fewFields is the number of fields above which a body has a map of them. Nearly all bodies have fewer.
const fewFields = 20

// field is a top-level field; the offsets of the key include its quotes.
type field struct{ key, keyEnd, val, valEnd int32 }

// element is a member of the history, with the values of its indexed fields.
type element struct {
	start, end int32
	keys       [keyCount]struct{ start, end int32 } // empty if there is no such field
	kind       uint8                                // in the Messages API its kind: wholeMessage and so on
	wire       int32                                // its index in the list on the wire
	split      int32                                // the split that it is a block of, counted from 1; 0 for a whole message
}

// checked returns the limits with the defaults filled in.
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
// *Error. The Body refers to raw without a copy: the caller must not change it afterwards.
func Parse(raw []byte, f Format, lim Limits) (*Body, error) { return new(parsing).parse(raw, f, lim) }

// parsing is one pass over a body. If a Parser knows the body's beginning, the
// pass starts behind it.
type parsing struct {
	known  *beginning          // nil: no beginning is known
	at     checkpoint          // where the known beginning and the body part
	behind func(from int) bool // reports whether the bytes behind the history, at from, are known too; nil without a Parser
	same   bool                // what behind returned
	passed []checkpoint        // one for each message that was scanned, if there is a Parser

	listAt, behindList int // where the field with the history begins, and where its value ends
	inList, values     int // the number of values up to the end of the history, and in the whole body
}

func (t *parsing) parse(raw []byte, f Format, lim Limits) (*Body, error) {
	if len(raw) > math.MaxInt32 {
		return nil, &Error{Code: CodeTooLarge, Message: "the body has 2 GiB or more"}
	}
	b := &Body{raw: raw, format: f, limits: lim.checked(), n: 1, fields: make([]field, 0, fewFields)}
	layout := f.layout()
	s := scanner{data: raw, limit: b.limits.Depth}
	at := s.begin(len(raw) - len(bytes.TrimPrefix(raw, []byte(byteOrderMark))))
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
			w.endAt(t.indexElements(b, s.walk(w.val, w.depth), keys))
			t.listAt, t.behindList, t.inList = w.key, w.valEnd, s.values
		} else if string(w.name) == offer && w.val < len(raw) && raw[w.val] == '[' {
			w.endAt(b.countTools(s.walk(w.val, w.depth)))
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

// resume copies the known beginning into b and indexes the rest of the history.
func (t *parsing) resume(b *Body, w *walker, keys []indexed) {
	for _, f := range t.known.fields[:len(t.known.fields)-1] {
		b.add(f)
	}
	list := t.known.fields[len(t.known.fields)-1]
	b.elements, b.splits = t.known.elements[:t.at.elements:t.at.elements], t.known.splits[:t.at.splits:t.at.splits]
	b.called, b.offered, w.s.values = t.at.called, t.known.offered, t.at.values
	w.began, w.key, w.keyEnd, w.val = true, int(list.key), int(list.keyEnd), int(list.val)
	elements := w.s.walk(w.val, w.depth)
	elements.began, elements.i = true, t.at.end
	if w.endAt(t.indexElements(b, elements, keys)); w.s.err != nil {
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
	} else if b.find(b.format.layout().offer) == nil { // the tools stood behind the history
		b.offered = 0
	}
}

// clip shortens a name for a message.
func clip(name []byte) string {
	if len(name) > 64 {
		return string(name[:64]) + "…"
	}
	return string(name)
}

// indexElements scans the rest of an array and appends its elements to b.elements. The
// elements already there may be shared with other bodies and do not change.
func (t *parsing) indexElements(b *Body, w walker, keys []indexed) int {
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
		if n := len(b.elements); n == cap(b.elements) { // other bodies keep the known elements
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
				m.endAt(b.countCalls(s.walk(m.val, m.depth), field))
			} else {
				m.skip()
			}
			if k < keyCount {
				e.keys[k].start, e.keys[k].end = int32(m.val), int32(m.valEnd)
			}
		}
		if w.endAt(m.i); s.err != nil {
			return -1
		}
		e.end = int32(w.valEnd)
		if layout.blocks && !b.indexBlocks(s) {
			return -1
		}
		if t.behind != nil {
			t.passed = append(t.passed, checkpoint{end: w.valEnd, messages: int(place), elements: len(b.elements), splits: len(b.splits), called: b.called, values: s.values})
		}
	}
	if s.err != nil {
		return -1
	}
	return w.i
}

// countCalls validates the calls of a message and counts them. It returns the offset of their end, or -1 for an error.
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

// countTools validates the list of tools and counts them. It returns the offset of its end, or -1 for an error.
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

// roomForTurn is the number of elements for which indexElements reserves room beyond the known ones.
const roomForTurn = 4

// add records a field; it returns false if the body already has one of that name.
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

// name returns a field's name without quotes and escapes.
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

// Raw returns the bytes that were parsed. The caller must not change them.
func (b *Body) Raw() []byte { return b.raw }

// Parts returns the number of messages, calls and tools. Each takes memory
// beyond its bytes.
func (b *Body) Parts() int { return len(b.elements) + b.called + b.offered }

// Format returns the format that the body was parsed as.
func (b *Body) Format() Format { return b.format }

// Field returns the raw value of a top-level field.
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

// Model returns the model that the client asks for, or "".
func (b *Body) Model() string { return b.model }

// Streaming reports whether the client asks for a stream.
func (b *Body) Streaming() bool { return b.streaming }

// N returns the number of answers that the client asks for, 1 by default.
func (b *Body) N() int { return b.n }

// IncludeUsage reports whether the client asks for usage in the stream.
func (b *Body) IncludeUsage() bool { return b.usage }

// OutputLimit returns the limit of output tokens that the client set, and the field
// that sets it. If several do, the newer field counts.
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

// OutputField returns the field that limits the output: the one that the client set,
// else the one that most servers know.
func (b *Body) OutputField() string {
	if field, _, ok := b.OutputLimit(); ok {
		return field
	}
	names := b.format.layout().limits
	return names[len(names)-1]
}

// OutputFields returns the fields of the format that limit the output, newest first.
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
// the providers' spellings. A model may reason without being asked.
func (b *Body) Reasoning() bool { return b.settings().reasoning }

// ServiceTier returns the tier that the request asks for, or "".
func (b *Body) ServiceTier() string {
	raw, _ := b.Field("service_tier")
	return text(raw)
}

// CacheKey returns the client's key for prompt caching, or, in the Messages API, the user
// id in its metadata; or "". Some clients put their session id there.
func (b *Body) CacheKey() string {
	if b.format == Messages {
		metadata, _ := b.Field("metadata")
		return stringField(metadata, "user_id")
	}
	raw, _ := b.Field("prompt_cache_key")
	return text(raw)
}

// EstimateTokens estimates the prompt's tokens as a quarter of the body's bytes.
// English text and code in JSON rarely have more tokens; other scripts may, and inline
// images have far fewer. Use it for budgets and routing, never to decide on rewriting
// a request.
func (b *Body) EstimateTokens() int { return (len(b.raw) + 3) / 4 }

// integer reads an integral JSON number, clamped to the range of int32.
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
