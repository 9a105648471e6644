package transcript

import "slices"

// responses reads the Responses API, as OpenAI and its compatible servers define
// it: https://platform.openai.com/docs/api-reference/responses/create
// Its history is a list of items, of which one turn of the model takes several.
type responses struct{}

var _ reader = responses{}

var responsesFields = [...]indexed{
	{"type", keyKind}, {"role", keyRole}, {"content", keyContent}, {"call_id", keyCallID}, {"output", keyContent}, {"id", keyID},
}

func (responses) list() string           { return "input" }
func (responses) offer() string          { return "tools" }
func (responses) indexed() []indexed     { return responsesFields[:] }
func (responses) grouped() bool          { return true }
func (responses) imageMark() string      { return `"input_image"` }
func (responses) outputLimits() []string { return []string{"max_output_tokens"} }
func (responses) logprobs(b *Body) bool  { return b.asksFor("message.output_text.logprobs") }
func (responses) pairsAnywhere() bool    { return true }
func (responses) audio(*Body) bool       { return false }

func (responses) check(b *Body) *Error {
	b.usage = true // it is part of every answer
	if err := b.checkModel(); err != nil {
		return err
	}
	if f := b.find("input"); f != nil {
		switch raw := b.raw[f.val:f.valEnd]; {
		case isString(raw): // one message of the user
			b.elements = []element{{start: f.val, end: f.valEnd}}
		case raw[0] != '[' && !isNull(raw):
			return b.wrong(f, "a string or an array")
		}
	}
	return b.checkStream()
}

// asksFor reports whether the request wants this to be included in the answer.
func (b *Body) asksFor(what string) bool {
	list, _ := b.Field("include")
	for v := range elementsOf(list) {
		if text(v) == what {
			return true
		}
	}
	return false
}

// set reports whether a top-level field is there, and not null.
func (b *Body) set(name string) bool {
	f := b.find(name)
	return f != nil && !isNull(b.raw[f.val:f.valEnd])
}

func (r responses) continues(b *Body) string {
	if raw, _ := b.Field("previous_response_id"); isString(raw) {
		return text(raw)
	}
	return r.conversation(b)
}

func (r responses) state(b *Body) (s State) {
	store, _ := b.Field("store")
	background, _ := b.Field("background")
	s.Stored = !isBool(store) || isTrue(store)
	s.Bound = b.set("prompt")
	s.Job = isTrue(background) && s.Stored
	s.Single = isTrue(background) || b.set("conversation")
	if b.set("previous_response_id") || b.set("conversation") {
		s.Kind = Chained
	}
	for i := range b.elements {
		switch kindAt(b, i) {
		case "item_reference":
			if !own(b, i) {
				s.Kind = max(s.Kind, Referencing)
			}
		case "message", "reasoning", "function_call", "custom_tool_call":
			s.Tells = s.Tells || s.Stored && isString(b.key(i, keyID)) && r.speaker(b, i) == RoleAssistant && !own(b, i)
		case "compaction", "compaction_summary", "context_compaction":
			s.Bound = true
		case "compaction_trigger":
			s.Closed = true
		}
	}
	return s
}

func (responses) conversation(b *Body) string {
	raw, _ := b.Field("conversation")
	if isString(raw) {
		return text(raw)
	}
	return stringField(raw, "id")
}

func (responses) instructions(b *Body) []byte {
	f := b.find("instructions")
	if f == nil {
		return nil
	}
	return b.raw[f.val:f.valEnd]
}

func (responses) form(b *Body) []byte {
	raw, _ := b.Field("text")
	form, _ := member(raw, "format")
	return clipped(form)
}

func (r responses) contentForm(b *Body) (ContentForm, []byte) {
	form := r.form(b)
	switch stringField(form, "type") {
	case "", "text":
		return FormText, nil
	case "json_object":
		return FormObject, nil
	case "json_schema":
		schema, _ := member(form, "schema")
		if !isObject(schema) {
			schema = nil
		}
		return FormSchema, clipped(schema)
	}
	return FormOther, nil
}

func (responses) reasoning(b *Body) bool {
	raw, _ := b.Field("reasoning")
	switch stringField(raw, "effort") {
	case "none", "minimal":
		return false
	case "":
		return len(raw) > 2 && raw[0] == '{'
	}
	return true
}

func (responses) ask(out []byte, q Question) []byte {
	if q.Effort != "" {
		out = append(append(append(out, `,"reasoning":{"effort":`...), String(q.Effort)...), '}')
	}
	if q.Schema != nil {
		out = append(appendForm(append(out, `,"text":{"format":{"type":"json_schema",`...), q), `}}`...)
	}
	if q.System != "" {
		out = append(append(out, `,"instructions":`...), String(q.System)...)
	}
	out = append(append(out, `,"input":`...), String(q.User)...)
	return append(out, `,"store":false}`...)
}

// moreTools are the tools that stand in the history: those that an item adds, and those
// that a search for tools has found.
func (responses) moreTools(b *Body) (lists [][]byte) {
	for i := range b.elements {
		switch kindAt(b, i) {
		case "additional_tools", "tool_search_output":
			if list, ok := member(b.element(i), "tools"); ok && !emptyList(list) {
				lists = append(lists, list)
			}
		}
	}
	return lists
}

// Qualified is the name of a tool in a namespace, "" for none.
func Qualified(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "." + name
}

// ownCalls are the tools whose calls are items of their own kind. Not among them are
// those that let the model call what the request does not list: mcp, tool_search.
var ownCalls = [...]string{
	"web_search", "web_search_preview", "file_search", "code_interpreter", "image_generation", "computer", "computer_use_preview",
	"local_shell", "shell", "apply_patch",
}

func (r responses) tools(whole, list []byte) (tools []Tool) {
	for raw := range elementsOf(list) {
		var t Tool
		var in scanner
		if w, ok := opened(&in, raw, '{'); ok {
			t.read(whole, w)
		}
		if t.Type != "namespace" {
			t.Raw, t.Own = clipped(raw), slices.Contains(ownCalls[:], t.Type)
			tools = append(tools, t)
			continue
		}
		inner, _ := member(raw, "tools")
		for _, own := range (chat{}).tools(whole, inner) {
			own.Name = Qualified(t.Name, own.Name)
			tools = append(tools, own)
		}
	}
	return tools
}
