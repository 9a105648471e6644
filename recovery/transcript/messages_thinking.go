package transcript

import (
	"bytes"
	"strings"
)

// thoughts counts the thinking blocks in the history.
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

// thinkingIn returns the blocks of element i, none if there is no thinking block among them.
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

// openTurn returns the index of the first element behind the user's last own message. Elements
// from there on are calls and results of the current turn, in which the model needs its thinking.
func (b *Body) openTurn() int {
	for i := len(b.elements) - 1; i >= 0; i-- {
		if b.elements[i].split == 0 && roleOf(b.key(i, keyRole)) == RoleUser {
			return i + 1
		}
	}
	return 0
}

// DropFinishedReasoning removes the thinking blocks of finished turns. It reports whether there
// were any. It changes nothing in formats where reasoning is no block of a message.
func (e *Editor) DropFinishedReasoning() (changed bool) {
	return e.body.format.SignsReasoning() && e.dropThinking(func(_ int, open bool) bool { return !open })
}

// dropThinking removes the thinking blocks for which lose returns true: n counts them from 0, open
// means that the block belongs to the current turn. If it removes one of the current turn, it also
// turns thinking off for this request, because the model cannot continue thinking that is gone.
func (e *Editor) dropThinking(lose func(n int, open bool) bool) (changed bool) {
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
			e.setContent(i, List(left))
		}
		changed = true
	}
	if broken && b.Reasoning() {
		e.stopThinking()
	}
	return changed
}

// StopThinking turns thinking off and removes the thinking blocks of the current turn, which
// providers refuse then. It returns false if the model does not think, or in other formats.
func (e *Editor) StopThinking() bool {
	if e.body.format != Messages || !e.body.Reasoning() {
		return false
	}
	e.dropThinking(func(_ int, open bool) bool { return open })
	e.stopThinking()
	return true
}

// stopThinking turns thinking off and removes the context edits that providers refuse without it.
func (e *Editor) stopThinking() {
	e.Set("thinking", []byte(`{"type":"disabled"}`))
	e.dropThinkingEdits()
}

// DropThinkingEdits removes the context edits that providers refuse if the model does not think. It
// reports whether there were any.
func (e *Editor) DropThinkingEdits() bool {
	return e.body.format == Messages && !e.body.Reasoning() && e.dropThinkingEdits()
}

func (e *Editor) dropThinkingEdits() bool {
	manage, ok := e.body.Field("context_management")
	if !ok {
		return false
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
		return false
	case len(left) == 0:
		e.Delete("context_management")
	default:
		e.Set("context_management", changedObject(manage, setField("edits", List(left))))
	}
	return true
}

// DropOption removes a string from the options in a field, if it is level, or "" for any. It reports
// whether there was one.
func (e *Editor) DropOption(field, option, level string) bool {
	options, ok := e.body.Field(field)
	if is := stringField(options, option); !ok || is == "" || level != "" && is != level {
		return false
	}
	if left := changedObject(options, unsetField(option)); filled(left) {
		e.Set(field, left)
	} else {
		e.Delete(field)
	}
	return true
}
