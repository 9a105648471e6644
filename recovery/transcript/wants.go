package transcript

import "slices"

// Choice is a request's demand on the model's use of its tools.
type Choice uint8

// The choices.
const (
	ChoiceAuto     Choice = iota // the model decides: the default with tools
	ChoiceNone                   // no call is wanted
	ChoiceRequired               // a call is required
	ChoiceNamed                  // a call of one tool is required
)

// ToolChoice is a Choice with its details.
type ToolChoice struct {
	Choice Choice
	// Name is the tool of ChoiceNamed.
	Name string
	// Allowed lists the tools that the model may call, nil for all of the
	// request's tools. It is set only with ChoiceAuto and ChoiceRequired.
	Allowed []string
}

// Allows reports whether the model may call the tool with this name, if the request offers it.
func (c *ToolChoice) Allows(name string) bool {
	if c.Choice == ChoiceNamed {
		return c.Name == name
	}
	return c.Allowed == nil || slices.Contains(c.Allowed, name)
}

// ContentForm is the form that a request demands of the answer's text.
type ContentForm uint8

// The forms.
const (
	FormText   ContentForm = iota // any text
	FormObject                    // one JSON object
	FormSchema                    // JSON that a schema describes
	FormOther                     // another structure, such as a grammar
)

// ToolChoice returns which calls the request demands. An unknown value counts as
// ChoiceAuto.
func (b *Body) ToolChoice() ToolChoice {
	raw, _ := b.Field("tool_choice")
	return choiceIn(raw)
}

// ContentForm returns the form that the request demands of the answer's text.
// schema is the raw JSON Schema of FormSchema; nil if there is none.
func (b *Body) ContentForm() (form ContentForm, schema []byte) {
	raw := b.Form()
	kind := stringField(raw, "type")
	schema, _ = member(raw, "schema")
	switch kind {
	case "", "text":
		return FormText, nil
	case "json_object":
		if !isObject(schema) { // llama.cpp, Together and Fireworks allow one
			return FormObject, nil
		}
	case "json_schema":
		inner, _ := member(raw, kind) // in Chat Completions
		if nested, ok := member(inner, "schema"); ok {
			schema = nested
		}
		if !isObject(schema) {
			schema = nil
		}
	default:
		return FormOther, nil
	}
	return FormSchema, clipped(schema)
}

// Form returns the raw demand for a form of the answer's text, nil if there is none.
func (b *Body) Form() []byte { return b.settings().form }

// ParallelCalls reports whether one answer may have several calls. That is the default.
func (b *Body) ParallelCalls() bool {
	raw, ok := b.Field("parallel_tool_calls")
	choice, _ := b.Field("tool_choice")
	alone, _ := member(choice, "disable_parallel_tool_use")
	return (!ok || !isBool(raw) || isTrue(raw)) && !isTrue(alone)
}

// Callable reports whether the tool is a function, which takes a JSON object and runs at
// the client. Others take free text or run on the server.
func (t Tool) Callable() bool { return t.Name != "" && (t.Type == KindFunction || t.Type == "") }

// anyObject is the schema of a tool that takes any object.
var anyObject = []byte(`{"type":"object","properties":{}}`)

// KindFunction is the type of a tool, and the kind of a call, that is a function.
const KindFunction = "function"

// KindAdded is the type of an entry that stands for all tools that the client adds in the course of the conversation.
const KindAdded = "tool_addition"
