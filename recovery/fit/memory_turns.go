package fit

import (
	"hash/maphash"

	"github.com/rebound-llm/rebound/recovery/transcript"
	"github.com/rebound-llm/rebound/store"
)

// turnCache remembers the last turn of each conversation that this process has served. While
// the process serves every turn, the store has nothing newer and is not read. An evicted
// conversation costs one read. Safe for concurrent use.
type turnCache struct {
	*store.Cache[string, served]
	seed maphash.Seed
}

// served is the last request of a conversation that was served here.
type served struct {
	place
	hadSession bool // the memory held its session
}

// place is a request's place in its conversation.
type place struct {
	answers            int    // in its history
	last, beforeAnswer uint64 // hashes of its last message, and of the one before its last answer
}

// maxTurns limits the number of remembered conversations.
const maxTurns = 32 << 10

func newTurnCache() turnCache {
	return turnCache{store.NewCache[string, served](maxTurns), maphash.MakeSeed()}
}

// note records that a request was served here.
func (t turnCache) note(id string, p place, hadSession bool) { t.Put(id, served{p, hadSession}, 1) }

// follows reports whether a request comes right after the last one that was served here,
// or repeats it. The hashes matter since a client that trims its history may send the same
// number of answers each time. A first turn always follows: a conversation has no
// session id before its first answer, so no replica can have edited it. hadSession reports
// whether this process held the session then.
func (t turnCache) follows(id string, p place) (yes, hadSession bool) {
	if p.answers <= 1 {
		return true, false
	}
	last, ok := t.Get(id)
	return ok && (p.answers == last.answers && p.last == last.last || p.answers == last.answers+1 && p.beforeAnswer == last.last), last.hadSession
}

// placeOf returns a request's place. Adjacent assistant messages count as one answer.
func (t turnCache) placeOf(b *transcript.Body) (p place) {
	list := b.Messages()
	before, inside := -1, false
	for i, m := range list {
		is := m.Role == transcript.RoleAssistant
		if is && !inside {
			p.answers++
			before = i - 1
		}
		inside = is
	}
	if p.answers > 1 {
		p.last, p.beforeAnswer = t.hash(list[len(list)-1]), t.hash(list[max(0, before)])
	}
	return p
}

// hash hashes what identifies a message in any formatting: the id of the call that it answers, else its text.
func (t turnCache) hash(m transcript.Message) uint64 {
	id := m.AppendToolCallID(nil)
	if len(id) == 0 {
		id = m.AppendText(id)
	}
	return transcript.Sum(t.seed, 0, id)
}
