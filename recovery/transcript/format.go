package transcript

// Format is the wire format of a body.
type Format uint8

// The formats.
const (
	Chat      Format = iota // Chat Completions
	Responses               // the Responses API
)

// String names the format.
func (f Format) String() string {
	if f == Responses {
		return "responses"
	}
	return "chat"
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

// reader is what is particular to a wire format: all names of its fields are
// in the files that implement it. Everything it is given was validated.
type reader interface {
	// list names the field with the history, offer the one with the tools, and
	// indexed the fields of the history's elements that are found while the body is validated.
	list() string
	offer() string
	indexed() []indexed
	// check reads the fields that the gateway depends on.
	check(b *Body) *Error
	state(b *Body) State
	conversation(b *Body) string
	continues(b *Body) string

	// speaker is the neutral role of element i. Where grouped, the elements in a row
	// that the model spoke are one message.
	speaker(b *Body, i int) string
	grouped() bool
	// content is what element i says, nil if it says nothing; answered is the id of
	// the call that it answers.
	content(b *Body, i int) []byte
	answered(b *Body, i int) []byte
	// asides calls yield with what element i has besides its content and its calls that a
	// model reads: values in which the readable strings count.
	asides(b *Body, i int, yield func(raw []byte) bool) bool
	// instructions is the text that stands outside the history, nil if there is none.
	instructions(b *Body) []byte

	appendText(dst, content []byte) []byte
	appendMedia(dst, content []byte) []byte
	calling(m Message) bool // whether it makes any calls, without reading them
	appendCalls(calls []ToolCall, m Message) []ToolCall
	note(text string) []byte                     // a user's message with this text
	appendPart(parts []byte, text string) []byte // the list of a content's parts with one more
	moreTools(b *Body) [][]byte                  // lists of tools that stand in the history, none of them empty
	tools(whole, list []byte) []Tool             // list is a part of whole that was sliced without limiting its capacity

	ask(out []byte, q Question) []byte // out has the model and the limits

	outputLimits() []string // names of the fields that limit the output, newest first
	imageMark() string      // what the bytes of a history with images contain
	logprobs(b *Body) bool
	audio(b *Body) bool
	reasoning(b *Body) bool
	contentForm(b *Body) (form ContentForm, schema []byte)
	form(b *Body) []byte // what says so
	pairsAnywhere() bool // whether a result may stand anywhere behind its call

	parter
	mender
}

func (f Format) reader() reader {
	if f == Responses {
		return responses{}
	}
	return chat{}
}

// ParseAny is Parse for a request of which nothing tells the format but its history's
// field: that of Chat Completions, unless only another's is there.
func ParseAny(raw []byte, lim Limits) (*Body, error) {
	b, err := Parse(raw, Chat, lim)
	if err != nil || b.find(chat{}.list()) != nil || b.find(responses{}.list()) == nil {
		return b, err
	}
	return Parse(raw, Responses, lim)
}

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
