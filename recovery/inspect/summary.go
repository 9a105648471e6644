package inspect

import (
	"hash/maphash"
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
	"github.com/rebound-llm/rebound/store"
)

const (
	// maxMemory limits the cache of summaries, in bytes: some 15,000 turns.
	maxMemory = 4 << 20
	// sizeOfSummary and sizeOfTrace are the approximate sizes of a turn and a step there, in bytes.
	sizeOfSummary, sizeOfTrace = 160, 200
	// maxJudged limits how many results of the last turn are judged, and how many results of earlier turns that are not
	// cached.
	maxJudged = 200
	// maxRead limits how many calls of one turn are parsed; agents make some tens at once. Further calls are compared by
	// their bytes and count as calls that may change something.
	maxRead = 200
)

// memory caches the summaries of turns for one set of rules. An agent sends its whole history with every
// request: with the cache a turn is judged once, without it once per request, which took three quarters of the
// stage's time. It contains hashes, and the line of a failure. It is safe for concurrent use.
type memory struct {
	seeds [2]maphash.Seed
	turns *store.Cache[secretName, summary]
}

// secretName identifies bytes by hashes with secret seeds, so that no one can construct two turns or texts with
// the same name.
type secretName [2]uint64

// summary is the cached result of inspecting a turn. It is immutable once it is in the cache.
type summary struct {
	steps       []trace
	waits       bool
	changes     bool   // a call may have changed something
	seemsFailed bool   // the outcome is unknown, but all results read like failures
	print       uint64 // fingerprint of its failure, 0 if it did not fail
	key         uint64 // result of turn.key, if it failed or waits
}

// trace is the cached result of inspecting a step.
type trace struct {
	verdict recovery.ToolFailure // without the fields that identify the call
	call    uint64               // a hash, equal for calls that differ only in volatile parts
	result  uint64               // a hash, equal for equal results
	nothing bool                 // the result has no content
	awaits  bool
	changes bool // it succeeded and may have changed something
}

func newMemory() *memory {
	return &memory{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, turns: store.NewCache[secretName, summary](maxMemory)}
}

// summary returns the summary of turn k. A turn of an earlier request is not decoded again.
func (h *history) summary(k int) *summary {
	t, m := &h.turns[k], h.rules.memory
	if t.isCached {
		return &t.cached
	}
	t.isCached = true
	raw := h.Body.Raw()[h.List[t.Start].Start:h.List[t.End-1].End]
	reading := uint64(h.Body.Format()) << 2 // the mode of parsing the bytes
	if h.Textual() {
		reading |= 1
	}
	if h.Fenced() {
		reading |= 2
	}
	var name secretName
	for i := range name {
		name[i] = transcript.Sum(m.seeds[i], reading, raw)
	}
	var ok bool
	if t.cached, ok = m.turns.Get(name); ok {
		return &t.cached
	}
	if h.summarize(k) {
		size := sizeOfSummary + sizeOfTrace*len(t.cached.steps)
		for i := range t.cached.steps {
			size += len(t.cached.steps[i].verdict.Line)
		}
		m.turns.Put(name, t.cached, size)
	}
	return &t.cached
}

// summarize sets the summary of turn k, and reports whether its results were judged. Beyond maxJudged, results
// of earlier turns count as successes of unknown content, which ends a row of failures.
func (h *history) summarize(k int) (judged bool) {
	t := h.load(k)
	if judged = k == len(h.turns)-1 || h.judged+len(t.steps) <= maxJudged; judged {
		h.judged += min(len(t.steps), maxJudged)
	}
	list, seed := make([]trace, len(t.steps)), h.rules.memory.seeds[0]
	for i := range t.steps {
		s := &t.steps[i]
		if s.judged = true; judged && i < maxJudged {
			s.verdict = s.open().verdict(&s.ToolResult)
		}
		v := s.verdict
		v.CallID, v.Tool, v.Arguments, v.Line = "", "", "", strings.Clone(v.Line)
		e := s.essence()
		list[i] = trace{
			verdict: v, call: maphash.Comparable(seed, [2]string{s.Tool, t.callKey(i)}), result: maphash.Comparable(seed, *e),
			nothing: h.rules.trivial(e.text) && e.middle == "" && e.media == "",
			awaits:  s.awaits(), changes: !v.Failed && (i >= maxRead || !s.call.Reads()),
		}
	}
	p := summary{steps: list, waits: t.waits()}
	p.changes = len(t.steps) > maxRead || slices.ContainsFunc(t.steps, func(s step) bool { return s.call.Changes() })
	f := t.failure()
	if f != nil {
		p.print = f.Fingerprint
	}
	p.seemsFailed = f == nil && judged && len(t.steps) > 0 && !slices.ContainsFunc(t.steps, func(s step) bool { return !s.seemsFailed() })
	if f != nil || p.waits || p.seemsFailed {
		p.key = t.key()
	}
	t.cached = p
	return judged
}
