package inspect

import (
	"slices"

	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// userMessage is a message of the user, or of a program in the user's place.
type userMessage struct {
	index int
	words uint64 // hash of its content, 0 if not computed
}

// userMessages returns the messages of the user, without the client's reminders. In text protocols it excludes observations,
// and what may be one before the inspected turns.
func (h *history) userMessages() []userMessage {
	if h.usersRead {
		return h.users
	}
	h.usersRead = true
	for i, m := range h.List {
		if m.Role != transcript.RoleUser || m.Reminder() {
			continue
		}
		if i > 0 && h.List[i-1].Role == transcript.RoleAssistant && h.Textual() {
			k, inspected := slices.BinarySearchFunc(h.turns, i, func(t turn, i int) int { return t.Answered - i })
			if !inspected || len(h.load(k).steps) > 0 { // may be an observation, or is one
				continue
			}
		}
		h.users = append(h.users, userMessage{index: i})
	}
	return h.users
}

// words returns a hash of the message's content, never 0.
func (h *history) words(p *userMessage) uint64 {
	if p.words == 0 {
		m := h.List[p.index]
		p.words = trajectory.Hash(m.Text(), string(m.AppendMedia(nil)))
	}
	return p.words
}

// userMessageAt returns the position in users of the first message at or after message i.
func (h *history) userMessageAt(i int) int {
	n, _ := slices.BinarySearchFunc(h.userMessages(), i, func(p userMessage, i int) int { return p.index - i })
	return n
}

// userBefore returns a hash of the user's last message before message i, or 0. The same message after an answer
// of the model counts as new, except the task; after tool results it is a client's automatic repetition.
func (h *history) userBefore(i int) uint64 {
	n := h.userMessageAt(i)
	if n == 0 {
		return 0
	}
	last, again := h.words(&h.users[n-1]), uint64(0)
	if last == h.words(&h.users[0]) {
		return last // the task, which programs repeat
	}
	for n--; n > 0 && h.words(&h.users[n-1]) == last; n-- {
		if m := h.users[n].index - 1; h.List[m].Role == transcript.RoleAssistant && len(h.List[m].ToolCalls()) == 0 && !h.Textual() {
			again++
		}
	}
	return last + again
}

// userSpoke reports whether the user said something new after turn k: any message after a turn without calls,
// and otherwise a message that differs from the one before it, unlike reminders that clients add automatically.
func (h *history) userSpoke(k int) bool {
	t := &h.turns[k]
	for n := h.userMessageAt(t.Answered); n < len(h.users) && h.users[n].index < t.End; n++ {
		if len(h.load(k).steps) == 0 || n == 0 || h.words(&h.users[n]) != h.words(&h.users[n-1]) {
			return true
		}
	}
	return false
}

// since returns the first of the last turns, at most n, without a new user message between them.
func (h *history) since(n int) int {
	k := len(h.turns) - 1
	for k > 0 && len(h.turns)-k < n && !h.userSpoke(k-1) {
		k--
	}
	return k
}
