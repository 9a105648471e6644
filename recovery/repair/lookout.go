package repair

import (
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Lookout implements recovery.Mender.
func (m *Mender) Lookout(req *transcript.Body) recovery.Lookout {
	if !m.Holds(req).Calls || req.ToolChoice().Choice == transcript.ChoiceNone {
		return nil
	}
	return &lookout{callFinder: m.callFinder(req)}
}

// callFinder returns a finder of calls of the request's tools.
func (m *Mender) callFinder(req *transcript.Body) callFinder {
	tools := m.offeredTools(req)
	return callFinder{offers: func(name string) bool { return tools.byName(name) != nil || tools.byName(stripName(name)) != nil }}
}

// lookout holds back the text of a stream in which callFinder.find may find calls at the
// end. The work is linear in the text: freed text is not read again, and held
// text only after it has grown by half.
type lookout struct {
	callFinder
	leadingSpace int // bytes of white space at the beginning
	free         int // no call begins before this offset
	nextLength   int // the length at which the held text is read again
	tried        int // candidates that were no calls
}

// Free implements recovery.Lookout.
func (l *lookout) Free(text string) int {
	if len(text) < l.nextLength {
		return l.free
	}
	for l.leadingSpace < len(text) && strings.IndexByte(whitespace, text[l.leadingSpace]) >= 0 {
		if l.leadingSpace++; l.leadingSpace == len(text) {
			return 0
		}
	}
	if l.free > 0 && !strings.ContainsAny(text[l.free:], "<{[`") { // the usual case
		l.free = len(text)
		return l.free
	}
	for len(text) <= maxArguments && l.tried < maxCandidates {
		at := l.nextCandidate(text, l.free)
		if at < 0 {
			if at = partialMark(text); at >= l.free {
				l.free = at
				return at
			}
			break
		}
		f := l.readAt(text, at)
		l.free = max(l.free, min(at, len(f.before)))
		if f.mayContinue || f.marked {
			l.nextLength = len(text) + max(1, (len(text)-l.free)/2)
			return l.free
		}
		l.free, l.tried = at+1, l.tried+1
	}
	l.free = len(text) // also after too many candidates, or with too much text: find would not read it either
	return l.free
}
