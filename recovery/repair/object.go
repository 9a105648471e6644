package repair

import "github.com/rebound-llm/rebound/recovery/transcript"

// Object finds the one JSON object in a text that a schema accepts: as it stands, or
// mended where it can only mean one thing. It is bounded as the judgement of an answer is.
func (m *Mender) Object(text string, raw []byte) (object string, ok bool) {
	if len(text) > maxArguments {
		return "", false
	}
	work := maxJudged
	s := &structure{schema: m.schemas.get(raw, &work), work: &work}
	if v, ok := s.valid(text); ok && v != nil {
		return text, true
	}
	object, _ = s.mend(text, true)
	return object, object != ""
}

// Fits reports whether arguments are a JSON object that a tool's schema accepts. One
// that cannot be checked within bounds does not fit.
func (m *Mender) Fits(t transcript.Tool, args string) bool {
	work := maxJudged
	a := arguments{mender: m, tool: &t, schema: m.schemas.get(t.Parameters, &work), work: &work}
	return len(args) <= maxArguments && a.valid(args) && !a.skipped
}
