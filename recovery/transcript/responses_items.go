package transcript

import "strings"

// usualKinds are the types of items of which most histories consist.
var usualKinds = [...]string{"message", "reasoning", "function_call", "function_call_output"}

// kindAt returns the type of item i, without an allocation for usual ones. Messages and item references may leave it out.
func kindAt(b *Body, i int) string {
	raw := b.key(i, keyKind)
	if !isString(raw) {
		switch {
		case b.key(i, keyRole) != nil, b.raw[b.elements[i].start] == '"': // the whole input is a string
			return "message"
		case len(raw) == 0 || isNull(raw):
			return "item_reference" // its type may be left out too
		}
		return ""
	}
	for _, usual := range usualKinds {
		if string(nameOf(raw)) == usual {
			return usual
		}
	}
	return text(raw)
}

// callFields lists, by the type of a call, the fields that hold its parts. Calls of other types
// run on the server, so that the client sends no result.
var callFields = map[string]struct {
	name      string // the name of the tool; "" if the call has it in "name"
	id        string // the field whose value its result repeats
	arguments string // the field with the arguments
}{
	"function_call":        {"", "call_id", "arguments"},
	"custom_tool_call":     {"", "call_id", "input"},
	"local_shell_call":     {"local_shell", "call_id", "action"},
	"shell_call":           {"shell", "call_id", "action"},
	"apply_patch_call":     {"apply_patch", "call_id", "operation"},
	"computer_call":        {"computer", "call_id", "action"},
	"tool_search_call":     {"tool_search", "call_id", "arguments"},
	"mcp_approval_request": {"", "id", "arguments"},
}

// isCall reports whether item i is a call that the client answers. A tool_search_call is
// one only if it has a call_id; else the server ran it.
func isCall(b *Body, i int) bool {
	kind := kindAt(b, i)
	switch kind {
	case "function_call":
		return true
	case "message", "reasoning", "function_call_output":
		return false
	}
	c, ok := callFields[kind]
	return ok && (c.id != "call_id" || isString(b.key(i, keyCallID)))
}

func (responses) entry(b *Body, i int) entry {
	kind := kindAt(b, i)
	e := entry{id: b.key(i, keyID), calls: isCall(b, i)}
	e.answers, e.answersField = answeredID(b, i)
	switch kind {
	case "message":
		e.role, e.content, e.contentField = RoleUser, b.key(i, keyContent), "content"
		if raw := b.key(i, keyRole); raw != nil {
			e.role = roleOf(raw)
		}
		if b.raw[b.elements[i].start] == '"' { // the whole input is one
			e.content = b.element(i)
		}
		return e
	case "function_call_output", "mcp_approval_response":
		e.role = RoleTool
	case "reasoning", "function_call":
		e.role, e.reasoning = RoleAssistant, kind == "reasoning"
	case "compaction", "compaction_summary", "context_compaction", "compaction_trigger", "configuration_update":
		e.role = RoleOpaque
	case "additional_tools":
		e.role = RoleOpaque
		e.tools, _ = member(b.element(i), "tools")
	default:
		role := roleOf(b.key(i, keyRole))
		switch {
		case strings.HasSuffix(kind, "_output") && e.answers != nil:
			e.role = RoleTool
		case role != "" && role != RoleAssistant:
			e.role = RoleOpaque
		default:
			e.role = RoleAssistant // an action of the model, also one of an unknown type
		}
		switch kind {
		case "tool_search_output":
			e.tools, _ = member(b.element(i), "tools")
		case "item_reference", "mcp_approval_request", "local_shell_call_output":
			e.idOnly = true
		}
	}
	if e.role == RoleTool {
		e.content, e.contentField = b.key(i, keyContent), "output"
	}
	return e
}

// answeredID returns the id of the call that an item answers, nil if it answers none, and the field that holds it.
func answeredID(b *Body, i int) (id []byte, field string) {
	kind := kindAt(b, i)
	if id := b.key(i, keyCallID); isString(id) || kind == "function_call_output" {
		return id, "call_id"
	}
	switch kind {
	case "mcp_approval_response":
		id, _ := member(b.element(i), "approval_request_id")
		return id, "approval_request_id"
	case "local_shell_call_output":
		return b.key(i, keyID), "id"
	}
	return nil, "id"
}

func (responses) appendCalls(calls []ToolCall, b *Body, i int) []ToolCall {
	if !isCall(b, i) {
		return calls
	}
	kind := kindAt(b, i)
	at := callFields[kind]
	f := callIn(b.element(i), at.id, at.arguments)
	c := b.callOf(f)
	c.kind = kind
	if at.name != "" {
		c.Name = at.name
	} else if len(f.namespace) > 2 {
		c.Name = Qualified(text(f.namespace), c.Name)
	}
	return append(calls, c)
}

// part reads a part of a message or of a result: text, media, or the output of a shell
// command with its exit status.
func (responses) part(raw []byte) (p part) {
	if isString(raw) {
		return part{kind: partText, wire: []byte("text"), plain: true, texts: [2][]byte{raw}}
	}
	for name, v := range fieldsOf(raw) {
		switch string(name) {
		case "type":
			p.wire = nameOf(v)
		case "text", "refusal":
			p.texts[0] = v
		case "stdout":
			p.texts[0], p.printed = v, true
		case "stderr":
			p.texts[1] = v
		case "cache_control":
			if p.mark = v; isNull(v) {
				p.mark = nil
			}
		case "outcome":
			if code, ok := member(v, "exit_code"); ok && !isNull(code) && string(code) != "0" {
				p.end = "\nexit code: " + string(code)
			} else if stringField(v, "type") == "timeout" {
				p.end = "\nthe command timed out"
			}
		}
	}
	switch string(p.wire) {
	case "input_text", "output_text", "text":
		p.kind, p.plain = partText, true
	case "refusal", "summary_text", "reasoning_text":
		p.kind = partText
	case "":
		if p.payload = raw; p.printed {
			p.kind, p.payload = partText, nil
		}
	default:
		p.kind, p.payload = partMedia, raw
	}
	return p
}

// asides yields the words of reasoning and of calls that ran on the server.
func (r responses) asides(b *Body, i int, yield func(aside) bool) bool {
	if e := r.entry(b, i); kindAt(b, i) == "message" || e.calls || e.role == RoleTool {
		return true
	}
	for name, v := range fieldsOf(b.element(i)) {
		switch string(name) {
		case "type", "id", "status", "role", "call_id", "encrypted_content", "tools":
		default:
			if !yield(aside{raw: v, words: true}) {
				return false
			}
		}
	}
	return true
}
