package session

import (
	"bytes"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// beginning holds the indexes of the messages that identify a conversation.
type beginning struct {
	user        int // first message of the user, -1 if there is none
	prompt      int // the user's last message before the first answer
	answer, end int // the first answer: assistant messages in a row, from answer to before end
}

// findBeginning returns the beginning of a conversation; ok is false while there is no answer. An assistant message at the
// end of the request is not an answer yet: the model must continue it.
func findBeginning(b *transcript.Body) (begin beginning, ok bool) {
	list := b.Messages()
	begin.user, begin.prompt = -1, -1
	for i := 0; i < len(list); i++ {
		switch list[i].Role {
		case transcript.RoleUser:
			begin.prompt = i
			if begin.user < 0 {
				begin.user = i
			}
		case transcript.RoleAssistant:
			begin.answer, begin.end = i, i+1
			for begin.end < len(list) && list[begin.end].Role == transcript.RoleAssistant {
				begin.end++
			}
			if begin.end == len(list) {
				return begin, false
			}
			i = begin.end - 1
			// The application itself writes a greeting before the user's first message, and the
			// acknowledgement of a preamble.
			if begin.user >= 0 && !(begin.end == begin.answer+1 && acknowledges(b, list[begin.answer])) {
				return begin, true
			}
		}
	}
	return begin, false
}

// acknowledges reports whether an assistant message is an acknowledgement that clients write themselves, in the model's
// name, after a preamble. If a model really writes it, its session begins one answer later.
func acknowledges(b *transcript.Body, m transcript.Message) bool {
	if m.End-m.Start > 256 {
		return false
	}
	text, ok := plain(b, m)
	if !ok || bytes.IndexByte(text, '\\') >= 0 {
		text = m.AppendText(nil)
	}
	if text = bytes.Trim(text, " \t\r\n.!"); len(text) == 0 {
		return false
	}
	switch string(bytes.ToLower(text)) {
	case "got it. thanks for the context", // Gemini CLI, qwen-code
		"got it", "ok", "okay", "understood", "i understand": // aider and others
		return len(m.ToolCalls()) == 0
	}
	return false
}
