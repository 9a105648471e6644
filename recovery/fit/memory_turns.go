package fit

import (
	"sync"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// turns remember how far this process has served each conversation. While it
// serves every turn of one, what it knows is all there is to know: the store is
// not asked. Safe for concurrent use.
//
// Two generations of entries stand in for the order of their use: an entry that
// neither was touched in goes. A conversation that was forgotten costs one look.
type turns struct {
	mu       sync.Mutex
	now, old map[string]turn
}

// turn is how far a conversation was served.
type turn struct {
	answers int  // that its last request carried
	kept    bool // there was something to remember of it
}

// maxTurns bounds each generation.
const maxTurns = 16 << 10

// note remembers that a request with so many answers was served here.
func (t *turns) note(id string, answers int, kept bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.now[id]; !ok && len(t.now) >= maxTurns || t.now == nil {
		t.now, t.old = make(map[string]turn), t.now
	}
	t.now[id] = turn{answers, kept}
}

// follows reports whether a request with so many answers comes right after the
// last one that was served here, or is that one again. The first turn follows
// on nothing: a conversation has a name from its first answer on, and nobody
// can have edited what nobody could name. kept says that something is
// remembered here, or was.
func (t *turns) follows(id string, answers int) (yes, kept bool) {
	if answers <= 1 {
		return true, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	last, ok := t.now[id]
	if !ok {
		last, ok = t.old[id]
	}
	return ok && (answers == last.answers || answers == last.answers+1), last.kept
}

// answersIn counts the model's turns in a history. One answer may be several
// messages: what stands together counts once.
func answersIn(b *transcript.Body) (n int) {
	inside := false
	for _, m := range b.Messages() {
		is := m.Role == transcript.RoleAssistant
		if is && !inside {
			n++
		}
		inside = is
	}
	return n
}
