package trajectory

import (
	"slices"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Turn is one turn of the model: adjacent assistant messages, and everything after them until the model's next
// turn. The numbers are message indexes.
type Turn struct {
	Start    int // its first message
	Answered int // the message after the model's
	End      int // after its last message
}

// TurnBefore returns the last turn that begins before message end, cut at end; ok is false if there is no
// assistant message.
func TurnBefore(list []transcript.Message, end int) (t Turn, ok bool) {
	t = Turn{Answered: end, End: end}
	for t.Answered > 0 && list[t.Answered-1].Role != transcript.RoleAssistant {
		t.Answered--
	}
	for t.Start = t.Answered; t.Start > 0 && list[t.Start-1].Role == transcript.RoleAssistant; {
		t.Start--
	}
	return t, t.Answered > 0
}

// Results returns the new tool results since the last assistant turn, in order, with the calls that they answer.
// In text protocols it is the user message after an assistant turn that contains an action. It does not decode
// earlier messages. It returns nil if there are no new results.
func Results(b *transcript.Body) []recovery.ToolResult {
	h := NewHistory(b)
	if t, ok := TurnBefore(h.List, len(h.List)); ok {
		return h.read(h.AppendResults(nil, t))
	}
	return nil
}

// All returns the results of the whole history, in order. It decodes every result and every answered call, in
// time linear in the body.
func All(b *transcript.Body) (out []recovery.ToolResult) {
	h := NewHistory(b)
	var turns []Turn
	t, ok := TurnBefore(h.List, len(h.List))
	for ; ok; t, ok = TurnBefore(h.List, t.Start) {
		turns = append(turns, t)
	}
	out = h.AppendResults(nil, Turn{End: t.End}) // results before any call
	for _, t := range slices.Backward(turns) {
		out = h.AppendResults(out, t)
	}
	return h.read(out)
}

// IsObservation reports whether message i is a user message of a text protocol that contains a tool's result and
// not a person's words.
func IsObservation(b *transcript.Body, i int) bool {
	_, ok := NewHistory(b).Observation(i)
	return ok
}

// History is a conversation with the results of its tools. It reads them lazily, and is not safe for concurrent
// use.
type History struct {
	Body *transcript.Body
	List []transcript.Message // all messages of the body

	protocol protocol
	calls    []MadeCall // buffer of AppendResults
	pairing  Pairing
}

// NewHistory returns the history of a body.
func NewHistory(b *transcript.Body) *History {
	h := new(History)
	h.Begin(b)
	return h
}

// Begin resets the history to another body, or to none if b is nil; it keeps its buffers.
func (h *History) Begin(b *transcript.Body) {
	clear(h.calls[:cap(h.calls)])
	*h = History{Body: b, calls: h.calls[:0], pairing: h.pairing}
	if b != nil {
		h.List = b.Messages()
	}
}

// read decodes the contents that AppendResults omits.
func (h *History) read(list []recovery.ToolResult) []recovery.ToolResult {
	for i := range list {
		if m := h.List[list[i].Index]; m.Role == transcript.RoleTool {
			list[i].Content = m.Text()
		}
	}
	return list
}

// MadeCall is a call with its position.
type MadeCall struct {
	transcript.ToolCall
	At int // message index
}

// Calls returns the model's calls in a turn. They are valid until the next call of Calls or AppendResults.
func (h *History) Calls(t Turn) []MadeCall {
	h.calls = h.calls[:0]
	for i := t.Start; i < t.Answered; i++ {
		list := h.List[i].ToolCalls()
		h.calls = slices.Grow(h.calls, len(list))
		for _, c := range list {
			h.calls = append(h.calls, MadeCall{c, i})
		}
	}
	return h.calls
}

// AppendResults appends the results of a turn, with the calls that they answer. It omits the contents of tool
// messages.
func (h *History) AppendResults(out []recovery.ToolResult, t Turn) []recovery.ToolResult {
	var calls []MadeCall
	paired := false
	for i := t.Answered; i < t.End; i++ {
		switch m := h.List[i]; m.Role {
		case transcript.RoleTool:
			if !paired {
				paired, calls = true, h.Calls(t)
				h.pairing.Begin()
				for k := range calls {
					h.pairing.Add(calls[k].ID)
				}
			}
			out = append(out, h.answer(m, calls))
		case transcript.RoleUser:
			if i == t.Answered {
				if res, ok := h.Observation(i); ok {
					out = append(out, res)
				}
			}
		}
	}
	return out
}

// answer returns the result of a tool message with the call that it answers, without the content.
func (h *History) answer(m transcript.Message, calls []MadeCall) recovery.ToolResult {
	var room [64]byte
	id := m.AppendToolCallID(room[:0])
	if i := h.pairing.Answer(id); i >= 0 {
		c := &calls[i]
		return recovery.ToolResult{Index: m.Index, Caller: c.At, CallID: c.ID[:len(id)], Tool: c.Name, Arguments: c.Text(), Failed: m.Failed()}
	}
	return recovery.ToolResult{Index: m.Index, Caller: -1, CallID: string(id), Tool: m.Name(), Failed: m.Failed()}
}

// Pairing assigns results to the calls of a turn, in constant time per result.
type Pairing struct {
	answered []bool
	byID     map[string]*sameID // the calls with an id; under "" all of them
}

// sameID are the calls with one id.
type sameID struct {
	first int
	open  []int // may be unanswered
}

// maxKeptIDs limits the ids of a turn whose map the next turn uses again.
const maxKeptIDs = 64

// Begin prepares for another turn, whose calls are then added with Add.
func (p *Pairing) Begin() {
	if len(p.byID) > maxKeptIDs {
		p.byID = nil // clearing a map takes time for as many entries as it ever had
	}
	if p.byID == nil {
		p.byID = map[string]*sameID{}
	}
	clear(p.byID)
	p.answered, p.byID[""] = p.answered[:0], &sameID{first: -1}
}

// Add adds the next call of the turn.
func (p *Pairing) Add(id string) {
	n := len(p.answered)
	p.answered = append(p.answered, false)
	p.byID[""].open = append(p.byID[""].open, n)
	if id == "" {
		return
	}
	if p.byID[id] == nil {
		p.byID[id] = &sameID{first: n}
	}
	p.byID[id].open = append(p.byID[id].open, n)
}

// Answer returns the index of the call that a result with this id answers: the first unanswered one with the id,
// or else the first with it; without an id the first unanswered one. It returns -1 for none.
func (p *Pairing) Answer(id []byte) int {
	same := p.byID[string(id)]
	if same == nil {
		return -1
	}
	for len(same.open) > 0 && p.answered[same.open[0]] {
		same.open = same.open[1:]
	}
	if len(same.open) == 0 {
		return same.first
	}
	p.answered[same.open[0]] = true
	return same.open[0]
}
