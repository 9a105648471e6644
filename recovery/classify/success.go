package classify

import (
	"strings"

	"github.com/tidwall/gjson"
)

// noteLabel notes a field that marks an object as an error or as a model's answer.
func (v *view) noteLabel(key, s string) {
	switch key {
	case "error":
		v.hasError = true
	case "object", "type":
		v.hasError = v.hasError || s == "error"
		v.envelope = v.envelope || strings.HasPrefix(s, "chat.completion") || strings.HasPrefix(s, "response")
	case "role": // a message that is the whole answer
		if s == "assistant" {
			v.envelope, v.hasOutput = true, true
		}
	}
}

// skipInAnswer reports whether a value of a successful answer is the model's output
// or an echo of the request, and thus never an error. It also notes the envelope.
func (v *view) skipInAnswer(r gjson.Result, key string) bool {
	if v.http >= 400 || !r.IsObject() && !r.IsArray() {
		return false
	}
	switch key {
	case "error":
		v.hasError = true
	case "choices", "candidates", "output":
		v.envelope, v.hasOutput = true, v.hasOutput || len(r.Raw) > len("[ ]")
		return key == "output"
	case "delta", "logprobs", "instructions", "tools", "messages":
		return true
	case "message", "content", "text", "metadata":
		return !v.hasError
	}
	return false
}

// emptyAnswer reports whether the body of a successful answer is an envelope without
// an error: it has output, or a success code, or neither a code nor a text.
func (v *view) emptyAnswer() bool {
	if v.hasError || !v.envelope {
		return false
	}
	switch strings.ToLower(v.Code) {
	case "":
		return v.hasOutput || len(v.texts) == 0
	case "0", "200", "ok", "success":
		return true
	}
	return v.hasOutput
}
