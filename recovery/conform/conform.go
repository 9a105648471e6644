package conform

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Conformer carries out the edits that a Conform constant names. The zero value is ready, immutable, and safe for
// concurrent use.
type Conformer struct{}

var _ recovery.Conformer = Conformer{}

// Conform adds the changes of the edit ed.Conform to e; it returns false if b needs none, or if the edit is unknown.
func (Conformer) Conform(b *transcript.Body, e *transcript.Editor, ed recovery.Edit) bool {
	switch ed.Conform {
	case recovery.ConformPairing:
		return pair(b, e)
	case recovery.ConformReasoning:
		if ed.Field == recovery.ReasoningFinished {
			return e.DropFinishedReasoning()
		}
		return e.DropReasoning(indexes(ed.Field))
	case recovery.ConformOwn:
		return e.DropOwnIDs()
	case recovery.ConformItemIDs:
		return e.DropIDs()
	case recovery.ConformCallIDs:
		return shortIDs(b, e)
	case recovery.ConformSignatures:
		return each(b, transcript.RoleAssistant, func(m transcript.Message) bool { return e.SignCalls(m.Index, ed.Field == "all") })
	case recovery.ConformStubTools:
		return stubTools(b, e)
	case recovery.ConformAlternate:
		return alternate(b, e)
	case recovery.ConformBetween:
		return answerBetween(b, e)
	case recovery.ConformSystem:
		return systemFirst(b, e)
	case recovery.ConformEmpty:
		return fillEmpty(b, e)
	case recovery.ConformTextOnly:
		return each(b, "", func(m transcript.Message) bool { return e.FlattenText(m.Index) })
	case recovery.ConformOneSystem:
		return oneSystem(b, e)
	case recovery.ConformContent:
		return each(b, "", func(m transcript.Message) bool { return addContent(b, e, m) })
	case recovery.ConformAnswered:
		return each(b, transcript.RoleAssistant, func(m transcript.Message) bool {
			if _, ok := m.Field(ed.Field); ok || !recovery.MessageLabel(ed.Field) || b.PairsAnywhere() {
				return false
			}
			e.SetMessageField(m.Index, ed.Field, []byte(`""`))
			return true
		})
	case recovery.ConformThought:
		return each(b, transcript.RoleAssistant, func(m transcript.Message) bool {
			if raw, ok := m.Field(recovery.ThoughtField); ok && string(raw) != `""` && string(raw) != "null" || b.PairsAnywhere() {
				return false
			}
			e.SetMessageField(m.Index, recovery.ThoughtField, []byte(recovery.ThoughtBlank))
			return true
		})
	case recovery.ConformArguments:
		return each(b, transcript.RoleAssistant, func(m transcript.Message) bool { return emptyArguments(e, m) })
	case recovery.ConformMissing:
		return e.CompleteTools()
	case recovery.ConformNested:
		return recovery.NestedLabel(ed.Field) && e.DropNested(ed.Field)
	case recovery.ConformNames:
		return renameTools(b, e)
	case recovery.ConformNoTools:
		return e.DropToolOptions()
	case recovery.ConformUnthinking:
		return e.DropThinkingEdits()
	case recovery.ConformMarks:
		n, err := strconv.Atoi(ed.Field)
		return err == nil && e.DropCacheMarks(n)
	case recovery.ConformOption:
		path, level, _ := strings.Cut(ed.Field, "=")
		options, option, _ := strings.Cut(path, ".")
		return e.DropOption(options, option, level)
	case recovery.ConformSingle:
		return each(b, transcript.RoleAssistant, func(m transcript.Message) bool { return e.SplitCalls(m.Index) })
	case recovery.ConformPadded:
		return each(b, transcript.RoleAssistant, func(m transcript.Message) bool {
			if b.Format() != transcript.Chat || len(m.ToolCalls()) == 0 || m.Text() != "" {
				return false
			}
			e.SetMessageField(m.Index, "content", []byte(`" "`))
			return true
		})
	case recovery.ConformUntold:
		return e.DropEmptyDescriptions()
	case recovery.ConformNoSystem:
		return noSystem(b, e)
	case recovery.ConformTrimmed:
		return trimEnd(b, e)
	case recovery.ConformUnique:
		return uniqueTools(b, e)
	case recovery.ConformUserFirst:
		return userFirst(b, e)
	case recovery.ConformResults:
		return nameResults(b, e)
	case recovery.ConformThinking:
		if ed.Field != "" {
			return stopThinking(b, e, ed.Field)
		}
		if e.StopThinking() {
			return true
		}
		if v, ok := b.Field("enable_thinking"); ok && string(v) == "false" || b.Format() != transcript.Chat || b.Streaming() {
			return false
		}
		e.Set("enable_thinking", []byte("false"))
		return true
	case recovery.ConformMedia:
		if keep, err := strconv.Atoi(ed.Field); err == nil {
			return fewerMedia(b, e, keep)
		}
		return each(b, "", func(m transcript.Message) bool { return e.DropMedia(m.Index, "this model does not take it") })
	case recovery.ConformField:
		if ed.Field == "id" && b.PairsAnywhere() {
			return e.DropIDs() // keeps ids that an item needs
		}
		return each(b, "", func(m transcript.Message) bool {
			_, spoken := m.Field("role") // a call of the Responses API has a name that it needs
			if raw, ok := m.Field(ed.Field); ok && (spoken || ed.Field != "name") && (recovery.MessageLabel(ed.Field) || isEmpty(ed.Field, raw)) {
				e.DeleteMessageField(m.Index, ed.Field)
				return true
			}
			return false
		})
	case recovery.ConformKeyword, recovery.ConformItems, recovery.ConformPlain, recovery.ConformObject, recovery.ConformTyped, recovery.ConformFlat, recovery.ConformAlone, recovery.ConformEnum:
		return schemas(b, e, ed)
	case recovery.ConformStrict:
		changed, meant := false, meantTools(b, ed)
		for _, t := range b.Tools() {
			if t.Strict.End > t.Strict.Start && meant(t) {
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
func stubTools(b *transcript.Body, e *transcript.Editor) bool {
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

// uniqueTools removes copies of a tool from the list. Different tools of one name stay.
func uniqueTools(b *transcript.Body, e *transcript.Editor) bool {
	offered, _ := b.Field("tools")
	var list [][]byte
	seen := map[string]bool{}
	all := gjson.ParseBytes(offered).Array()
	for _, tool := range all {
		if !seen[tool.Raw] {
			seen[tool.Raw] = true
			list = append(list, []byte(tool.Raw))
		}
	}
	if len(list) < len(all) {
		e.Set("tools", transcript.List(list))
	}
	return len(list) < len(all)
}

// renameTools gives tools names that every provider accepts.
func renameTools(b *transcript.Body, e *transcript.Editor) bool {
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
func addContent(b *transcript.Body, e *transcript.Editor, m transcript.Message) bool {
	if s := m.Shape(); s.Parts || s.Texts > 0 || b.PairsAnywhere() { // it has content
		return false
	}
	e.SetMessageField(m.Index, "content", []byte(`""`))
	return true
}

// emptyArguments replaces arguments that the format does not allow with {}, since some servers refuse a history with calls that
// they cannot parse.
func emptyArguments(e *transcript.Editor, m transcript.Message) (changed bool) {
	for _, c := range m.ToolCalls() {
		changed = e.EmptyArguments(c) || changed
	}
	return changed
}

// fewerMedia replaces attachments with a text, oldest first, until keep are left: those of finished turns, and those of
// results that the model has answered. It returns false if more than keep are left; then e must not be used.
func fewerMedia(b *transcript.Body, e *transcript.Editor, keep int) bool {
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
