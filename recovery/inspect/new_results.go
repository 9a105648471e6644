package inspect

import (
	"bytes"
	"slices"

	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// hasNewResults reports cheaply whether the history may end with results, or with an agent that repeats itself.
// For most requests without an agent this needs no rules.
func (s *Stage) hasNewResults(b *transcript.Body) bool {
	list := b.Messages()
	last := len(list) - 1
	for ; last >= 0 && list[last].Role != transcript.RoleAssistant; last-- {
		if list[last].Role == transcript.RoleTool {
			return true
		}
	}
	if last < 0 || last == len(list)-1 || list[last+1].Role != transcript.RoleUser {
		return false
	}
	if observable(b, last) {
		return true
	}
	for last > 0 && list[last-1].Role == transcript.RoleAssistant {
		last--
	}
	// A monologue is at least: text, a prompt to go on, text, a prompt.
	end := list[len(list)-1]
	if last < 2 || list[last-2].Role != transcript.RoleAssistant || list[last-1].Role != transcript.RoleUser || end.End-end.Start >= 2*maxNudge {
		return false
	}
	l, _ := s.rules.get()
	return l.maySayGoOn(end.Text())
}

// actionSigns are the signs of a call in a text message; every such message contains one of them, as JSON
// encodes it.
var actionSigns = []string{"```", "<", `\u003c`, `\u003C`, "ction:", listSign}

// listSign is the only sign of a call in a text message of a request that offers tools.
const listSign = "Calling tools:"

// observable reports cheaply whether the message after the assistant's message i may be an observation of a text
// protocol.
func observable(b *transcript.Body, i int) bool {
	raw := b.Messages()[i].Raw()
	if len(b.Tools()) > 0 && !bytes.Contains(raw, []byte(listSign)) {
		return false
	}
	return slices.ContainsFunc(actionSigns, func(sign string) bool { return bytes.Contains(raw, []byte(sign)) }) &&
		trajectory.IsObservation(b, i+1)
}

// isAgent reports whether the conversation is an agent's, and not a person's who asks the model to go on: it has
// tools or results, or ends with a message that only programs write.
func (h *history) isAgent() bool {
	if len(h.Body.Tools()) > 0 || h.Fenced() {
		return true
	}
	for k := range h.turns {
		if len(h.load(k).steps) > 0 {
			return true
		}
	}
	if h.Body.ResponseFormat() {
		return false // its answers are the JSON that is asked for, not announcements of calls
	}
	messages := h.userMessages()
	return len(messages) > 0 && !h.rules.says(h.List[messages[len(messages)-1].index].Text(), toGoOn)
}
