package fit

import (
	"fmt"
	"hash/fnv"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/store"
)

// maxWindows limits how many targets' windows are remembered.
const maxWindows = 512

// learnedLimits holds limits that refusals showed: context windows in tokens, or sizes in
// bytes. They expire, since providers raise them. Safe for concurrent use.
type learnedLimits struct {
	ttl    time.Duration
	limits *store.Cache[recovery.Target, limit]
}

// limit is a learned limit.
type limit struct {
	size    int // in tokens or bytes; 0 if the refusal did not state it
	since   time.Time
	until   time.Time
	request string // id of the refused request
}

func newLearnedLimits(ttl time.Duration) *learnedLimits {
	return &learnedLimits{ttl, store.NewCache[recovery.Target, limit](maxWindows)}
}

// Window implements Windows.
func (w *learnedLimits) Window(t recovery.Target) int {
	if l, _ := w.limits.Get(t.Keyless()); time.Now().Before(l.until) {
		return l.size
	}
	return 0
}

// Overflowed implements Windows.
func (w *learnedLimits) Overflowed(t recovery.Target) bool {
	l, _ := w.limits.Get(t.Keyless())
	return time.Now().Before(l.until)
}

// LearnWindow implements Windows.
func (w *learnedLimits) LearnWindow(t recovery.Target, tokens int, request string) {
	now := time.Now()
	l, known := w.limits.Get(t.Keyless())
	if !known || tokens != 0 && tokens != l.size {
		l = limit{size: tokens, since: now, request: request}
	}
	l.until = now.Add(w.ttl)
	w.limits.Put(t.Keyless(), l, 1)
}

// itemSize is the Item of a Mark for a limit of bytes.
const itemSize = "size of a request"

// Marks lists the targets whose limit of bytes this process has learned.
func (f *Fitter) Marks() (marks []recovery.Mark) {
	f.byteLimits.limits.Each(func(t recovery.Target, l limit) bool {
		if time.Now().Before(l.until) {
			marks = append(marks, recovery.Mark{Target: t.String(), Kind: recovery.MarkWindow, Item: itemSize, Detail: fmt.Sprintf("takes %d bytes at most", l.size),
				Evidence: "a refusal for its size", Request: l.request, Since: l.since, Until: l.until})
		}
		return true
	})
	return marks
}

// Clear forgets a target's limit of bytes, if item is that of its Mark or empty.
func (f *Fitter) Clear(name, item string) {
	if item == "" || item == itemSize {
		f.byteLimits.limits.DeleteFunc(func(t recovery.Target, _ limit) bool { return t.String() == name })
	}
}

// targetHash identifies a target in a stored session.
func targetHash(t recovery.Target) uint64 {
	h := fnv.New64a()
	h.Write([]byte(t.Upstream + "\x00" + t.Model))
	return h.Sum64()
}
