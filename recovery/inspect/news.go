package inspect

import (
	"bytes"
	"slices"

	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// news reports cheaply whether the history may end with results. Most requests that are
// no agent's need no rules for it.
func news(b *transcript.Body) bool {
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
	return observable(b, last)
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
