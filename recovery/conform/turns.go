package conform

import (
	"strings"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// alternate joins consecutive messages of the user, or of the model, since the chat templates of many models require
// alternating roles. It does not join messages with calls or attachments.
func alternate(b *transcript.Body, e *transcript.Editor) bool {
	list := b.Messages()
	changed := false
	for i := 0; i < len(list); i++ {
		if !joinable(b, list[i]) {
			continue
		}
		var said []string
		if text := list[i].Text(); text != "" {
			said = append(said, text)
		}
		last := i
		for j := i + 1; j < len(list) && list[j].Role == list[i].Role && joinable(b, list[j]); j++ {
			if more := list[j].Text(); more != "" {
				said = append(said, more)
			}
			e.RemoveMessage(j)
			last = j
		}
		if last > i {
			e.SetText(i, strings.Join(said, "\n\n"), true)
			changed, i = true, last
		}
	}
	return changed
}

// emptyMessage is the text of a message that has none.
const emptyMessage = "[empty]"

// answerBetween gives the model a message between tool results and the words of the user that follow them, since the chat
// templates of some models require one.
func answerBetween(b *transcript.Body, e *transcript.Editor) bool {
	changed := false
	for i, m := range b.Messages() {
		if i > 0 && m.Role == transcript.RoleUser && b.Messages()[i-1].Role == transcript.RoleTool && b.Format() == transcript.Chat {
			e.InsertMessage(i, b.TextMessage(transcript.RoleAssistant, emptyMessage, nil))
			changed = true
		}
	}
	return changed
}

// userFirst gives the user the first message, before an answer that the conversation starts with.
func userFirst(b *transcript.Body, e *transcript.Editor) bool {
	for i, m := range b.Messages() {
		switch m.Role {
		case transcript.RoleSystem, transcript.RoleDeveloper:
			continue
		case transcript.RoleAssistant:
			e.InsertMessage(i, b.TextMessage(transcript.RoleUser, emptyMessage, nil))
			return true
		}
		return false
	}
	return false
}

func joinable(b *transcript.Body, m transcript.Message) bool {
	return (m.Role == transcript.RoleUser || m.Role == transcript.RoleAssistant) && len(m.ToolCalls()) == 0 && m.Shape().Media == 0 && settable(b, m)
}

// settable reports whether a message's content is a string, an array of parts, or absent. Other content must not be
// replaced.
func settable(b *transcript.Body, m transcript.Message) bool {
	at, ok := m.Content()
	if !ok {
		return true
	}
	c := b.Raw()[at.Start]
	return c == '"' || c == '['
}

// systemFirst changes system messages after the beginning into user messages, for chat templates that accept system
// messages only at the beginning.
func systemFirst(b *transcript.Body, e *transcript.Editor) bool {
	began, changed := b.Format().SystemOutside(), false
	for i, m := range b.Messages() {
		if m.Role != transcript.RoleSystem && m.Role != transcript.RoleDeveloper {
			began = true
		} else if began {
			e.SetRoleOf(i, transcript.RoleUser)
			changed = true
		}
	}
	return changed
}

// fillEmpty gives messages without text or attachments a placeholder text, and removes empty system messages, an empty message of the
// model at the end, and empty text parts. An answer that only calls tools needs no content.
func fillEmpty(b *transcript.Body, e *transcript.Editor) bool {
	changed := false
	list := b.Messages()
	for i, m := range list {
		if e.DropEmptyTexts(i) {
			changed = true
			continue
		}
		if strings.TrimSpace(m.Text()) != "" || m.Shape().Media > 0 || !settable(b, m) {
			continue
		}
		if _, told := m.Content(); !told && b.PairsAnywhere() {
			continue // no message, or a result without text, as of a search for tools
		}
		switch {
		case m.Role == transcript.RoleTool:
			e.SetText(i, emptyResult, false)
		case len(m.ToolCalls()) > 0:
			if at, ok := m.Content(); !ok || b.Raw()[at.Start] != '"' || b.Format() != transcript.Chat {
				continue
			}
			e.SetMessageField(i, "content", []byte("null"))
		case m.Role == transcript.RoleAssistant && i == len(list)-1 && i > 0: // the model would continue a placeholder
			e.RemoveMessage(i)
		case m.Role == transcript.RoleAssistant, m.Role == transcript.RoleUser:
			e.SetText(i, emptyMessage, false)
		default:
			e.RemoveMessage(i)
		}
		changed = true
	}
	return changed
}

// oneSystem joins the system messages at the beginning into the first one, and changes later ones into user messages.
func oneSystem(b *transcript.Body, e *transcript.Editor) bool {
	list := b.Messages()
	lead := 0
	for lead < len(list) && (list[lead].Role == transcript.RoleSystem || list[lead].Role == transcript.RoleDeveloper) {
		lead++
	}
	changed := systemFirst(b, e)
	if lead < 2 || !settable(b, list[0]) {
		return changed
	}
	said := []string{list[0].Text()}
	for i := 1; i < lead; i++ {
		said = append(said, list[i].Text())
		e.RemoveMessage(i)
	}
	e.SetText(0, strings.Join(said, "\n\n"), false)
	return true
}

// noSystem lets the user say what system messages say, for chat templates that take none: the user's next message begins with those
// at the beginning.
func noSystem(b *transcript.Body, e *transcript.Editor) bool {
	if b.Format().SystemOutside() {
		return false
	}
	list := b.Messages()
	lead := 0
	var said []string
	for lead < len(list) && (list[lead].Role == transcript.RoleSystem || list[lead].Role == transcript.RoleDeveloper) {
		said = append(said, list[lead].Text())
		lead++
	}
	changed := false
	joined := lead > 0 && lead < len(list) && list[lead].Role == transcript.RoleUser && settable(b, list[lead])
	if joined {
		e.SetText(lead, strings.Join(append(said, list[lead].Text()), "\n\n"), true)
	}
	for i, m := range list {
		switch {
		case m.Role != transcript.RoleSystem && m.Role != transcript.RoleDeveloper:
			continue
		case joined && i < lead:
			e.RemoveMessage(i)
		default:
			e.SetRoleOf(i, transcript.RoleUser)
		}
		changed = true
	}
	return changed
}

// trimEnd removes the blanks at the end of the message of the model that the request ends with.
func trimEnd(b *transcript.Body, e *transcript.Editor) bool {
	list := b.Messages()
	if len(list) == 0 {
		return false
	}
	m := list[len(list)-1]
	text := m.Text()
	trimmed := strings.TrimRight(text, " \t\r\n")
	if m.Role != transcript.RoleAssistant || len(m.ToolCalls()) > 0 || trimmed == text || trimmed == "" || !settable(b, m) {
		return false
	}
	e.SetText(m.Index, trimmed, true)
	return true
}
