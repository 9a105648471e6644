package fit

import (
	"github.com/rebound-llm/rebound/recovery/transcript"
	"github.com/rebound-llm/rebound/store"
)

// turns remember how far this process has served each conversation. While it
// serves every turn of one, what it knows is all there is to know: the store is
// not asked. A conversation that was forgotten costs one look.
type turns struct{ *store.Cache[string, served] }

// served is how far a conversation was served.
type served struct {
	answers int  // that its last request carried
	kept    bool // there was something to remember of it
}

// maxTurns bounds how many conversations are remembered.
const maxTurns = 32 << 10

// note remembers that a request with so many answers was served here.
func (t turns) note(id string, answers int, kept bool) { t.Put(id, served{answers, kept}, 1) }

// follows reports whether a request with so many answers comes right after the
// last one that was served here, or is that one again. The first turn follows
// on nothing: a conversation has a name from its first answer on, and nobody
// can have edited what nobody could name. kept says that something is
// remembered here, or was.
func (t turns) follows(id string, answers int) (yes, kept bool) {
	if answers <= 1 {
		return true, false
	}
	last, ok := t.Get(id)
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
