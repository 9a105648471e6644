package transcript

import "encoding/json"

// Turn is the content behind the id of an answer that a client expects the server to store:
// the history of its request and the elements of the answer.
type Turn struct {
	Previous string          `json:"previous,omitempty"` // the id of the answer that it continues, which the server has
	Elements json.RawMessage `json:"elements"`           // a list of the history's and the answer's elements
	IDs      []string        `json:"ids,omitempty"`      // the ids by which a client may refer to elements of the answer
}

// Turn returns the Turn of an answer to this request, whose elements are in the list output, and
// these elements by their ids. A nil element cannot be sent again, such as reasoning that no server has.
func (b *Body) Turn(output []byte) (t Turn, elements map[string][]byte) {
	previous, _ := b.Field("previous_response_id")
	t.Previous = text(previous)
	list := b.expanded(nil)
	elements = map[string][]byte{}
	for raw := range elementsOf(output) {
		again := resendable(raw)
		if again != nil {
			list = append(list, again)
		}
		if id := stringField(raw, "id"); id != "" {
			t.IDs, elements[id] = append(t.IDs, id), again
		}
	}
	t.Elements = List(list)
	return t, elements
}

// Referred returns the ids in the request that only a server can resolve: that of the answer that it
// continues, "" for none, and those of the latest item references and reasoning items, at most most.
func (b *Body) Referred(most int) (previous string, ids []string) {
	if b.format != Responses {
		return "", nil
	}
	raw, _ := b.Field("previous_response_id")
	for i := len(b.elements) - 1; i >= 0 && len(ids) < most; i-- {
		if id := text(b.key(i, keyID)); id != "" && (kindAt(b, i) == "item_reference" || b.unsealed(i)) {
			ids = append(ids, id)
		}
	}
	return text(raw), ids
}

// WriteOut replaces ids that a server does not have by their content: the turn that the request
// continues, nil for none, and elements by their ids.
func (e *Editor) WriteOut(previous *Turn, elements map[string][]byte) *Editor {
	list := e.body.expanded(elements)
	if previous != nil {
		var before [][]byte
		for raw := range elementsOf(previous.Elements) {
			before = append(before, clipped(raw))
		}
		list = append(before, list...)
		if e.Delete("previous_response_id"); previous.Previous != "" {
			e.Set("previous_response_id", String(previous.Previous))
		}
	}
	return e.Set("input", List(list))
}

// unsealed reports whether an element is reasoning without its sealed content, which only its server has.
func (b *Body) unsealed(i int) bool {
	if kindAt(b, i) != "reasoning" {
		return false
	}
	sealed, _ := member(b.element(i), "encrypted_content")
	return len(text(sealed)) == 0
}

// expanded lists the elements of the history. A reference to one of elements becomes that element, or is
// dropped if that is nil; items that follow removed reasoning lose their ids.
func (b *Body) expanded(elements map[string][]byte) (list [][]byte) {
	lost := false
	for i := range b.elements {
		raw, kind := b.element(i), kindAt(b, i)
		whole, known := elements[text(b.key(i, keyID))]
		switch {
		case raw[0] == '"': // the whole history is one message
			raw = Object("role", RoleUser, "content", raw)
		case known && kind == "item_reference":
			raw = whole
		case known && b.unsealed(i):
			raw, lost = nil, true
		case lost && b.entry(i).role != RoleAssistant:
			lost = false
		case lost:
			if again := resendable(raw); again != nil {
				raw = again
			}
		}
		if len(raw) > 0 {
			list = append(list, raw)
		}
	}
	return list
}

// resendable returns an element of an answer without its id, for a server that has not stored it; nil for
// reasoning and for calls of a provider's own tools, which are meaningless without their ids.
func resendable(raw []byte) []byte {
	kind := stringField(raw, "type")
	if c, ok := callFields[kind]; kind != "message" && (!ok || c.id != "call_id") {
		return nil
	}
	out := []byte{'{'}
	for name, v := range fieldsOf(raw) {
		if string(name) == "id" {
			continue
		}
		out = AppendField(out, string(name), v)
	}
	return append(out, '}')
}
