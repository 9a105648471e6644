package repair

import (
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

const ruleContent = "content"

// mendContent validates and repairs the JSON that response_format requires.
func (j *job) mendContent() *recovery.Flaw {
	form, raw := j.req.ContentForm()
	text := j.draft.Text
	if form != transcript.FormObject && form != transcript.FormSchema || j.draft.Shown > 0 || strings.TrimSpace(text) == "" ||
		len(text) > maxArguments || j.draft.Finish == recovery.FinishFilter {
		return nil
	}
	s := &contentMender{schema: j.schema(raw, &j.workLeft), workLeft: &j.workLeft, anyObject: form == transcript.FormObject}
	if s.schema.certainlyAccepts(text) {
		return nil
	}
	if _, ok := s.valid(text); ok {
		return nil
	}
	if out, rules := s.mend(text, j.canClose); out != "" {
		j.text = &out
		j.addRepairs("", append([]string{ruleContent}, rules...)...)
		return nil
	}
	if j.draft.Finish == recovery.FinishLength {
		if _, _, set := j.req.OutputLimit(); set {
			return nil // the client's own limit would cut another answer too, and the finish reason tells the client
		}
		return &recovery.Flaw{Kind: recovery.FlawTruncated, Limited: true, Quote: text, Problem: "the output limit cut the JSON; make it shorter"}
	}
	return &recovery.Flaw{Kind: recovery.FlawContent, Quote: text, Problem: "the answer must be JSON as the request describes it, and nothing else: " + s.problem}
}

// contentMender validates and repairs text that must be JSON.
type contentMender struct {
	schema    *schema
	workLeft  *int // of the whole answer
	anyObject bool // the value must be an object
	problem   string
}

// valid parses text and reports whether it is accepted unchanged.
func (s *contentMender) valid(text string) (v *value, ok bool) {
	if err := transcript.Valid([]byte(text), maxDepth); err != nil {
		s.problem = err.Error()
		return nil, false
	}
	v, _, err := readTolerant(text, false)
	if err != nil {
		return nil, true // the JSON is valid but ambiguous, such as a repeated name: the client decides
	}
	return v, s.accepts(v)
}

func (s *contentMender) accepts(v *value) bool {
	if s.anyObject && v.kind != kindObject || v.kind < kindArray && s.schema.compiled == nil {
		s.problem = "it is not a JSON object"
		return false
	}
	if s.schema.compiled == nil {
		return true
	}
	failure, _ := s.schema.check(v.decoded(), s.workLeft)
	if failure != nil {
		s.problem = explain(failure)
	}
	return failure == nil
}

// mend returns the JSON in the text, repaired if need be, or "".
func (s *contentMender) mend(text string, close bool) (out string, rules []string) {
	if inner := trimThoughts(text); inner != strings.TrimSpace(text) {
		text, rules = inner, append(rules, ruleProse)
		if _, ok := s.valid(text); ok {
			return text, rules
		}
	}
	inner := strings.TrimSpace(text)
	for range maxUnwraps {
		next, rule := peelLayer(inner)
		if rule == "" {
			break
		}
		inner, rules = strings.TrimSpace(next), append(rules, rule)
		if _, ok := s.valid(inner); ok {
			return inner, rules
		}
	}
	problem := s.problem
	if v, more, err := readTolerant(inner, close); err == nil {
		rules = append(rules, more...)
		if slices.ContainsFunc(more, mayMisread) && s.schema.doc != nil && !onlyDeclared(v, s.schema.doc, s.workLeft) {
			return "", nil
		}
		if s.accepts(v) {
			return v.render(), rules
		}
		if s.schema.doc != nil {
			if mended, more := coerce(v, s.schema.doc, s.workLeft, false); len(more) > 0 && s.accepts(mended) {
				return mended.render(), append(rules, more...)
			}
		}
		return "", nil
	}
	if out := s.uniqueInProse(text); out != "" {
		return out, append(rules, ruleProse)
	}
	s.problem = problem
	return "", nil
}

// uniqueInProse returns the value in prose that the schema accepts. If it accepts two
// different ones, the choice is the model's and the result is "".
func (s *contentMender) uniqueInProse(text string) (out string) {
	var found *value
	for i, tries := 0, 0; i < len(text) && tries < 64; tries++ {
		n := strings.IndexAny(text[i:], "{[")
		if n < 0 {
			break
		}
		i += n
		v, rules, end, err := readPrefix(text[i:])
		if err != nil {
			i++
			continue
		}
		if len(v.members)+len(v.items) > 0 && s.accepts(v) {
			if found != nil && !found.equal(v) {
				return ""
			}
			if found = v; out == "" {
				if out = text[i : i+end]; len(rules) > 0 {
					out = v.render()
				}
			}
		}
		i += end
	}
	return out
}
