package transcript

import (
	"bytes"
	"encoding/json"
)

// Turn is what the id of an answer stands for that a server was to keep and does not have:
// the history that it answered, and what it said.
type Turn struct {
	Previous string          `json:"previous,omitempty"` // the answer that it goes on from, which the server knows
	Elements json.RawMessage `json:"elements"`           // a list
	IDs      []string        `json:"ids,omitempty"`      // under which elements of the answer may be named
}

// Turn returns what an answer to this request stands for, whose elements output lists, and those
// of them by their ids: empty ones cannot be told again, as reasoning that no server has.
func (b *Body) Turn(output []byte) (t Turn, elements map[string][]byte) {
	previous, _ := b.Field("previous_response_id")
	t.Previous = text(previous)
	list := b.expanded(nil)
	elements = map[string][]byte{}
	for raw := range elementsOf(output) {
		again := retold(raw)
		if again != nil {
			list = append(list, again)
		}
		if id := stringField(raw, "id"); id != "" {
			t.IDs, elements[id] = append(t.IDs, id), again
		}
	}
	t.Elements = arrayOf(list)
	return t, elements
}

// Referred returns what of the request only a server knows: the answer that it goes on from, empty
// for none, and at most so many of the elements, the latest: those that it names, and reasoning.
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

// WriteOut puts what a server does not have in the place of its names: the turn that the request
// goes on from, nil for none, and elements by their ids.
func (e *Edit) WriteOut(previous *Turn, elements map[string][]byte) *Edit {
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
	return e.Set("input", arrayOf(list))
}

// unsealed reports whether an element is reasoning that only its server has.
func (b *Body) unsealed(i int) bool {
	if kindAt(b, i) != "reasoning" {
		return false
	}
	sealed, _ := member(b.element(i), "encrypted_content")
	return len(text(sealed)) == 0
}

// expanded lists the elements of the history. A reference to one of elements becomes that element, or nothing;
// what reasoning led to that is gone has no id.
func (b *Body) expanded(elements map[string][]byte) (list [][]byte) {
	lost := false
	for i := range b.elements {
		raw, kind := b.element(i), kindAt(b, i)
		whole, known := elements[text(b.key(i, keyID))]
		switch {
		case raw[0] == '"': // the whole history is one message
			raw = append(append([]byte(`{"role":"user","content":`), raw...), '}')
		case known && kind == "item_reference":
			raw = whole
		case known && b.unsealed(i):
			raw, lost = nil, true
		case lost && b.entry(i).role != RoleAssistant:
			lost = false
		case lost:
			if again := retold(raw); again != nil {
				raw = again
			}
		}
		if len(raw) > 0 {
			list = append(list, raw)
		}
	}
	return list
}

// retold is an element of an answer as a client tells it to a server that does not know it; nil if
// that cannot be: what a provider's own tool did, and reasoning, are nothing without their ids.
func retold(raw []byte) []byte {
	kind := stringField(raw, "type")
	if c, ok := called[kind]; kind != "message" && (!ok || c.id != "call_id") {
		return nil
	}
	out := []byte{'{'}
	for name, v := range fieldsOf(raw) {
		if string(name) == "id" {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, String(string(name))...), ':'), v...)
	}
	return append(out, '}')
}

func arrayOf(list [][]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(list, []byte{','})...), ']')
}
