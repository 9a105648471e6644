package transcript

import "bytes"

// Format is the wire format of a body.
type Format uint8

// The formats.
const (
	Chat      Format = iota // Chat Completions
	Responses               // the Responses API
	Messages                // Anthropic's Messages API
	FormatCount
)

// String names the format.
func (f Format) String() string { return f.layout().name }

// API is a provider's interface, which has one format or several. Each target has one API, and gets requests
// in its formats only.
type API uint8

// The APIs.
const (
	OpenAI    API = iota // Chat Completions and Responses
	Anthropic            // Messages
	APICount
)

// API returns the API that has the format.
func (f Format) API() API { return f.layout().api }

// Announces reports whether servers send the first event of a streamed answer before the model reasons.
func (f Format) Announces() bool { return f.layout().announces }

// SignsReasoning reports whether reasoning is signed text, which other accounts may be able to read, and not encrypted.
func (f Format) SignsReasoning() bool { return f.layout().signs }

// SystemOutside reports whether the system prompt is a field beside the history, and no message has the role developer.
func (f Format) SystemOutside() bool { return f.layout().outside }

// The roles of messages, the same for all formats. Readers map their format's items
// to these; they pass any other role on unchanged.
const (
	RoleSystem    = "system"
	RoleDeveloper = "developer"
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleTool      = "tool"
	RoleOpaque    = "opaque" // a setting or a sealed history, which no speaker wrote and no edit changes
)

// key is a field of an element that is indexed.
type key uint8

const (
	keyRole    key = iota
	keyContent     // the content, or the output of a call
	keyCalls       // the list of calls
	keyCall        // a single call, in the deprecated form
	keyCallID      // the id of the call that the element answers or makes
	keyCount

	keyKind = keyCall  // the element's type, in formats with typed elements
	keyID   = keyCalls // the element's id, in formats where a call is an element of its own
)

// indexed maps the name of a field of the history's elements to its key.
type indexed struct {
	name string
	key  key
}

// layout is the fixed properties of a format.
type layout struct {
	name        string
	api         API
	list, offer string      // the fields with the history and with the tools
	indexed     []indexed   // the fields of the history's elements that Parse indexes
	items       bool        // a turn of the model consists of several elements: reasoning, text, each call
	blocks      bool        // results of calls are blocks of a user's message
	anywhere    bool        // a result may be anywhere behind its call
	prefills    bool        // a last message by the model is a prefill, the beginning of its answer, and no part of the history
	signs       bool        // see SignsReasoning
	outside     bool        // see SystemOutside
	announces   bool        // see Announces
	limits      []string    // the fields that limit the output, newest first
	budgets     [][2]string // the fields, and members of theirs, that limit the thinking within the output
}

// settings is the meaning of the fields beside the history, the same for all formats.
type settings struct {
	state        State
	conversation string // see Body.Conversation
	continues    string // see Body.Continues
	instructions []byte // the raw instructions outside the history, a string or a list of texts; nil if there are none
	logprobs     bool
	audio        bool
	reasoning    bool
	adds         bool   // the model may call tools that are in no list
	form         []byte // the raw demand for a form of the answer's text
}

// entry is an element of the history in a form that all formats share. Its slices are
// parts of the body, with the capacity of the whole body.
type entry struct {
	role         string // one of the Role constants, or the role on the wire
	content      []byte // nil if there is none
	contentField string
	answers      []byte // the id of the call that it answers
	answersField string
	calls        bool   // it makes calls
	reasoning    bool   // it is reasoning, in an element of its own
	id           []byte // the id that the server gave it
	idOnly       bool   // it is meaningless without its id
	tools        []byte // the list of tools that it adds to those of the request
}

// aside is a field of an element besides its content and its calls.
type aside struct {
	raw   []byte
	words bool // a model reads the strings in it
	seal  bool // it is reasoning or a signature of it, which a provider may want back unchanged
	mark  bool // it is a cache mark
}

// part is a part of a content in a form that all formats share.
type part struct {
	kind    partKind
	wire    []byte // its type on the wire, without quotes
	plain   bool   // its text is in the field "text", as in parts that the gateway writes
	texts   [2][]byte
	end     string // text to append behind the texts: how a command ended
	payload []byte // the raw value that distinguishes media of one type
	mark    []byte // a cache mark
	printed bool   // it is the output of a command
}

// typedPart reads the fields that parts of two formats have in common: type, text, cache mark.
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

// partKind is the kind of a part.
type partKind uint8

const (
	partOther partKind = iota
	partText
	partReasoning
	partMedia
	partKept // another block, which every edit keeps
)

// reader decodes and encodes the elements and settings of one wire format: all names
// of its fields are in the files that implement it. Its arguments are validated JSON.
// Code that does not depend on the format is in the other files.
type reader interface {
	check(b *Body) *Error // reads the fields that the gateway depends on
	settings(b *Body) settings

	entry(b *Body, i int) entry
	part(raw []byte) part
	appendCalls(calls []ToolCall, b *Body, i int) []ToolCall
	asides(b *Body, i int, yield func(aside) bool) bool // yields the fields of element i besides its content and its calls
	tools(whole, list []byte) []Tool                    // list is a part of whole that was sliced without limiting its capacity

	message(role, text string, mark []byte) []byte // an element with this text
	textPart(text string, mark []byte) []byte      // a text part of a content that the model did not write
	result(c ToolCall, text string) []byte         // an element that answers a call, nil if text cannot answer it
	tool(name string) []byte                       // a tool that takes any object
	choice(t *Tool) []byte                         // a tool_choice that demands a call of t, or forbids calls if t is nil
	ask(out []byte, q Question) []byte             // appends the fields of a question to out, which has the model and the limits
}

var (
	readers = [...]reader{Chat: chat{}, Responses: responses{}, Messages: messages{}}
	layouts = [...]layout{Chat: chatLayout, Responses: responsesLayout, Messages: messagesLayout}
)

func (f Format) reader() reader { return readers[f] }
func (f Format) layout() layout { return layouts[f] }

// settings reads the fields beside the history once.
func (b *Body) settings() *settings {
	b.settingsOnce.Do(func() { b.set = b.format.reader().settings(b) })
	return &b.set
}

// entry returns element i as the format's reader decodes it.
func (b *Body) entry(i int) entry { return b.format.reader().entry(b, i) }

// ParseAny is Parse for a body of unknown format. It assumes Chat Completions unless the body has
// "input" but no "messages", or fields and words that only the Messages API has.
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

// mentions reports whether a body contains the word in quotes.
func mentions(raw []byte, word string) bool { return bytes.Contains(raw, []byte(`"`+word+`"`)) }

// modelField is the field with the model, in every format.
const modelField = "model"

// checkModel and checkStream read the fields that are the same in every format.
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

// roleOf returns the role that raw names, without an allocation for the Role constants.
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
