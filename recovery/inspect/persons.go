package inspect

import (
	"slices"

	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// personMessage is a message that a personMessage wrote, or a client in a personMessage's place.
type personMessage struct {
	index int
	words uint64 // hash of what it says, 0 until it is needed
}

// personMessages lists the messages that a person wrote. In text protocols it leaves out observations only as
// far back as the turns reach.
func (h *history) personMessages() []personMessage {
	if h.peopled {
		return h.persons
	}
	h.peopled = true
	k := 0
	for i, m := range h.List {
		if m.Role != transcript.RoleUser {
			continue
		}
		if i > 0 && h.List[i-1].Role == transcript.RoleAssistant && h.Textual() {
			for k < len(h.turns) && h.turns[k].Answered < i {
				k++
			}
			if k == len(h.turns) || h.turns[k].Answered != i {
				continue
			}
			if t := h.load(k); len(t.steps) > 0 && t.steps[0].Index == i {
				continue
			}
		}
		h.persons = append(h.persons, personMessage{index: i})
	}
	return h.persons
}

// words is a hash of what the person's message says, never 0.
func (h *history) words(p *personMessage) uint64 {
	if p.words == 0 {
		m := h.List[p.index]
		p.words = trajectory.Hash(m.Text(), string(m.AppendMedia(nil)))
	}
	return p.words
}

// personAt is the place of the first person's message at message i or after it, among persons.
func (h *history) personAt(i int) int {
	n, _ := slices.BinarySearchFunc(h.personMessages(), i, func(p personMessage, i int) int { return p.index - i })
	return n
}

// userBefore is the hash of the person's last message before message i, 0 without one.
// The same words after an answer of the model are said anew, but for the task; after
// results a client repeats them by itself.
func (h *history) userBefore(i int) uint64 {
	n := h.personAt(i)
	if n == 0 {
		return 0
	}
	last, again := h.words(&h.persons[n-1]), uint64(0)
	if last == h.words(&h.persons[0]) {
		return last // the task: programs give it again
	}
	for n--; n > 0 && h.words(&h.persons[n-1]) == last; n-- {
		if m := h.persons[n].index - 1; h.List[m].Role == transcript.RoleAssistant && len(h.List[m].ToolCalls()) == 0 && !h.Textual() {
			again++
		}
	}
	return last + again
}

// personSpoke reports whether a person said something new after turn k: any message
// after a turn without calls, and after others one that does not repeat the
// message before it word for word, as reminders do that clients add by themselves.
func (h *history) personSpoke(k int) bool {
	t := &h.turns[k]
	for n := h.personAt(t.Answered); n < len(h.persons) && h.persons[n].index < t.End; n++ {
		if len(h.load(k).steps) == 0 || n == 0 || h.words(&h.persons[n]) != h.words(&h.persons[n-1]) {
			return true
		}
	}
	return false
}

// since is the first of the last turns, at most n, between which no person said something new.
func (h *history) since(n int) int {
	k := len(h.turns) - 1
	for k > 0 && len(h.turns)-k < n && !h.personSpoke(k-1) {
		k--
	}
	return k
}
