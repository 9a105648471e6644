package transcript

import (
	"bytes"
	"fmt"
)

func (responses) contentField(b *Body, i int) string {
	if kindAt(b, i) == "message" {
		return "content"
	}
	return "output"
}

func (responses) answeredField(b *Body, i int) string {
	switch {
	case isString(b.key(i, keyCallID)):
		return "call_id"
	case kindAt(b, i) == "mcp_approval_response":
		return "approval_request_id"
	}
	return "id"
}

func (responses) shape(m Message) (s Shape) {
	for i := m.first; i < m.first+m.count; i++ {
		s.Reasoning = s.Reasoning || kindAt(m.body, int(i)) == "reasoning"
	}
	for raw := range m.Contents {
		if isString(raw) {
			s.Texts++
			continue
		}
		s.Parts = true
		for part := range elementsOf(raw) {
			if isText(part) {
				s.Texts++
			} else {
				s.Media++
			}
		}
	}
	return s
}

// isPlain reports whether a part has its text in the field that all have it in.
func isPlain(part []byte) bool {
	switch partKind(part) {
	case "input_text", "output_text", "text":
		return true
	}
	return false
}

// inputText is a part with text that was not written by the model.
func inputText(text string, _ []byte) []byte {
	return append(AppendString([]byte(`{"type":"input_text","text":`), text), '}')
}

func (responses) setText(content []byte, text string, media bool) ([]byte, error) {
	if isObject(content) {
		return nil, fmt.Errorf("the content is a picture")
	}
	var printed bool
	var last []byte // of what commands printed, and how the last of them ended
	for part := range elementsOf(content) {
		if last == nil {
			_, printed = member(part, "stdout")
		}
		last = part
	}
	if !printed {
		return setText(content, text, media, isPlain, inputText)
	}
	raw, err := changedObject(last, change{kind: changeSet, name: "stdout", raw: String(text)}, change{kind: changeSet, name: "stderr", raw: []byte(`""`)})
	return append(append([]byte{'['}, raw...), ']'), err
}

func (responses) message(role, text string, _ []byte) []byte {
	kind := "input_text"
	if role == RoleAssistant {
		kind = "output_text"
	}
	raw := append(AppendString([]byte(`{"type":"message","role":`), role), `,"content":[{"type":"`...)
	return append(AppendString(append(append(raw, kind...), `","text":`...), text), `}]}`...)
}

func (r responses) note(text string) []byte { return r.message(RoleUser, text, nil) }

func (responses) appendPart(parts []byte, text string) []byte {
	out := append([]byte(nil), parts[:len(parts)-1]...)
	if !emptyList(parts) {
		out = append(out, ',')
	}
	return append(append(out, inputText(text, nil)...), ']')
}

func (responses) result(c ToolCall, text string) []byte {
	answer := func(kind, id, rest string) []byte {
		raw := append(AppendString([]byte(`{"type":`), kind), `,"`+id+`":`...)
		return append(append(AppendString(raw, c.ID), rest...), '}')
	}
	said := string(String(text))
	switch c.kind {
	case "custom_tool_call", "local_shell_call":
		return answer(c.kind+"_output", "call_id", `,"output":`+said)
	case "shell_call":
		return answer("shell_call_output", "call_id", `,"output":[{"stdout":"","stderr":`+said+`,"outcome":{"type":"timeout"}}]`)
	case "apply_patch_call":
		return answer("apply_patch_call_output", "call_id", `,"status":"failed","output":`+said)
	case "tool_search_call":
		return answer("tool_search_output", "call_id", `,"execution":"client","status":"completed","tools":[]`)
	case "mcp_approval_request":
		return answer("mcp_approval_response", "approval_request_id", `,"approve":false,"reason":`+said)
	case "computer_call":
		return nil // a picture answers it, and there is none
	}
	return answer("function_call_output", "call_id", `,"output":`+said)
}

func (responses) sign([]byte, bool) ([]byte, bool) { return nil, false }

func (responses) definitions(names []string) []byte {
	out := []byte{'['}
	for i, name := range names {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(AppendString(append(out, `{"type":"function","name":`...), name), `,"parameters":{"type":"object","properties":{}},"strict":false}`...)
	}
	return append(out, ']')
}

func (responses) choice(t Tool) []byte {
	if stringField(t.Raw, "name") != t.Name { // a choice cannot name a tool of a namespace
		return []byte(`"required"`)
	}
	kind := t.Type
	if kind == "" {
		kind = KindFunction
	}
	return append(AppendString(append(AppendString([]byte(`{"type":`), kind), `,"name":`...), t.Name), '}')
}

func (responses) textOnly(content []byte) ([]byte, bool) { return textOnly(content, isPlain) }

func (responses) withoutMedia(content []byte, mark string) ([]byte, bool) {
	return withoutMedia(content, mark, isText, inputText)
}

// settle keeps what a server demands of reasoning: behind it stands what it led to,
// and what has an id stands behind the reasoning that it came with.
func (r responses) settle(e *Edit) {
	if len(e.history) == 0 {
		return
	}
	b := e.body
	gone := func(i int) bool { h := e.history[i]; return h != nil && (h.removed || h.whole != nil) }
	led, cut := false, false // what a reasoning led to is there, or was
	for i := len(b.elements) - 1; i >= 0; i-- {
		switch {
		case r.speaker(b, i) != RoleAssistant:
			led, cut = false, false
		case gone(i):
			cut = true
		case kindAt(b, i) != "reasoning":
			led = true
		case cut && !led:
			e.element(i).remove()
		}
	}
	lost := false
	for i := range b.elements {
		switch role := r.speaker(b, i); {
		case role == RoleTool:
		case role != RoleAssistant:
			lost = false
		case kindAt(b, i) == "reasoning":
			lost = gone(i)
		case lost && !gone(i):
			loseID(e, i)
		}
	}
}

// loseID takes the id out that the server gave to an item, unless the item is nothing without it.
func loseID(e *Edit, i int) bool {
	switch kindAt(e.body, i) {
	case "item_reference", "mcp_approval_request", "local_shell_call_output":
		return false
	}
	if e.body.key(i, keyID) == nil {
		return false
	}
	e.element(i).unset("id")
	return true
}

func (r responses) loseReasoning(e *Edit, lose func(n int) bool) (changed bool) {
	n := 0
	if lose == nil {
		changed = r.loseIDs(e) // by which what it led to asks for it
	}
	for i := range e.body.elements {
		if kindAt(e.body, i) != "reasoning" {
			continue
		}
		if lose == nil || lose(n) {
			e.element(i).remove()
			changed = true
		}
		n++
	}
	return changed // the ids of what some of it led to go when the edit settles
}

// own reports whether item i has an id of ours.
func own(b *Body, i int) bool {
	_, id, _ := bytes.Cut(b.key(i, keyID), []byte("_"))
	return bytes.HasPrefix(id, []byte(OwnMark))
}

func (responses) hasOwn(b *Body) bool {
	for i := range b.elements {
		if own(b, i) {
			return true
		}
	}
	return false
}

func (responses) loseOwn(e *Edit) (changed bool) {
	for i := range e.body.elements {
		switch {
		case !own(e.body, i):
			continue
		case kindAt(e.body, i) == "item_reference":
			e.element(i).remove()
		default:
			e.element(i).unset("id")
		}
		changed = true
	}
	return changed
}

func (responses) sealed(b *Body) (n int, ok bool) {
	for i := range b.elements {
		if kindAt(b, i) == "reasoning" {
			n++
		}
	}
	return n, true
}

func (responses) loseIDs(e *Edit) (changed bool) {
	for i := range e.body.elements {
		changed = loseID(e, i) || changed
	}
	return changed
}
