package fit

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// The reasons not to send a fitted request.
var (
	errNotSmaller = errors.New("the result is not smaller")
	errPairing    = errors.New("calls and results do not match")
	errEmpty      = errors.New("a message has become empty")
	errProtected  = errors.New("a protected message has changed")
	errArguments  = errors.New("the arguments of a call are no longer what they were: a JSON object")
)

// check compares a fitted request with its original before it is sent. It is independent
// of the code that plans the edits. The result is valid JSON, since it was parsed.
func check(before, after *transcript.Body, r *parseCache) error {
	if len(after.Raw()) >= len(before.Raw()) {
		return errNotSmaller
	}
	was, is := faultsOf(before, r), faultsOf(after, r)
	if is.orphans > was.orphans || is.unanswered > was.unanswered || is.startsWithResult && !was.startsWithResult {
		return errPairing
	}
	if is.empty > was.empty {
		return errEmpty
	}
	if is.broken > was.broken {
		return errArguments
	}
	return checkProtected(before, after)
}

// faults counts what providers reject in a history.
type faults struct {
	orphans          int  // results without a call in the answer before them
	unanswered       int  // calls without a result, except in the last answer
	empty            int  // messages without text, attachments and calls, except the last
	broken           int  // calls whose arguments are not a JSON object
	startsWithResult bool // the conversation begins with a result
}

func faultsOf(b *transcript.Body, r *parseCache) (f faults) {
	var open map[string]int
	began := false
	list, anywhere := b.Messages(), b.PairsAnywhere()
	for i, m := range list {
		p := r.parse(m)
		switch m.Role {
		case transcript.RoleTool:
			f.startsWithResult = f.startsWithResult || !began
			if id := p.answers; open[id] > 0 {
				open[id]--
			} else {
				f.orphans++
			}
		default:
			if anywhere {
				break
			}
			for _, n := range open {
				f.unanswered += n
			}
			open = nil
		}
		f.broken += p.brokenCalls
		if len(p.calls) > 0 {
			if open == nil {
				open = make(map[string]int, len(p.calls))
			}
			for _, c := range p.calls {
				open[c.ID]++
			}
		}
		if m.Role != transcript.RoleSystem && m.Role != transcript.RoleDeveloper {
			began = true
		}
		if len(p.calls) == 0 && i < len(list)-1 && p.text == "" && p.shape.Media == 0 {
			f.empty++
		}
	}
	if anywhere {
		for _, n := range open {
			f.unanswered += n
		}
	}
	return f
}

// onlyMedia reports whether a message has lost only its attachments.
func onlyMedia(before, after transcript.Message) bool {
	a, b := before.Shape(), after.Shape()
	if a.Media == 0 || b.Media > 0 {
		return false
	}
	rest := after.Text()
	for line := range strings.Lines(before.Text()) {
		_, found, ok := strings.Cut(rest, strings.TrimRight(line, "\n"))
		if !ok {
			return false
		}
		rest = found
	}
	return true
}

// onlyPastes reports whether a user's message was shortened only where something was
// pasted: the text before the first paste and after the last is unchanged.
func onlyPastes(before, after string) bool {
	list := findPastes(before, false)
	if len(list) == 0 {
		return false
	}
	first, last := list[0].Start, list[len(list)-1].End
	return strings.HasPrefix(after, before[:first]) && strings.HasSuffix(after, before[last:]) && strings.Contains(after, `{"_compressed"`)
}

// checkProtected checks what fitting never changes: the names of the fields, and the messages up
// to the first answer, or to the replacement that an earlier fitting made for it.
func checkProtected(before, after *transcript.Body) error {
	a, b := before.Messages(), after.Messages()
	for i, m := range a {
		if m.Role == transcript.RoleAssistant || isCompressed(m.Text()) {
			break
		}
		if i < len(b) && (bytes.Equal(m.Raw(), b[i].Raw()) ||
			m.Role == transcript.RoleUser && b[i].Role == m.Role && (onlyPastes(m.Text(), b[i].Text()) || onlyMedia(m, b[i]))) {
			continue
		}
		return errProtected
	}
	var was, is []string
	for name := range before.Fields {
		was = append(was, name)
	}
	for name := range after.Fields {
		is = append(is, name)
	}
	if !slices.Equal(was, is) {
		return errProtected
	}
	return nil
}
