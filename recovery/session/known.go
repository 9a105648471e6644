package session

import (
	"hash/maphash"
	"strings"
	"sync"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Known caches the IDs of recent conversations. This works because each request of a conversation begins with the bytes of
// the one before, and an ID is derived from the beginning alone. Known stores hashes and IDs, no text and no credential.
// Its size is limited; it is safe for concurrent use.
type Known struct {
	seeds [2]maphash.Seed

	mu            sync.Mutex
	recent, older map[mark]string // two generations: a hit in older moves to recent
}

// mark is the cache key: two hashes of everything that an ID is derived from. Their seeds are secret, so that clients
// cannot construct two beginnings with the same mark.
type mark [2]uint64

// maxKnown limits the IDs of one generation, of about 100 bytes each.
const maxKnown = 4096

// NewKnown returns an empty Known.
func NewKnown() *Known {
	return &Known{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, recent: map[mark]string{}}
}

// Identify returns Identify(in).String().
func (k *Known) Identify(in Input) string {
	if strings.TrimSpace(in.Explicit) != "" {
		return Identify(in).String()
	}
	begin, ok := findBeginning(in.Body)
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

// derivedFrom holds the input of derive, as hashes except for the cache key.
type derivedFrom struct {
	format                       transcript.Format
	credential, beginning, hints uint64
	cacheKey                     string
}

// mark hashes the input of derive. derive ignores some of it; a request that differs only there misses the cache, and its
// ID is derived again.
func (k *Known) mark(in Input, end int) (m mark) {
	outside, beginning := in.Body.Beginning(end)
	r := derivedFrom{format: in.Body.Format(), cacheKey: in.Body.CacheKey()}
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

// hinted is a hint with the hash of the hints before it.
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
