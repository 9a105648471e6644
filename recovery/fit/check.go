package fit

import (
	"bytes"
	"errors"
	"fmt"

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
// It knows nothing of how the edits were planned.
func check(before, after *transcript.Body) error {
	if err := transcript.Valid(after.Raw(), 0); err != nil {
		return fmt.Errorf("the result is invalid: %w", err)
	}
	if len(after.Raw()) >= len(before.Raw()) {
		return errNotSmaller
	}
	was, is := faultsOf(before.Messages()), faultsOf(after.Messages())
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

func faultsOf(list []transcript.Message) (f faults) {
	var open map[string]int
	began := false
	for i, m := range list {
		switch m.Role {
		case transcript.RoleTool:
			f.first = f.first || !began
			if id := m.ToolCallID(); open[id] > 0 {
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
		calls := m.ToolCalls()
		if len(calls) > 0 {
			open = make(map[string]int, len(calls))
			for _, c := range calls {
				open[c.ID]++
				if text := bytes.TrimSpace([]byte(c.Text())); len(text) == 0 || text[0] != '{' || transcript.Valid(text, 0) != nil {
					f.broken++
				}
			}
		}
		if m.Role != transcript.RoleSystem && m.Role != transcript.RoleDeveloper {
			began = true
		}
		if len(calls) == 0 && i < len(list)-1 && m.Text() == "" && m.Shape().Media == 0 {
			f.empty++
		}
	}
	return f
}

// sameEnds checks what is never changed: which fields there are, and the
// messages up to the first answer.
func sameEnds(before, after *transcript.Body) error {
	a, b := before.Messages(), after.Messages()
	for i, m := range a {
		if m.Role == transcript.RoleAssistant {
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
