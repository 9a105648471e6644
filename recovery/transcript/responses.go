package transcript

import "slices"

// responses reads the Responses API, as OpenAI and its compatible servers define
// it: https://platform.openai.com/docs/api-reference/responses/create
// Its history is a list of items; one turn of the model consists of several.
type responses struct{}

var _ reader = responses{}

var responsesLayout = layout{
	name: "responses", api: OpenAI,
	list: "input", offer: "tools", items: true, anywhere: true, announces: true,
	limits: []string{"max_output_tokens"},
	indexed: []indexed{
		{"type", keyKind}, {"role", keyRole}, {"content", keyContent}, {"call_id", keyCallID}, {"output", keyContent}, {"id", keyID},
	},
}

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

// asksFor reports whether the request's "include" lists what.
func (b *Body) asksFor(what string) bool {
	list, _ := b.Field("include")
	for v := range elementsOf(list) {
		if text(v) == what {
			return true
		}
	}
	return false
}

// has reports whether a top-level field exists and is not null.
func (b *Body) has(name string) bool {
	f := b.find(name)
	return f != nil && !isNull(b.raw[f.val:f.valEnd])
}

func (r responses) settings(b *Body) (s settings) {
	conversation, _ := b.Field("conversation")
	if s.conversation = text(conversation); isObject(conversation) {
		s.conversation = stringField(conversation, "id")
	}
	s.continues = s.conversation
	if earlier, _ := b.Field("previous_response_id"); isString(earlier) {
		s.continues = text(earlier)
	}
	s.instructions, _ = b.Field("instructions")
	s.logprobs, s.reasoning, s.state = b.asksFor("message.output_text.logprobs"), r.reasons(b), r.state(b)
	inner, _ := b.Field("text")
	s.form, _ = member(inner, "format")
	s.form = clipped(s.form)
	return s
}

func (r responses) state(b *Body) (s State) {
	store, _ := b.Field("store")
	background, _ := b.Field("background")
	s.Stored = !isBool(store) || isTrue(store)
	s.Bound = b.has("prompt")
	s.Job = isTrue(background) && s.Stored
	s.Single = isTrue(background) || b.has("conversation")
	if b.has("previous_response_id") || b.has("conversation") {
		s.Kind = Chained
	}
	for i := range b.elements {
		switch e := r.entry(b, i); kindAt(b, i) {
		case "item_reference":
			if !e.own() {
				s.Kind = max(s.Kind, Referencing)
			}
		case "message", "reasoning":
			s.Resends = s.Resends || s.Stored && isString(e.id) && e.role == RoleAssistant && !e.own()
		case "function_call", "custom_tool_call": // some clients leave out the id of a call that they send again
			s.Resends = s.Resends || s.Stored && !e.own()
		case "compaction", "compaction_summary", "context_compaction":
			s.Bound = true
		case "compaction_trigger":
			s.Closed = true
		}
	}
	return s
}

// reasons reports whether the request asks for reasoning.
func (responses) reasons(b *Body) bool {
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
		out = AppendField(out, "reasoning", Object("effort", q.Effort))
	}
	if q.Schema != nil {
		out = AppendField(out, "text", Object("format", Object("type", "json_schema", "name", q.Name, "schema", q.Schema)))
	}
	if q.System != "" {
		out = AppendField(out, "instructions", q.System)
	}
	return AppendField(AppendField(out, "input", q.User), "store", []byte("false"))
}

// Qualified returns the name of a tool with its namespace. For a tool without one namespace is "" or, in calls of a tool that was
// loaded later, the tool's name.
func Qualified(namespace, name string) string {
	if namespace == "" || namespace == name {
		return name
	}
	return namespace + "." + name
}

// ownCalls lists the types of tools whose calls are items of a type of their own. It leaves out
// mcp and tool_search, with which the model may call tools that the request does not list.
var ownCalls = [...]string{
	"web_search", "web_search_preview", "file_search", "code_interpreter", "image_generation", "computer", "computer_use_preview",
	"local_shell", "shell", "apply_patch",
}

func (r responses) tools(whole, list []byte) (tools []Tool) {
	for raw := range elementsOf(list) {
		t := toolIn(whole, raw)
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
