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
	return &lookout{seeker: m.seeker(req)}
}

// seeker finds calls of the tools of a request.
func (m *Mender) seeker(req *transcript.Body) seeker {
	return seeker{offers: func(name string) bool {
		o := m.offered(req)
		return o.named(name) != nil || o.named(bare(name)) != nil
	}}
}

// lookout finds in a text that is not complete what leaks may find at its end. Work
// is linear in the text: what was given free is not read again, and what is held
// is read again only when it has grown by half.
type lookout struct {
	seeker
	blank int // so much at the beginning says nothing
	free  int // no call begins before it
	next  int // from this length on another look is worth it
	tried int // places that looked like a call and were none
}

// again is by how many bytes at least a text that may be a call has to grow before
// it is read again.
const again = 24

// Free implements recovery.Lookout.
func (l *lookout) Free(text string) int {
	if len(text) < l.next {
		return l.free
	}
	for l.blank < len(text) && strings.IndexByte(blanks, text[l.blank]) >= 0 {
		if l.blank++; l.blank == len(text) {
			return 0
		}
	}
	if l.free > 0 && !strings.ContainsAny(text[l.free:], "<{[`") { // as most
		l.free = len(text)
		return l.free
	}
	for len(text) <= maxArguments && l.tried < maxPlaces {
		at := l.place(text, l.free)
		if at < 0 {
			if at = half(text); at >= l.free {
				l.free = at
				return at
			}
			break
		}
		f := l.read(text, at)
		l.free = max(l.free, min(at, len(f.before)))
		if f.open || f.marked {
			l.next = len(text) + max(again, (len(text)-l.free)/2)
			return l.free
		}
		l.free, l.tried = at+1, l.tried+1
	}
	l.free = len(text) // also where there are too many places, or too much text: it is not judged
	return l.free
}
