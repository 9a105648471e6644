package inspect

import (
	"slices"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Results is the tool results that are new since the last assistant turn, in
// order, with the calls that they answer. In text protocols it is the user
// message after an assistant turn that contains an action. Earlier messages are
// not decoded. The result is nil if nothing is new.
func Results(b *transcript.Body) []recovery.ToolResult {
	list := b.Messages()
	from := len(list)
	for from > 0 && list[from-1].Role != transcript.RoleAssistant {
		from--
	}
	if from == 0 || from == len(list) {
		return nil
	}
	r := reader{body: b, list: list}
	return r.read(r.collect(from-1, nil))
}

// All is the results of the whole history, in order. It decodes every result
// and every call that is answered; the time is linear in the body.
func All(b *transcript.Body) []recovery.ToolResult {
	r := reader{body: b, list: b.Messages()}
	return r.read(r.collect(0, nil))
}

// IsObservation reports whether message i is a user message of a text protocol
// that carries what a tool answered, and not a person's words.
func IsObservation(b *transcript.Body, i int) bool {
	list := b.Messages()
	if i <= 0 || i >= len(list) || list[i].Role != transcript.RoleUser {
		return false
	}
	r := reader{body: b, list: list}
	_, ok := r.observation(i)
	return ok
}

// reader walks a history.
type reader struct {
	body     *transcript.Body
	list     []transcript.Message
	protocol protocol // of text, found out once
	pending  []pending
	byID     map[string]*sameID // of pending, where it is long
	free     int                // before it all are answered
}

// read decodes the contents that collect left out.
func (r *reader) read(list []recovery.ToolResult) []recovery.ToolResult {
	for i := range list {
		if m := r.list[list[i].Index]; m.Role == transcript.RoleTool {
			list[i].Content = m.Text()
		}
	}
	return list
}

// collect appends the results of the messages from index from on. The contents
// of messages of tools are left out.
func (r *reader) collect(from int, out []recovery.ToolResult) []recovery.ToolResult {
	calls := r.pending[:0]
	caller := -1 // the assistant turn that is answered, calls not yet read
	for i := from; i < len(r.list); i++ {
		m := r.list[i]
		switch m.Role {
		case transcript.RoleAssistant:
			if caller = i; len(calls) > 0 {
				calls = calls[:0]
				r.index(nil)
			}
		case transcript.RoleTool:
			if caller >= 0 {
				calls = r.calls(caller, calls[:0])
				r.index(calls)
				caller = -1
			}
			out = append(out, r.answer(m, calls))
		case transcript.RoleUser:
			if i > 0 && r.list[i-1].Role == transcript.RoleAssistant {
				if res, ok := r.observation(i); ok {
					out = append(out, res)
				}
			}
		}
	}
	r.pending = calls
	return out
}

// pending is a call and whether its result was seen.
type pending struct {
	transcript.ToolCall
	answered bool
}

// calls reads the calls of the assistant turn at i. A turn may be split over
// adjacent assistant messages.
func (r *reader) calls(i int, dst []pending) []pending {
	first := i
	for first > 0 && r.list[first-1].Role == transcript.RoleAssistant {
		first--
	}
	for ; first <= i; first++ {
		list := r.list[first].ToolCalls()
		dst = slices.Grow(dst, len(list))
		for _, c := range list {
			dst = append(dst, pending{ToolCall: c})
		}
	}
	return dst
}

// sameID are the calls of one id: all of them, and those before next are answered.
type sameID struct {
	calls []int
	next  int
}

// manyCalls is up to how many calls each result looks through all of them.
const manyCalls = 32

// index makes calls ready to be answered.
func (r *reader) index(calls []pending) {
	r.free, r.byID = 0, nil
	if len(calls) <= manyCalls {
		return
	}
	r.byID = make(map[string]*sameID, len(calls))
	for i := range calls {
		same := r.byID[calls[i].ID]
		if same == nil {
			same = &sameID{}
			r.byID[calls[i].ID] = same
		}
		same.calls = append(same.calls, i)
	}
}

// called is the call that a result with this id answers: the first unanswered one
// of the id, else the first of it; without an id the first unanswered one. -1 is none.
func (r *reader) called(id []byte, calls []pending) int {
	if len(id) == 0 {
		for ; r.free < len(calls); r.free++ {
			if !calls[r.free].answered {
				return r.free
			}
		}
		return -1
	}
	if r.byID != nil {
		same := r.byID[string(id)]
		if same == nil {
			return -1
		}
		for ; same.next < len(same.calls); same.next++ {
			if i := same.calls[same.next]; !calls[i].answered {
				return i
			}
		}
		return same.calls[0]
	}
	first := -1
	for i := range calls {
		if calls[i].ID == string(id) {
			if !calls[i].answered {
				return i
			}
			if first < 0 {
				first = i
			}
		}
	}
	return first
}

// answer joins a tool message with the call that it answers. It leaves the content out.
func (r *reader) answer(m transcript.Message, calls []pending) recovery.ToolResult {
	var room [64]byte
	id := m.AppendToolCallID(room[:0])
	if i := r.called(id, calls); i >= 0 {
		c := &calls[i]
		c.answered = true
		return recovery.ToolResult{Index: m.Index, CallID: c.ID[:len(id)], Tool: c.Name, Arguments: c.Text()}
	}
	res := recovery.ToolResult{Index: m.Index, CallID: string(id)}
	if raw, ok := m.Field("name"); ok {
		res.Tool, _ = transcript.Decode(raw)
	}
	return res
}
