package transcript

import (
	"fmt"
	"slices"
)

// Editor collects changes to a body. Nothing happens before Apply, and the body
// itself never changes. A change applies on top of earlier ones; the indexes of
// messages are always those of the body. Apply returns the first impossible
// change as its error. The caller must not change the bytes it passes in
// until then. Not safe for concurrent use.
type Editor struct {
	body    *Body
	fields  []change
	history map[int]*elementChanges // by element index
	tail    [][]byte                // appended messages
	splices []Splice                // from Replace
	model   []byte                  // the new model, as long as it is the only change
	err     error
}

// elementChanges is the changes to one element of the history.
type elementChanges struct {
	before  [][]byte // elements inserted before it
	behind  [][]byte // elements inserted behind it
	removed bool
	whole   []byte   // its replacement
	fields  []change // changes to its fields, or to those of whole
}

func (h *elementChanges) remove()            { h.removed, h.whole, h.fields = true, nil, nil }
func (h *elementChanges) replace(raw []byte) { h.whole, h.removed, h.fields = raw, false, nil }
func (h *elementChanges) set(name string, raw []byte) {
	h.fields = append(h.fields, setField(name, raw))
}
func (h *elementChanges) unset(name string) {
	h.fields = append(h.fields, unsetField(name))
}
func (h *elementChanges) after(raw []byte) { h.behind = append(h.behind, raw) }

// change is one change to a field of an object.
type change struct {
	kind uint8
	name string
	raw  []byte // changeSet
	to   string // changeRename
}

const (
	changeSet uint8 = iota
	changeDelete
	changeRename
)

func setField(name string, raw []byte) change { return change{kind: changeSet, name: name, raw: raw} }
func unsetField(name string) change           { return change{kind: changeDelete, name: name} }

// Edit returns an editor without changes.
func (b *Body) Edit() *Editor { return &Editor{body: b} }

// Changed reports whether the edit has any changes.
func (e *Editor) Changed() bool {
	return e.model != nil || len(e.fields)+len(e.history)+len(e.tail)+len(e.splices) > 0
}

// Set sets a top-level field: in its place if the field exists, else
// as the last field. raw is one JSON value.
func (e *Editor) Set(field string, raw []byte) *Editor {
	if e.accept(raw, "field "+field) {
		e.change(setField(field, raw))
	}
	return e
}

// SetModel sets the model. As the only change, this costs one copy of the body.
func (e *Editor) SetModel(name string) *Editor {
	if !e.Changed() {
		e.model = String(name)
		return e
	}
	e.change(setField(modelField, String(name)))
	return e
}

// Delete removes a top-level field, with its comma, if it exists.
func (e *Editor) Delete(field string) *Editor {
	e.change(unsetField(field))
	return e
}

// Rename changes the name of a top-level field, if it exists; its value and place
// stay. If the new name is taken, the edit fails.
func (e *Editor) Rename(from, to string) *Editor {
	e.change(change{kind: changeRename, name: from, to: to})
	return e
}

// SetRole changes the role of all messages with the role from.
func (e *Editor) SetRole(from, to string) *Editor {
	for i, m := range e.body.Messages() {
		if m.Role == from {
			if h := e.history[int(m.first)]; h == nil || h.whole == nil {
				e.SetRoleOf(i, to)
			}
		}
	}
	return e
}

// AppendMessage adds a message at the end of the history.
func (e *Editor) AppendMessage(raw []byte) *Editor {
	if e.accept(raw, "appended message") {
		e.general()
		e.tail = append(e.tail, raw)
	}
	return e
}

// InsertMessage adds a message before message i, after messages that were
// inserted there earlier.
func (e *Editor) InsertMessage(i int, raw []byte) *Editor {
	if e.accept(raw, "inserted message") {
		if m, ok := e.at(i); ok {
			h := e.element(int(m.first))
			h.before = append(h.before, raw)
		}
	}
	return e
}

// ReplaceMessage replaces message i.
func (e *Editor) ReplaceMessage(i int, raw []byte) *Editor {
	if e.accept(raw, "replaced message") {
		if m, ok := e.at(i); ok {
			e.RemoveMessage(i).element(int(m.first)).replace(raw)
		}
	}
	return e
}

// RemoveMessage removes message i.
func (e *Editor) RemoveMessage(i int) *Editor {
	e.each(i, func(n int) { e.element(n).remove() })
	return e
}

// SetMessageField is Set for a field of message i or of its replacement; if the message
// has several elements, for the first.
func (e *Editor) SetMessageField(i int, field string, raw []byte) *Editor {
	if e.accept(raw, "message field "+field) {
		if m, ok := e.at(i); ok {
			e.element(int(m.first)).set(field, raw)
		}
	}
	return e
}

// DeleteMessageField is Delete for a field of message i or of its replacement.
func (e *Editor) DeleteMessageField(i int, field string) *Editor {
	e.each(i, func(n int) { e.element(n).unset(field) })
	return e
}

// Replace replaces the JSON value at a position in the body, such as a call's
// arguments. The position must not overlap another change.
func (e *Editor) Replace(at Span, raw []byte) *Editor {
	if at.Start < 0 || at.End < at.Start || at.End > len(e.body.raw) {
		e.fail("no bytes %d to %d in this body", at.Start, at.End)
	} else if e.accept(raw, "replaced value") {
		e.general()
		e.splices = append(e.splices, Splice{at.Start, at.End, raw})
	}
	return e
}

// splice replaces a part of the body that was sliced without limiting its capacity.
func (e *Editor) splice(part, raw []byte) *Editor {
	at := e.body.span(part)
	e.splices = append(e.splices, Splice{at.Start, at.End, raw})
	return e
}

// Apply returns the edited body and validates it as Parse does. Without any
// effective change it returns the body's own bytes. An error means that the
// edit is impossible or the result invalid; the caller should then use the
// original.
func (e *Editor) Apply() ([]byte, error) {
	if raw, ok := e.onlyModel(); ok {
		return raw, nil
	}
	b, err := e.Body()
	if err != nil {
		return nil, err
	}
	return b.raw, nil
}

// Body is Apply, but returns the edited body parsed.
func (e *Editor) Body() (*Body, error) {
	raw, ok := e.onlyModel()
	if !ok {
		e.general()
		splices, err := e.allSplices()
		if err != nil {
			return nil, fmt.Errorf("editing a body: %w", err)
		}
		if len(splices) == 0 {
			return e.body, nil
		}
		if raw, err = Spliced(e.body.raw, splices); err != nil {
			return nil, fmt.Errorf("editing a body: %w", err)
		}
	}
	b, err := Parse(raw, e.body.format, e.body.limits)
	if err != nil {
		return nil, fmt.Errorf("editing a body: the result is invalid: %w", err)
	}
	return b, nil
}

// onlyModel is the fast path of SetModel: a string in the place of a string needs no validation.
func (e *Editor) onlyModel() ([]byte, bool) {
	if e.model == nil || e.err != nil {
		return nil, false
	}
	f := e.body.find(modelField)
	if f == nil {
		return nil, false
	}
	raw := e.body.raw
	out := make([]byte, 0, len(raw)-int(f.valEnd-f.val)+len(e.model))
	out = append(append(out, raw[:f.val]...), e.model...)
	return append(out, raw[f.valEnd:]...), true
}

// general leaves the fast path.
func (e *Editor) general() {
	if e.model != nil {
		e.fields = append(e.fields, setField(modelField, e.model))
		e.model = nil
	}
}

func (e *Editor) change(c change) {
	e.general()
	e.fields = append(e.fields, c)
}

func (e *Editor) fail(format string, args ...any) {
	if e.err == nil {
		e.err = fmt.Errorf(format, args...)
	}
}

// accept validates a value from the caller: a complete JSON value cannot
// change the structure around it.
func (e *Editor) accept(raw []byte, what string) bool {
	if err := Valid(raw, e.body.limits.Depth); err != nil {
		e.fail("%s: %w", what, err)
		return false
	}
	return true
}

// at returns message i; if there is none, the edit fails.
func (e *Editor) at(i int) (m Message, ok bool) {
	list := e.body.Messages()
	if i < 0 || i >= len(list) {
		e.fail("no message %d in a history of %d", i, len(list))
		return m, false
	}
	return list[i], true
}

// each calls do with the elements of message i.
func (e *Editor) each(i int, do func(n int)) {
	if m, ok := e.at(i); ok {
		for n := m.first; n < m.first+m.count; n++ {
			do(int(n))
		}
	}
}

// element returns the changes to element n, for more to be added.
func (e *Editor) element(n int) *elementChanges {
	e.general()
	if e.history == nil {
		e.history = make(map[int]*elementChanges)
	}
	h := e.history[n]
	if h == nil {
		h = new(elementChanges)
		e.history[n] = h
	}
	return h
}

// allSplices turns the changes into splices.
func (e *Editor) allSplices() ([]Splice, error) {
	if e.err != nil {
		return nil, e.err
	}
	b := e.body
	e.keepReasoning()
	out := slices.Clone(e.splices)
	if len(e.fields) > 0 {
		slots := make([]slot, len(b.fields), len(b.fields)+len(e.fields))
		for i := range slots {
			f := &b.fields[i]
			slots[i] = slot{name: string(b.name(f)), key: int(f.key), keyEnd: int(f.keyEnd), val: int(f.val), valEnd: int(f.valEnd)}
		}
		slots, err := resolve(slots, e.fields)
		if err != nil {
			return nil, err
		}
		out = emit(out, slots, len(b.fields), slices.Index(b.raw, '{')+1, true)
	}
	if len(e.history) == 0 && len(e.tail) == 0 {
		return out, nil
	}
	list := b.find(b.format.layout().list)
	if list == nil || b.raw[list.val] != '[' && len(b.elements) == 0 {
		return nil, fmt.Errorf("the body has no history")
	}
	for _, c := range e.fields {
		if c.name == string(b.name(list)) {
			return nil, fmt.Errorf("the history is changed both as a field and by message")
		}
	}
	if b.raw[list.val] != '[' {
		return e.stringSplices(out, list), nil
	}
	if b.format.layout().blocks {
		return e.blockSplices(out, list)
	}
	slots := make([]slot, len(b.elements), len(b.elements)+len(e.tail))
	for i, m := range b.elements {
		at, end := int(m.start), int(m.end)
		slots[i] = slot{key: at, keyEnd: at, val: at, valEnd: end}
		if h := e.history[i]; h != nil {
			out = h.appendSplices(out, &slots[i], b.raw)
		}
	}
	for _, raw := range e.tail {
		slots = append(slots, slot{added: true, raw: raw})
	}
	return emit(out, slots, len(b.elements), int(list.val)+1, false), nil
}

// stringSplices returns the changes to a history that is one string, a user's message: it becomes
// a list if messages are added.
func (e *Editor) stringSplices(out []Splice, list *field) []Splice {
	h := e.history[0]
	if h == nil {
		h = new(elementChanges)
	}
	alone := len(h.before)+len(e.tail) == 0
	if alone && h.whole == nil {
		return out
	}
	said := h.whole
	if said == nil {
		said = e.body.raw[list.val:list.valEnd]
	}
	if !alone {
		all := append(slices.Clip(h.before), e.body.note(text(said)))
		said = List(append(all, e.tail...))
	}
	return append(out, Splice{int(list.val), int(list.valEnd), said})
}

// appendSplices puts changes to the whole element into its slot, and changes inside
// it into splices.
func (h *elementChanges) appendSplices(out []Splice, s *slot, raw []byte) []Splice {
	s.before = join(nil, h.before)
	for _, raw := range h.behind {
		s.behind = append(append(s.behind, ','), raw...)
	}
	switch {
	case h.removed && len(h.before) > 0:
		s.raw, s.before = s.before[:len(s.before)-1], nil // the inserted elements, without the last comma, take its place
	case h.removed:
		s.deleted = true
	case h.whole != nil:
		s.raw = changedObject(h.whole, h.fields...)
	case len(h.fields) > 0:
		out = objectSplices(out, raw[s.val:s.valEnd], s.val, h.fields)
	}
	return out
}
