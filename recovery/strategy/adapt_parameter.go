package strategy

import (
	"strings"

	"github.com/rebound-llm/rebound/recovery"
)

// AdaptParameter renames or drops a field that a target refuses. Only fields
// that do not change what the client asked for are dropped: sampling and effort.
type AdaptParameter struct{}

// Name is the name that plans use.
func (AdaptParameter) Name() string { return "adapt_parameter" }

// Propose implements recovery.Strategy.
func (AdaptParameter) Propose(s *recovery.Situation, f *recovery.Failure) (recovery.Action, bool) {
	x := s.Exchange
	i := s.Current(f)
	c := &x.Candidates[i]
	names := f.Facts.Params
	if f.Facts.Param != "" {
		names = append([]string{f.Facts.Param}, names...)
	}
	var edits []recovery.Edit
	for _, name := range names {
		e, ok := adapt(s, name, f)
		if !ok {
			return recovery.Action{}, false // one of several cannot be helped: neither can the request
		}
		if c.Had(func(o recovery.Edit) bool { return o.Field == e.Field && o.Role == e.Role && o.Mend == e.Mend }) {
			continue // what did not help once does not help twice
		}
		edits = append(edits, e)
	}
	if len(edits) == 0 {
		return recovery.Action{}, false
	}
	return recovery.Action{Target: i, Edits: edits}, true
}

// adapt finds the edit for one refused field.
func adapt(s *recovery.Situation, name string, f *recovery.Failure) (recovery.Edit, bool) {
	x := s.Exchange
	if name == "max_tokens" || name == "max_completion_tokens" {
		other := "max_completion_tokens"
		if name == other {
			other = "max_tokens"
		}
		_, has := x.Body.Field(name)
		return recovery.Edit{Field: name, Rename: other}, has
	}
	if role, to, ok := refusedRole(x, name, f); ok {
		return recovery.Edit{Role: role, Rename: to}, true
	}
	if v, has := x.Body.Field(name); has && recovery.Droppable(name) {
		ed := recovery.Edit{Field: name, Drop: true}
		if f.Facts.OfValue && len(v) <= recovery.MaxValue {
			ed.Value = string(v) // other values may be taken
		}
		return ed, true
	}
	field, ok := ofMessage(name)
	if _, has := x.Body.Field(name); !has && recovery.MessageLabel(name) {
		field, ok = name, true // servers leave out whose field it is
	}
	if ok {
		ed := recovery.Edit{Mend: recovery.MendField, Field: field}
		return ed, s.Changes == nil || s.Changes(s.Current(f), ed)
	}
	return recovery.Edit{}, false
}

// ofMessage is the field of a message that a parameter names, as in
// messages[2].name, messages.2.reasoning_content or input[3].phase.
func ofMessage(name string) (field string, ok bool) {
	rest, ok := strings.CutPrefix(name, "messages")
	if !ok {
		if rest, ok = strings.CutPrefix(name, "input"); !ok || !strings.HasPrefix(rest, "[") && !strings.HasPrefix(rest, ".") {
			return "", false
		}
	}
	field = strings.TrimLeft(rest[strings.LastIndexAny(rest, ".]")+1:], ".")
	return field, field != "" && field != "role" && field != "content" && strings.Count(rest, ".")+strings.Count(rest, "[") <= 2
}

// refusedRole recognises the refusal of the developer or system role.
func refusedRole(x *recovery.Exchange, name string, f *recovery.Failure) (role, to string, ok bool) {
	if !strings.HasPrefix(name, "messages") && !strings.Contains(name, "role") {
		return "", "", false
	}
	msg := strings.ToLower(f.Signal.Message)
	switch {
	case x.Body.HasRole("developer") && (strings.Contains(msg, "developer") || !strings.Contains(msg, "'system'") && strings.Contains(msg, "role")):
		return "developer", "system", true
	case strings.Contains(msg, "'system'") && x.Body.HasRole("system"):
		return "system", "developer", true
	}
	return "", "", false
}
