package classify

import (
	"strings"

	"github.com/tidwall/gjson"
)

// label notes what the label of an object says that it is.
func (v *view) label(key, s string) {
	switch key {
	case "error":
		v.fault = true
	case "object", "type":
		v.fault = v.fault || s == "error"
		v.shell = v.shell || strings.HasPrefix(s, "chat.completion") || strings.HasPrefix(s, "response")
	case "role": // of a message that is the answer as a whole
		if s == "assistant" {
			v.shell, v.answer = true, true
		}
	}
}

// ofAnswer reports whether a value is what the model wrote, or an echo of the
// request, in the envelope of an answer: it is no error, whatever it says. It notes
// that there is such an envelope.
func (v *view) ofAnswer(r gjson.Result, key string) bool {
	if v.http >= 400 || !r.IsObject() && !r.IsArray() {
		return false
	}
	switch key {
	case "error":
		v.fault = true
	case "choices", "candidates", "output":
		v.shell, v.answer = true, v.answer || len(r.Raw) > len("[ ]")
		return key == "output"
	case "delta", "logprobs", "instructions", "tools", "messages":
		return true
	case "message", "content", "text", "metadata":
		return !v.fault
	}
	return false
}

// emptyAnswer reports whether a body under a status of success is an answer's envelope
// that says nothing else: no sentence, and no code but one of success.
func (v *view) emptyAnswer() bool {
	if v.fault || !v.shell {
		return false
	}
	switch strings.ToLower(v.Code) {
	case "":
		return v.answer || len(v.texts) == 0
	case "0", "200", "ok", "success":
		return true
	}
	return v.answer
}
