package fit

import (
	"fmt"
	"hash/fnv"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/store"
)

// maxTargets limits how many targets' limits are remembered.
const maxTargets = 512

// byteLimits holds the largest request of each target in bytes, learned from refusals. The limits expire, since
// providers raise them. Safe for concurrent use.
type byteLimits struct {
	ttl time.Duration
	*store.Cache[recovery.Target, learnedLimit]
}

// learnedLimit is a learned limit.
type learnedLimit struct {
	bytes   int
	since   time.Time
	until   time.Time
	request string // id of the refused request
}

func newByteLimits(ttl time.Duration) byteLimits {
	return byteLimits{ttl, store.NewCache[recovery.Target, learnedLimit](maxTargets)}
}

// of returns a target's limit, 0 if it is unknown or has expired.
func (w byteLimits) of(t recovery.Target) int {
	if l, _ := w.Get(t.Keyless()); time.Now().Before(l.until) {
		return l.bytes
	}
	return 0
}

// learn records that a target refused a request for its size, and the limit that the refusal shows.
func (w byteLimits) learn(t recovery.Target, bytes int, request string) {
	now := time.Now()
	l, known := w.Get(t.Keyless())
	if !known || bytes != l.bytes {
		l = learnedLimit{bytes: bytes, since: now, request: request}
	}
	l.until = now.Add(w.ttl)
	w.Put(t.Keyless(), l, 1)
}

// itemSize is the Item of a Mark for a limit of bytes.
const itemSize = "size of a request"

// Marks lists the targets whose limit of bytes this process has learned.
func (f *Fitter) Marks() (marks []recovery.Mark) {
	f.byteLimits.Each(func(t recovery.Target, l learnedLimit) bool {
		if time.Now().Before(l.until) {
			marks = append(marks, recovery.Mark{Target: t.String(), Kind: recovery.MarkWindow, Item: itemSize, Detail: fmt.Sprintf("takes %d bytes at most", l.bytes),
				Evidence: "a refusal for its size", Request: l.request, Since: l.since, Until: l.until})
		}
		return true
	})
	return marks
}

// Clear forgets a target's limit of bytes, if item is that of its Mark or empty.
func (f *Fitter) Clear(name, item string) {
	if item == "" || item == itemSize {
		f.byteLimits.DeleteFunc(func(t recovery.Target, _ learnedLimit) bool { return t.String() == name })
	}
}

// targetHash identifies a target in a stored session, with the context window that an exchange asks for.
func targetHash(x *recovery.Exchange, t recovery.Target) uint64 {
	t = x.Windowed(t)
	h := fnv.New64a()
	h.Write([]byte(t.Upstream + "\x00" + t.Model))
	return h.Sum64()
}
