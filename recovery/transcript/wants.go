package transcript

// Choice is what a request demands of the model's use of its tools.
type Choice uint8

// The choices.
const (
	ChoiceAuto     Choice = iota // the model decides: the default with tools
	ChoiceNone                   // no call is wanted
	ChoiceRequired               // a call is required
	ChoiceNamed                  // a call of one tool is required
)

// ToolChoice is the demand with its details.
type ToolChoice struct {
	Choice Choice
	// Name is the tool of ChoiceNamed.
	Name string
	// Allowed are the names that the model may use, nil where all of the
	// request's tools are; it goes with ChoiceAuto and ChoiceRequired.
	Allowed []string
}

// ContentForm is what a request demands of the answer's text.
type ContentForm uint8

// The forms.
const (
	FormText   ContentForm = iota // any text
	FormObject                    // one JSON object
	FormSchema                    // JSON that a schema describes
	FormOther                     // another structure, such as a grammar
)

// ToolChoice reports whether and which calls the request demands. A value that
// is not understood counts as ChoiceAuto.
func (b *Body) ToolChoice() ToolChoice {
	raw, _ := b.Field("tool_choice")
	return choiceIn(raw)
}

// ContentForm reports the form that the request demands of the answer's text.
// schema is the JSON Schema of FormSchema as it stands in the body; nil where
// there is none.
func (b *Body) ContentForm() (form ContentForm, schema []byte) {
	return b.settings().contentForm, b.settings().schema
}

// Form is what demands the form of the answer's text, as it stands in the body, nil if
// nothing does.
func (b *Body) Form() []byte { return b.settings().form }

// ParallelCalls reports whether one answer may have several calls, which is the default.
func (b *Body) ParallelCalls() bool {
	raw, ok := b.Field("parallel_tool_calls")
	choice, _ := b.Field("tool_choice")
	alone, _ := member(choice, "disable_parallel_tool_use")
	return (!ok || !isBool(raw) || isTrue(raw)) && !isTrue(alone)
}

// Callable reports whether the tool takes a JSON object that the client reads:
// a function. Others take free text, or run on the server.
func (t Tool) Callable() bool { return t.Name != "" && (t.Type == KindFunction || t.Type == "") }

// KindFunction is the kind of a call of a function.
const KindFunction = "function"
