package repair

import (
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

const ruleContent = "content"

// content mends the JSON that response_format demands of the text.
func (j *job) content() *recovery.Flaw {
	form, raw := j.req.ContentForm()
	text := j.draft.Text
	if form != transcript.FormObject && form != transcript.FormSchema || j.draft.Shown > 0 || strings.TrimSpace(text) == "" ||
		len(text) > maxArguments || j.draft.Finish == recovery.FinishFilter {
		return nil
	}
	s := &structure{schema: j.schemas.get(raw, &j.work), work: &j.work, object: form == transcript.FormObject}
	if s.schema.certainly(text) {
		return nil
	}
	if _, ok := s.valid(text); ok {
		return nil
	}
	if out, rules := s.mend(text, j.close); out != "" {
		j.text = &out
		j.mended("", append([]string{ruleContent}, rules...)...)
		return nil
	}
	f := &recovery.Flaw{Kind: recovery.FlawContent, Quote: text, Problem: "the answer must be JSON as the request describes it, and nothing else: " + s.problem}
	if j.draft.Finish == recovery.FinishLength {
		f.Kind = recovery.FlawTruncated
	}
	return f
}

// structure judges text that must be JSON.
type structure struct {
	schema  *schema
	work    *int // that is left for the answer
	object  bool // any object
	problem string
}

// valid reads text that is valid as it stands.
func (s *structure) valid(text string) (v *value, ok bool) {
	if err := transcript.Valid([]byte(text), maxDepth); err != nil {
		s.problem = err.Error()
		return nil, false
	}
	v, _, err := readTolerant(text, false)
	if err != nil {
		return nil, true // valid JSON that may mean two things is the client's business
	}
	return v, s.accepts(v)
}

func (s *structure) accepts(v *value) bool {
	if s.object && v.kind != kindObject || v.kind < kindArray && s.schema.compiled == nil {
		s.problem = "it is not a JSON object"
		return false
	}
	if s.schema.compiled == nil {
		return true
	}
	failure, _ := s.schema.check(v.decoded(), s.work)
	if failure != nil {
		s.problem = explain(failure)
	}
	return failure == nil
}

// mend returns the JSON in the text, or "".
func (s *structure) mend(text string, close bool) (out string, rules []string) {
	if inner := outside(text); inner != strings.TrimSpace(text) {
		text, rules = inner, append(rules, ruleProse)
		if _, ok := s.valid(text); ok {
			return text, rules
		}
	}
	inner := strings.TrimSpace(text)
	for range maxUnwraps {
		next, rule := peel(inner)
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
		if slices.ContainsFunc(more, misread) && s.schema.doc != nil && !declared(v, s.schema.doc, s.work) {
			return "", nil
		}
		if s.accepts(v) {
			return v.render(), rules
		}
		if s.schema.doc != nil {
			if mended, more := coerce(v, s.schema.doc, s.work, false); len(more) > 0 && s.accepts(mended) {
				return mended.render(), append(rules, more...)
			}
		}
		return "", nil
	}
	if out := s.among(text); out != "" {
		return out, append(rules, ruleProse)
	}
	s.problem = problem
	return "", nil
}

// among finds the one value in prose that is what was asked for. A second one
// that is too, and says something else, leaves the choice to the model.
func (s *structure) among(text string) (out string) {
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
