package stream

import "strings"

// marks are how a call begins in the text of an answer where the server did not
// recognise it: the tags and special tokens of Hermes, Qwen, Llama, Mistral,
// DeepSeek, Kimi, MiniMax and others. Only an answer that begins so is held back.
var marks = [...]string{"<tool_call", "<function=", "<function_call", "<functioncall>", "<TOOLCALL>", "[TOOL_CALLS]",
	"<minimax:tool_call>", "<invoke name=", "<|", "<｜"}

// leaks reports whether the beginning of a text is that of a call; undecided is
// true while more of it is needed to tell.
func leaks(text string) (leak, undecided bool) {
	text = strings.TrimLeft(text, " \t\r\n")
	if text == "" {
		return false, true
	}
	if text[0] != '<' && text[0] != '[' {
		return false, false
	}
	for _, m := range marks {
		if strings.HasPrefix(text, m) {
			return true, false
		}
		undecided = undecided || strings.HasPrefix(m, text)
	}
	return false, undecided
}

// beginning looks at the first text of an answer. free is what was held only
// until it was known.
func (h *hold) beginning() (free Piece) {
	if h.known || h.shown || !h.what.Calls || h.what.Text {
		return Piece{}
	}
	leak, undecided := leaks(string(h.text[:min(len(h.text), 64)]))
	undecided = undecided && len(h.text) < 64
	h.known = !undecided
	switch {
	case leak || undecided:
		h.holding = true
	case h.holding && !h.closing && len(h.calls.list) == 0:
		free = h.dequeue()
	}
	return free
}
