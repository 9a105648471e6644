package repair

import "github.com/rebound-llm/rebound/recovery/transcript"

// Object returns the only JSON object in a text that a schema accepts, unchanged or repaired
// without ambiguity. The bounds are those of the judgement of an answer.
func (m *Mender) Object(text string, raw []byte) (object string, ok bool) {
	if len(text) > maxArguments {
		return "", false
	}
	work := maxAnswerWork
	s := &contentMender{schema: m.schema(raw, &work), workLeft: &work}
	if v, ok := s.valid(text); ok && v != nil {
		return text, true
	}
	object, _ = s.mend(text, true)
	return object, object != ""
}

// Fits reports whether arguments are a JSON object that a tool's schema accepts. One
// that cannot be checked within bounds does not fit.
func (m *Mender) Fits(t transcript.Tool, args string) bool {
	work := maxAnswerWork
	a := argumentMender{mender: m, tool: &t, schema: m.schema(t.Parameters, &work), workLeft: &work}
	return len(args) <= maxArguments && a.valid(args) && !a.unchecked
}
