package conform

import (
	"slices"
	"strconv"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Conformer carries out mends. The zero value is ready, immutable, and safe for
// concurrent use.
type Conformer struct{}

var _ recovery.Conformer = Conformer{}

// Conform adds the changes of the mend ed.Mend to e; it returns false if b needs none, or if the mend is unknown.
func (Conformer) Conform(b *transcript.Body, e *transcript.Edit, ed recovery.Edit) bool {
	switch ed.Mend {
	case recovery.MendPairing:
		return pair(b, e)
	case recovery.MendReasoning:
		if ed.Field == recovery.ReasoningFinished {
			return e.DropFinishedReasoning()
		}
		return e.DropReasoning(indexes(ed.Field))
	case recovery.MendOwn:
		return e.DropOwnIDs()
	case recovery.MendItemIDs:
		return e.DropIDs()
	case recovery.MendCallIDs:
		return shortIDs(b, e)
	case recovery.MendSignatures:
		return each(b, transcript.RoleAssistant, func(m transcript.Message) bool { return e.SignCalls(m.Index, ed.Field == "all") })
	case recovery.MendStubTools:
		return stubTools(b, e)
	case recovery.MendAlternate:
		return alternate(b, e)
	case recovery.MendSystem:
		return systemFirst(b, e)
	case recovery.MendEmpty:
		return fillEmpty(b, e)
	case recovery.MendTextOnly:
		return each(b, "", func(m transcript.Message) bool { return e.FlattenText(m.Index) })
	case recovery.MendOneSystem:
		return oneSystem(b, e)
	case recovery.MendContent:
		return each(b, "", func(m transcript.Message) bool { return addContent(b, e, m) })
	case recovery.MendAnswered:
		return each(b, transcript.RoleAssistant, func(m transcript.Message) bool {
			if _, ok := m.Field(ed.Field); ok || !recovery.MessageLabel(ed.Field) || b.PairsAnywhere() {
				return false
			}
			e.SetMessageField(m.Index, ed.Field, []byte(`""`))
			return true
		})
	case recovery.MendThought:
		return each(b, transcript.RoleAssistant, func(m transcript.Message) bool {
			if raw, ok := m.Field(recovery.ThoughtField); ok && string(raw) != `""` && string(raw) != "null" || b.PairsAnywhere() {
				return false
			}
			e.SetMessageField(m.Index, recovery.ThoughtField, []byte(recovery.ThoughtBlank))
			return true
		})
	case recovery.MendArguments:
		return each(b, transcript.RoleAssistant, func(m transcript.Message) bool { return emptyArguments(e, m) })
	case recovery.MendMissing:
		return e.CompleteTools()
	case recovery.MendNested:
		return recovery.NestedLabel(ed.Field) && e.DropNested(ed.Field)
	case recovery.MendNames:
		return renameTools(b, e)
	case recovery.MendNoTools:
		return e.DropToolOptions()
	case recovery.MendThinking:
		if v, ok := b.Field("enable_thinking"); ok && string(v) == "false" || b.Format() != transcript.Chat || b.Streaming() {
			return false
		}
		e.Set("enable_thinking", []byte("false"))
		return true
	case recovery.MendMedia:
		if keep, err := strconv.Atoi(ed.Field); err == nil {
			return fewerMedia(b, e, keep)
		}
		return each(b, "", func(m transcript.Message) bool { return e.DropMedia(m.Index, "this model does not take it") })
	case recovery.MendField:
		if ed.Field == "id" && b.PairsAnywhere() {
			return e.DropIDs() // keeps ids that an item needs
		}
		return each(b, "", func(m transcript.Message) bool {
			if raw, ok := m.Field(ed.Field); ok && (recovery.MessageLabel(ed.Field) || isEmpty(ed.Field, raw)) {
				e.DeleteMessageField(m.Index, ed.Field)
				return true
			}
			return false
		})
	case recovery.MendKeyword, recovery.MendItems, recovery.MendPlain:
		return schemas(b, e, ed)
	case recovery.MendStrict:
		changed := false
		for _, t := range b.Tools() {
			if t.Strict.End > t.Strict.Start {
				e.Replace(t.Strict, []byte("false"))
				changed = true
			}
		}
		return changed
	}
	return false
}

// each calls change for every message of a role, or all, and reports whether any changed.
func each(b *transcript.Body, role string, change func(transcript.Message) bool) bool {
	changed := false
	for _, m := range b.Messages() {
		if role == "" || m.Role == role {
			changed = change(m) || changed
		}
	}
	return changed
}

// isEmpty reports whether a field other than role and content is null or an empty list.
func isEmpty(field string, raw []byte) bool {
	return field != "role" && field != "content" && (string(raw) == "null" || string(raw) == "[]")
}

// stubTools adds definitions of the tools that the history calls, at most 128, if the request offers no tools: some
// providers accept no call without a definition.
func stubTools(b *transcript.Body, e *transcript.Edit) bool {
	if len(b.Tools()) > 0 {
		return false
	}
	var names []string
	for _, m := range b.Messages() {
		for _, c := range m.ToolCalls() {
			if c.Name != "" && !slices.Contains(names, c.Name) && len(names) < 128 {
				names = append(names, c.Name)
			}
		}
	}
	if len(names) > 0 {
		e.OfferTools(names)
	}
	return len(names) > 0
}

// renameTools gives tools names that every provider accepts.
func renameTools(b *transcript.Body, e *transcript.Edit) bool {
	var names []string
	for _, t := range b.Tools() {
		names = append(names, t.Name)
	}
	safe := recovery.SafeNames(names)
	return e.RenameTools(func(name string) string {
		if to, ok := safe[name]; ok {
			return to
		}
		return recovery.SafeNames([]string{name})[name] // a tool that the history called but that is no longer offered
	})
}

// addContent gives a message without content, or with null, an empty string as content.
func addContent(b *transcript.Body, e *transcript.Edit, m transcript.Message) bool {
	if at, ok := m.Content(); ok && string(b.Raw()[at.Start:at.End]) != "null" || b.PairsAnywhere() {
		return false
	}
	e.SetMessageField(m.Index, "content", []byte(`""`))
	return true
}

// emptyArguments replaces arguments that the format does not allow with {}, since some servers refuse a history with calls that
// they cannot parse.
func emptyArguments(e *transcript.Edit, m transcript.Message) (changed bool) {
	for _, c := range m.ToolCalls() {
		changed = e.MendArguments(c) || changed
	}
	return changed
}

// fewerMedia replaces attachments with a text, oldest first, until keep are left: those of finished turns, and those of
// results that the model has answered. It returns false if more than keep are left; then e must not be used.
func fewerMedia(b *transcript.Body, e *transcript.Edit, keep int) bool {
	list := b.Messages()
	have, last, answered := 0, 0, 0
	for i, m := range list {
		have += m.Shape().Media
		switch m.Role {
		case transcript.RoleUser:
			last = i
		case transcript.RoleAssistant:
			answered = i
		}
	}
	changed := false
	for i := 0; i < max(last, answered) && have > keep; i++ {
		if i >= last && list[i].Role != transcript.RoleTool {
			continue
		}
		if n := list[i].Shape().Media; n > 0 && e.DropMedia(i, "this model takes no more of them") {
			have -= n
			changed = true
		}
	}
	return changed && have <= keep
}
