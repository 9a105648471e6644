package transcript

import (
	"bytes"
	"strings"
)

// usualKinds are the types of items of which most histories consist. They are asked for
// again and again, and found out while the body is indexed. The first stands for all others.
var usualKinds = [...]string{"", "message", "reasoning", "function_call", "function_call_output"}

// usualKind is where a type stands in usualKinds.
func usualKind(raw []byte) uint8 {
	if isString(raw) {
		for i := 1; i < len(usualKinds); i++ {
			if string(raw[1:len(raw)-1]) == usualKinds[i] {
				return uint8(i)
			}
		}
	}
	return 0
}

// kindAt is the type of item i. A message may lack it.
func kindAt(b *Body, i int) string {
	if k := b.elements[i].kind; k > 0 {
		return usualKinds[k]
	}
	raw := b.key(i, keyKind)
	if !isString(raw) {
		switch {
		case b.key(i, keyRole) != nil, b.raw[b.elements[i].start] == '"': // the whole input is a string
			return "message"
		case len(raw) == 0 || isNull(raw):
			return "item_reference" // as its type may be left out, too
		}
		return ""
	}
	return text(raw)
}

// called is where a call has what, by its type. Those that are not here run on the
// server, with nothing for the client to answer.
var called = map[string]struct {
	name      string // of the tool; "" where the call says it
	id        string // the field that its result repeats
	arguments string
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

// isCall reports whether item i is a call that the client answers. A search for tools
// is one if it has an id to answer to.
func isCall(b *Body, i int) bool {
	kind := kindAt(b, i)
	switch kind {
	case "function_call":
		return true
	case "message", "reasoning", "function_call_output":
		return false
	}
	c, ok := called[kind]
	return ok && (c.id != "call_id" || isString(b.key(i, keyCallID)))
}

func (responses) speaker(b *Body, i int) string {
	switch kind := kindAt(b, i); kind {
	case "message":
		if b.key(i, keyRole) == nil {
			return RoleUser
		}
		return roleOf(b.key(i, keyRole))
	case "reasoning", "function_call":
		return RoleAssistant
	case "function_call_output", "mcp_approval_response":
		return RoleTool
	case "compaction", "compaction_summary", "context_compaction", "compaction_trigger", "additional_tools", "configuration_update":
		return RoleOpaque
	default:
		if strings.HasSuffix(kind, "_output") && answeredID(b, i) != nil {
			return RoleTool
		}
		if role := roleOf(b.key(i, keyRole)); role != "" && role != RoleAssistant {
			return RoleOpaque
		}
		return RoleAssistant // what the model did, also where that is not known
	}
}

func (responses) content(b *Body, i int) []byte {
	switch kindAt(b, i) {
	case "message":
		if b.raw[b.elements[i].start] == '"' {
			return b.element(i)
		}
		return b.key(i, keyContent)
	case "function_call_output":
		return b.key(i, keyContent)
	case "reasoning", "function_call":
		return nil
	}
	if (responses{}).speaker(b, i) != RoleTool {
		return nil
	}
	return b.key(i, keyContent)
}

func (responses) answered(b *Body, i int) []byte {
	if kindAt(b, i) == "function_call_output" {
		return b.key(i, keyCallID)
	}
	return answeredID(b, i)
}

// answeredID is the id of the call that an item answers, nil if it answers none.
func answeredID(b *Body, i int) []byte {
	if id := b.key(i, keyCallID); isString(id) {
		return id
	}
	switch kindAt(b, i) {
	case "mcp_approval_response":
		id, _ := member(b.element(i), "approval_request_id")
		return id
	case "local_shell_call_output":
		return b.key(i, keyID)
	}
	return nil
}

func (responses) calling(m Message) bool {
	if m.Role != RoleAssistant {
		return false
	}
	for i := m.first; i < m.first+m.count; i++ {
		if isCall(m.body, int(i)) {
			return true
		}
	}
	return false
}

func (responses) appendCalls(calls []ToolCall, m Message) []ToolCall {
	for i := m.first; i < m.first+m.count; i++ {
		if !isCall(m.body, int(i)) {
			continue
		}
		kind := kindAt(m.body, int(i))
		at := called[kind]
		var f callee
		var id, space []byte
		for name, v := range fieldsOf(m.body.element(int(i))) {
			switch string(name) {
			case at.id:
				id = v
			case at.arguments:
				f.arguments = v
			case "name":
				f.name = v
			case "namespace":
				space = v
			}
		}
		c := m.callOf(f, id)
		c.kind = kind
		if at.name != "" {
			c.Name = at.name
		} else if len(space) > 2 {
			c.Name = Qualified(text(space), c.Name)
		}
		calls = append(calls, c)
	}
	return calls
}

// appendText is the text of a content, or of a result: a string, parts, or, for
// the results of a shell, what each command printed and how it ended.
func (responses) appendText(dst, raw []byte) []byte {
	if isString(raw) {
		return appendDecoded(dst, raw)
	}
	from := len(dst)
	add := func(part []byte) {
		if isString(part) && len(part) > 2 {
			if len(dst) > from {
				dst = append(dst, '\n')
			}
			dst = appendDecoded(dst, part)
		}
	}
	for part := range elementsOf(raw) {
		add(part) // where it is a string
		for name, v := range fieldsOf(part) {
			switch string(name) {
			case "text", "refusal", "stdout", "stderr":
				add(v)
			case "outcome":
				if code, ok := member(v, "exit_code"); ok && !isNull(code) && string(code) != "0" {
					dst = append(append(dst, "\nexit code: "...), code...)
				} else if stringField(v, "type") == "timeout" {
					dst = append(dst, "\nthe command timed out"...)
				}
			}
		}
	}
	return dst
}

// appendMedia tells parts apart that are no text: their type, size and ends. The
// payload stands in fields of the part.
func (responses) appendMedia(dst, raw []byte) []byte {
	if isObject(raw) { // a screenshot
		return appendMark(dst, raw)
	}
	for part := range elementsOf(raw) {
		if !isText(part) {
			dst = appendMark(dst, part)
		}
	}
	return dst
}

func appendMark(dst, part []byte) []byte {
	const ends = 256
	dst = append(append(dst, stringField(part, "type")...), ' ')
	dst = appendInt(dst, len(part))
	dst = append(dst, part[:min(ends, len(part))]...)
	return append(dst, part[max(0, len(part)-ends):]...)
}

// asides are the words of reasoning, and of what ran on the server.
func (r responses) asides(b *Body, i int, yield func(raw []byte) bool) bool {
	if kind := kindAt(b, i); kind == "message" || isCall(b, i) || r.speaker(b, i) == RoleTool {
		return true
	}
	for name, v := range fieldsOf(b.element(i)) {
		switch string(name) {
		case "type", "id", "status", "role", "call_id", "encrypted_content", "tools":
		default:
			if !yield(clipped(v)) {
				return false
			}
		}
	}
	return true
}

// isText reports whether a part of a content is nothing but text.
func isText(part []byte) bool {
	if isString(part) {
		return true
	}
	kind, _ := member(part, "type")
	switch string(bytes.Trim(kind, `"`)) {
	case "input_text", "output_text", "text", "refusal", "summary_text", "reasoning_text":
		return true
	case "":
		_, printed := member(part, "stdout")
		return printed
	}
	return false
}
