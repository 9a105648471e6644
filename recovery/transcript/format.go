package transcript

import "bytes"

// Format is the wire format of a body.
type Format uint8

// The formats.
const (
	Chat      Format = iota // Chat Completions
	Responses               // the Responses API
	Messages                // Anthropic's Messages API
)

// String names the format.
func (f Format) String() string {
	return [...]string{"chat", "responses", "messages"}[f]
}

// The roles of messages, in neutral words. Readers map their format's items
// onto these; another role of the wire is passed on as it is.
const (
	RoleSystem    = "system"
	RoleDeveloper = "developer"
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleTool      = "tool"
	RoleOpaque    = "opaque" // nobody's words: a setting or a sealed history, which stays as it is
)

// key is a field of an element that is indexed.
type key uint8

const (
	keyRole    key = iota // who speaks
	keyContent            // what is said
	keyCalls              // the calls it makes
	keyCall               // the one call it makes, in an older form
	keyCallID             // the call it answers
	keyCount

	keyKind = keyCall  // what the element is, in formats where that is not told by its role
	keyID   = keyCalls // its id, in formats where a call is an element of its own
)

// indexed is a field of the history's elements that is indexed.
type indexed struct {
	name string
	key  key
}

// layout is what is fixed in a format.
type layout struct {
	list, offer string    // the fields with the history and with the tools
	indexed     []indexed // the fields of the history's elements that are found while the body is validated
	items       bool      // a turn of the model takes several elements: its reasoning, its words, each call
	blocks      bool      // results of calls are blocks of a message of the user
	anywhere    bool      // a result may stand anywhere behind its call
	prefills    bool      // a last message of the model's is the beginning of its answer
	limits      []string  // the fields that limit the output, newest first
	imageMark   string    // what the bytes of a history with images contain
}

// settings is what the fields beside the history say, in neutral words.
type settings struct {
	state        State
	conversation string // see Body.Conversation
	continues    string // see Body.Continues
	instructions []byte // what stands outside the history, a string or a list of texts; nil if nothing does
	logprobs     bool
	audio        bool
	reasoning    bool
	adds         bool   // tools may be called that stand in no list
	form, schema []byte // what demands a form of the answer's text, and its schema
	contentForm  ContentForm
}

// entry is an element of the history in neutral words. What it refers to is the
// body's bytes, with the capacity of the whole body.
type entry struct {
	role         string // one of the Role constants, or what the wire says
	content      []byte // what it says, nil if it says nothing
	contentField string
	answers      []byte // the id of the call that it answers
	answersField string
	calls        bool   // it makes calls
	reasoning    bool   // it is reasoning, in an element of its own
	id           []byte // that the server gave it
	bare         bool   // it is nothing without its id
	tools        []byte // it adds these to what the request offers
}

// aside is a field of an element besides its content and its calls.
type aside struct {
	raw   []byte
	words bool // a model reads it: the readable strings in it count
	seal  bool // it is reasoning or a signature of it, which a provider may want back unchanged
	mark  bool // it is a cache mark
}

// part is a part of a content in neutral words.
type part struct {
	kind    partKind
	wire    []byte // its type on the wire, without quotes
	plain   bool   // its text stands in the field "text", as that of a part which the gateway writes
	texts   [2][]byte
	end     string // what is to be read behind the texts
	payload []byte // what tells media apart from others of its type
	mark    []byte // a cache mark
	printed bool   // it is what a command printed
}

// typedPart reads what a part says of itself in two formats: its type, its text, its cache mark.
func typedPart(raw []byte) (p part) {
	for name, v := range fieldsOf(raw) {
		switch string(name) {
		case "type":
			p.wire = nameOf(v)
		case "text":
			p.texts[0] = v
		case "cache_control":
			if p.mark = v; isNull(v) {
				p.mark = nil
			}
		}
	}
	if string(p.wire) == "text" {
		p.kind, p.plain = partText, true
	}
	return p
}

// partKind is what a part is.
type partKind uint8

const (
	partOther partKind = iota
	partText
	partReasoning
	partMedia
	partKept // what is none of these, and stays whatever becomes of the rest
)

// reader decodes and encodes the elements and settings of one wire format: all names
// of its fields are in the files that implement it. What it is given was validated.
// What can be said in neutral words is written once, in the other files.
type reader interface {
	layout() layout
	check(b *Body) *Error // reads the fields that the gateway depends on
	settings(b *Body) settings

	entry(b *Body, i int) entry
	part(raw []byte) part
	appendCalls(calls []ToolCall, b *Body, i int) []ToolCall
	asides(b *Body, i int, yield func(aside) bool) bool // what element i has besides its content and its calls
	tools(whole, list []byte) []Tool                    // list is a part of whole that was sliced without limiting its capacity

	message(role, text string, mark []byte) []byte // an element that says text
	textPart(text string, mark []byte) []byte      // a part of a content that somebody but the model wrote
	result(c ToolCall, text string) []byte         // an element that answers a call, nil if none can
	tool(name string) []byte                       // a tool that takes any object
	choice(t *Tool) []byte                         // demands a call of a tool (nil: of none)
	ask(out []byte, q Question) []byte             // out has the model and the limits
}

var readers = [...]reader{Chat: chat{}, Responses: responses{}, Messages: messages{}}

func (f Format) reader() reader { return readers[f] }
func (f Format) layout() layout { return readers[f].layout() }

// settings reads the fields beside the history once.
func (b *Body) settings() *settings {
	b.settingsOnce.Do(func() { b.set = b.format.reader().settings(b) })
	return &b.set
}

// entry is element i.
func (b *Body) entry(i int) entry { return b.format.reader().entry(b, i) }

// ParseAny is Parse for a request of which nothing tells the format but what is in it: Chat
// Completions, unless only another format's history is there, or what only the Messages API has.
func ParseAny(raw []byte, lim Limits) (*Body, error) {
	b, err := Parse(raw, Chat, lim)
	switch {
	case err != nil:
	case b.find(Chat.layout().list) == nil && b.find(Responses.layout().list) != nil:
		return Parse(raw, Responses, lim)
	case b.find("system") != nil, b.find("anthropic_version") != nil, mentions(raw, "tool_use"), mentions(raw, "tool_result"), mentions(raw, "input_schema"):
		return Parse(raw, Messages, lim)
	}
	return b, err
}

// mentions reports whether a word stands in a body as a string of its own.
func mentions(raw []byte, word string) bool { return bytes.Contains(raw, []byte(`"`+word+`"`)) }

// modelField is the field with the model in every format.
const modelField = "model"

// checkModel and checkStream read what is the same in every format.
func (b *Body) checkModel() *Error {
	if f := b.find(modelField); f != nil {
		raw := b.raw[f.val:f.valEnd]
		if !isString(raw) && !isNull(raw) {
			return b.wrong(f, "a string")
		}
		b.model = text(raw)
	}
	return nil
}

func (b *Body) checkStream() *Error {
	if f := b.find("stream"); f != nil {
		raw := b.raw[f.val:f.valEnd]
		if !isBool(raw) && !isNull(raw) {
			return b.wrong(f, "true or false")
		}
		b.streaming = isTrue(raw)
	}
	return nil
}

func (b *Body) wrong(f *field, want string) *Error {
	name := string(b.name(f))
	return &Error{Code: CodeWrongType, Offset: int(f.val), Field: name, Message: "the field '" + name + "' must be " + want}
}

// roleOf is the role with this name, which is not allocated where it is one of ours.
func roleOf(raw []byte) string {
	if !isString(raw) {
		return ""
	}
	switch string(raw[1 : len(raw)-1]) {
	case RoleUser:
		return RoleUser
	case RoleAssistant:
		return RoleAssistant
	case RoleTool:
		return RoleTool
	case RoleSystem:
		return RoleSystem
	case RoleDeveloper:
		return RoleDeveloper
	}
	return text(raw)
}
