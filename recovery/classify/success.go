package classify

import (
	"strings"

	"github.com/tidwall/gjson"
)

// noteLabel notes a field that marks an object as an error or as a model's answer.
func (v *view) noteLabel(key, s string) {
	switch key {
	case "error":
		v.hasError = v.hasError || s != "false" && s != "0"
	case "success", "ok":
		v.hasError = v.hasError || s == "false"
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
	case "error", "errors":
		v.hasError = v.hasError || len(r.Raw) > len("[ ]")
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
	switch {
	case v.Code == "":
		return v.hasOutput || len(v.texts) == 0
	case v.successful():
		return true
	}
	return v.hasOutput
}

// successful reports whether the body's code says that all is well.
func (v *view) successful() bool {
	switch strings.ToLower(v.Code) {
	case "0", "200", "ok", "success":
		return true
	}
	return false
}

// accused reports whether the complete body of a success says that something failed: by a
// mark of its own, or because it is a text and no JSON. A text in JSON is no such mark: some
// servers answer in a form of their own.
func (v *view) accused() bool {
	if v.plain {
		return len(v.texts)+len(v.codes) > 0
	}
	return v.hasError || v.Code != "" && len(v.texts) > 0 && !v.successful()
}

// says reports whether a text field of a success may be an error's message; others hold the
// model's text in some servers' own forms, as generated_text does.
func (v *view) says(key string) bool {
	key = plainKey(key)
	return v.http >= 400 || v.hasError || !strings.HasSuffix(key, "text") || strings.HasPrefix(key, "err")
}
