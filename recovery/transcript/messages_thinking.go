package transcript

import (
	"bytes"
	"strings"
)

// thoughts counts the blocks of thinking in the history.
func (b *Body) thoughts() (n int) {
	for i := range b.elements {
		for block := range b.thinkingIn(i) {
			if isThought(block) {
				n++
			}
		}
	}
	return n
}

// thinkingIn are the blocks of element i, none where no thinking is among them.
func (b *Body) thinkingIn(i int) func(yield func([]byte) bool) {
	content := b.key(i, keyContent)
	if b.elements[i].split > 0 || !isList(content) || !bytes.Contains(content, []byte("thinking")) || roleOf(b.key(i, keyRole)) != RoleAssistant {
		return func(func([]byte) bool) {}
	}
	return elementsOf(content)
}

func isThought(block []byte) bool {
	switch blockType(block) {
	case "thinking", "redacted_thinking":
		return true
	}
	return false
}

// openTurn is the first element behind the last message of a person: since then the model has
// called tools and was answered, and what it thought belongs to what it will say.
func (b *Body) openTurn() int {
	for i := len(b.elements) - 1; i >= 0; i-- {
		if b.elements[i].split == 0 && roleOf(b.key(i, keyRole)) == RoleUser {
			return i + 1
		}
	}
	return 0
}

// LoseFinishedReasoning takes out the reasoning of finished turns, where it stands beside what it
// led to. It reports whether there was any.
func (e *Edit) LoseFinishedReasoning() (changed bool) {
	return e.body.format.layout().blocks && e.loseThoughts(func(_ int, open bool) bool { return !open })
}

// loseThoughts takes blocks of thinking out: of the n-th, counted from 0, if lose says so; open
// tells that it belongs to the turn under way. Where that loses some, the model does not think
// for this request, since it would have to go on from what is gone.
func (e *Edit) loseThoughts(lose func(n int, open bool) bool) (changed bool) {
	b, n, turn, broken := e.body, 0, e.body.openTurn(), false
	for i := range b.elements {
		var left [][]byte
		lost := false
		for block := range b.thinkingIn(i) {
			if !isThought(block) {
				left = append(left, block)
				continue
			}
			if lose(n, i >= turn) {
				lost, broken = true, broken || i >= turn
			} else {
				left = append(left, block)
			}
			n++
		}
		switch {
		case !lost:
			continue
		case len(left) == 0:
			e.element(i).remove()
		default:
			e.setContent(i, append(append([]byte{'['}, bytes.Join(left, []byte{','})...), ']'))
		}
		changed = true
	}
	if broken && b.Reasoning() {
		e.stopThinking()
	}
	return changed
}

// stopThinking has the model not think, and takes out what is refused without.
func (e *Edit) stopThinking() {
	e.Set("thinking", []byte(`{"type":"disabled"}`))
	manage, ok := e.body.Field("context_management")
	if !ok {
		return
	}
	list, _ := member(manage, "edits")
	var left [][]byte
	all := 0
	for edit := range elementsOf(list) {
		if all++; !strings.HasPrefix(blockType(edit), "clear_thinking") {
			left = append(left, edit)
		}
	}
	switch {
	case len(left) == all:
	case len(left) == 0:
		e.Delete("context_management")
	default:
		raw := append(append([]byte{'['}, bytes.Join(left, []byte{','})...), ']')
		if whole, err := changedObject(manage, change{kind: changeSet, name: "edits", raw: raw}); err == nil {
			e.Set("context_management", whole)
		}
	}
}
