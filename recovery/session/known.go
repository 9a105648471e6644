package session

import (
	"hash/maphash"
	"strings"
	"sync"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Known remembers the IDs of conversations that were identified lately. Each request
// of a conversation begins with the bytes of the one before, and an ID is derived
// from its beginning alone. It keeps hashes and IDs, no text and no credential.
// Bounded; safe for concurrent use.
type Known struct {
	seeds [2]maphash.Seed

	mu            sync.Mutex
	recent, older map[mark]string // two generations: what is asked for stays
}

// mark stands for all that an ID is derived from: two hashes with seeds that nobody
// outside knows, so that no two beginnings have the same one.
type mark [2]uint64

// maxKnown is how many IDs a generation has, of about 100 bytes each.
const maxKnown = 4096

// NewKnown makes a Known that remembers nothing yet.
func NewKnown() *Known {
	return &Known{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, recent: map[mark]string{}}
}

// Identify is Identify(in).String().
func (k *Known) Identify(in Input) string {
	if strings.TrimSpace(in.Explicit) != "" {
		return Identify(in).String()
	}
	begin, ok := opening(in.Body)
	if !ok {
		return conversation(in).String()
	}
	m := k.mark(in, begin.end)
	id, ok := k.get(m)
	if !ok {
		id = derive(in, begin).String()
		k.put(m, id)
	}
	return id
}

// read is what derive reads, texts but for the cache key as their hashes.
type read struct {
	format                       transcript.Format
	credential, beginning, hints uint64
	cacheKey                     string
}

// mark hashes what derive reads, of which derive leaves some out: what differs in
// that alone is derived once more.
func (k *Known) mark(in Input, end int) (m mark) {
	outside, beginning := in.Body.Beginning(end)
	r := read{format: in.Body.Format(), cacheKey: in.Body.CacheKey()}
	for i, seed := range k.seeds {
		before := uint64(0)
		if outside != nil {
			before = transcript.Sum(seed, 0, outside)
		}
		r.credential, r.beginning, r.hints = transcript.Sum(seed, 0, in.Credential), transcript.Sum(seed, before, beginning), 0
		for _, h := range in.Hints {
			r.hints = maphash.Comparable(seed, hinted{r.hints, h})
		}
		m[i] = maphash.Comparable(seed, r)
	}
	return m
}

// hinted is a hint behind others.
type hinted struct {
	before uint64
	hint   string
}

func (k *Known) get(m mark) (id string, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if id, ok = k.recent[m]; ok {
		return id, true
	}
	if id, ok = k.older[m]; ok {
		k.keep(m, id)
	}
	return id, ok
}

func (k *Known) put(m mark, id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keep(m, id)
}

// keep adds an ID to the recent ones. The lock is held.
func (k *Known) keep(m mark, id string) {
	if len(k.recent) >= maxKnown {
		k.recent, k.older = map[mark]string{}, k.recent
	}
	k.recent[m] = id
}
