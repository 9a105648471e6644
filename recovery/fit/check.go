package fit

import (
	"bytes"
	"errors"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// The reasons for which a fitted request is not sent.
var (
	errNotSmaller = errors.New("the result is not smaller")
	errPairing    = errors.New("calls and results do not match")
	errEmpty      = errors.New("a message has become empty")
	errProtected  = errors.New("a protected message has changed")
	errArguments  = errors.New("the arguments of a call are no longer what they were: a JSON object")
)

// check compares a fitted request with its original before anything is sent.
// It knows nothing of how the edits were planned. That the result is valid JSON
// is sure: it was parsed.
func check(before, after *transcript.Body, r *messageReader) error {
	if len(after.Raw()) >= len(before.Raw()) {
		return errNotSmaller
	}
	was, is := faultsOf(before.Messages(), r), faultsOf(after.Messages(), r)
	if is.orphans > was.orphans || is.unanswered > was.unanswered || is.first && !was.first {
		return errPairing
	}
	if is.empty > was.empty {
		return errEmpty
	}
	if is.broken > was.broken {
		return errArguments
	}
	return sameEnds(before, after)
}

// faults counts what providers refuse in a history.
type faults struct {
	orphans    int  // results without a call in the answer before them
	unanswered int  // calls without a result, but in the last answer
	empty      int  // messages that say nothing and call nothing
	broken     int  // calls whose arguments are no JSON object
	first      bool // the conversation begins with a result
}

func faultsOf(list []transcript.Message, r *messageReader) (f faults) {
	var open map[string]int
	began := false
	for i, m := range list {
		said := r.read(m)
		switch m.Role {
		case transcript.RoleTool:
			f.first = f.first || !began
			if id := said.answers; open[id] > 0 {
				open[id]--
			} else {
				f.orphans++
			}
		default:
			for _, n := range open {
				f.unanswered += n
			}
			open = nil
		}
		f.broken += said.broken
		if len(said.calls) > 0 {
			open = make(map[string]int, len(said.calls))
			for _, c := range said.calls {
				open[c.ID]++
			}
		}
		if m.Role != transcript.RoleSystem && m.Role != transcript.RoleDeveloper {
			began = true
		}
		if len(said.calls) == 0 && i < len(list)-1 && said.text == "" && said.shape.Media == 0 {
			f.empty++
		}
	}
	return f
}

// sameEnds checks what is never changed: which fields there are, and the
// messages up to the first answer, or what an earlier fitting put in its place.
func sameEnds(before, after *transcript.Body) error {
	a, b := before.Messages(), after.Messages()
	for i, m := range a {
		if m.Role == transcript.RoleAssistant || compressed(m.Text()) {
			break
		}
		if i >= len(b) || !bytes.Equal(m.Raw(), b[i].Raw()) {
			return errProtected
		}
	}
	var names []string
	for name := range before.Fields {
		names = append(names, name)
	}
	n := 0
	for name := range after.Fields {
		if n >= len(names) || names[n] != name {
			return errProtected
		}
		n++
	}
	if n != len(names) {
		return errProtected
	}
	return nil
}
