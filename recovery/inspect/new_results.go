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
	// A monologue is at least text, a message to go on, text, such a message.
	end := list[len(list)-1]
	if last < 2 || list[last-2].Role != transcript.RoleAssistant || list[last-1].Role != transcript.RoleUser || end.End-end.Start >= 2*maxNudge {
		return false
	}
	l, _ := s.rules.get()
	return l.prompts(end.Text())
}

// actionSigns are in every text that makes a call, as it stands in a body.
var actionSigns = []string{"```", "<", `\u003c`, `\u003C`, "ction:"}

// observable reports cheaply whether the message after the assistant's message i
// may be an observation of a text protocol.
func observable(b *transcript.Body, i int) bool {
	raw := b.Messages()[i].Raw()
	return slices.ContainsFunc(actionSigns, func(sign string) bool { return bytes.Contains(raw, []byte(sign)) }) &&
		len(b.Tools()) == 0 && trajectory.IsObservation(b, i+1)
}

// agent reports whether the conversation is an agent's, and not a person's who says to
// go on: it has tools, or had results, or ends with a message that only clients write.
func (h *history) agent() bool {
	if len(h.Body.Tools()) > 0 || h.Fenced() {
		return true
	}
	for k := range h.turns {
		if len(h.load(k).steps) > 0 {
			return true
		}
	}
	persons := h.personMessages()
	return len(persons) > 0 && !h.rules.says(h.List[persons[len(persons)-1].index].Text(), toGoOn)
}
