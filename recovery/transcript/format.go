package transcript

// Format is the wire format of a body.
type Format uint8

// The formats.
const (
	Chat Format = iota // Chat Completions
)

// String names the format.
func (f Format) String() string { return "chat" }

// The roles of messages, in neutral words. Readers map their format's items
// onto these; another role of the wire is passed on as it is.
const (
	RoleSystem    = "system"
	RoleDeveloper = "developer"
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleTool      = "tool"
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
)

// reader is what is particular to a wire format: all names of its fields are
// in the one file that implements it. Everything it is given was validated.
type reader interface {
	// list names the field with the history, offer the one with the tools, and keys
	// the fields of the history's elements that are indexed while the body is validated.
	list() string
	offer() string
	keys() [keyCount]string
	// check reads the fields that the gateway depends on.
	check(b *Body) *Error
	// speaker is the neutral role of an element whose role field has this value.
	speaker(role, element []byte) string
	// instructions appends text that stands outside the history.
	instructions(dst []byte, b *Body) []byte

	appendText(dst, content []byte) []byte
	appendMedia(dst, content []byte) []byte
	appendCalls(calls []ToolCall, m Message) []ToolCall
	note(text string) []byte                     // a user's message with this text
	appendPart(parts []byte, text string) []byte // the list of a content's parts with one more
	toolList(b *Body) []byte                     // nil if there are none
	tools(whole, list []byte) []Tool             // list is a part of whole that was sliced without limiting its capacity

	ask(model, system, user, limit string, maxOutput int) []byte

	model() string          // name of the field with the model
	outputLimits() []string // names of the fields that limit the output, newest first
	imageMark() string      // what the bytes of a history with images contain
	structured(b *Body) bool
	logprobs(b *Body) bool
	audio(b *Body) bool
	reasoning(b *Body) bool
	serviceTier(b *Body) string
	cacheKey(b *Body) string
	toolChoice(b *Body) ToolChoice
	contentForm(b *Body) (form ContentForm, schema []byte)
	parallelCalls(b *Body) bool
}

func (f Format) reader() reader { return chat{} }
