package fit

import (
	"hash/maphash"

	"github.com/rebound-llm/rebound/recovery/transcript"
	"github.com/rebound-llm/rebound/store"
)

// turnCache remember how far this process has served each conversation. While it
// serves every turn of one, what it knows is all there is to know: the store is
// not asked. A conversation that was forgotten costs one look.
type turnCache struct {
	*store.Cache[string, served]
	seed maphash.Seed
}

// served is how far a conversation was served.
type served struct {
	place
	remembered bool // there was something to remember of it
}

// place is where in its conversation a request stands.
type place struct {
	answers            int    // that it carries
	last, beforeAnswer uint64 // its last message, and the one before its last answer, hashed
}

// maxTurns bounds how many conversations are remembered.
const maxTurns = 32 << 10

func newTurnCache() turnCache {
	return turnCache{store.NewCache[string, served](maxTurns), maphash.MakeSeed()}
}

// note remembers that a request was served here.
func (t turnCache) note(id string, p place, kept bool) { t.Put(id, served{p, kept}, 1) }

// follows reports whether a request comes right after the last one that was served
// here, or is that one again. A client that cuts its history carries as many answers
// each time, so what the last answer was asked with counts, too. The first turn follows
// on nothing: a conversation has a name from its first answer on, and nobody
// can have edited what nobody could name. kept says that something is
// remembered here, or was.
func (t turnCache) follows(id string, p place) (yes, kept bool) {
	if p.answers <= 1 {
		return true, false
	}
	last, ok := t.Get(id)
	return ok && (p.answers == last.answers && p.last == last.last || p.answers == last.answers+1 && p.beforeAnswer == last.last), last.remembered
}

// placeOf reads where a request stands. One answer may be several messages: what
// stands together counts once.
func (t turnCache) placeOf(b *transcript.Body) (p place) {
	list := b.Messages()
	asked, inside := -1, false
	for i, m := range list {
		is := m.Role == transcript.RoleAssistant
		if is && !inside {
			p.answers++
			asked = i - 1
		}
		inside = is
	}
	if p.answers > 1 {
		p.last, p.beforeAnswer = t.hash(list[len(list)-1]), t.hash(list[max(0, asked)])
	}
	return p
}

// hash hashes what identifies a message, however its client writes it: the id of the call that it answers, else its text.
func (t turnCache) hash(m transcript.Message) uint64 {
	said := m.AppendToolCallID(nil)
	if len(said) == 0 {
		said = m.AppendText(said)
	}
	return transcript.Sum(t.seed, 0, said)
}
