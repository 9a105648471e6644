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
	// maxMemory is how much is remembered of turns, in bytes: some 15,000 of them.
	maxMemory = 4 << 20
	// sizeOfSummary and sizeOfTrace are about what a turn and a step take there, in bytes.
	sizeOfSummary, sizeOfTrace = 160, 200
	// maxJudged limits how many results of the last turn are judged, and how many of the
	// turns before it when the request is not in the memory.
	maxJudged = 200
	// maxRead is how many calls of one turn are read for what they do; agents make some
	// tens at once. Those beyond are told apart by their bytes, and may change something.
	maxRead = 200
)

// memory keeps the summaries of turns under one set of rules. An agent sends its whole
// history again with every request: with the memory a turn is judged once, without it
// once a request, which took three quarters of the stage's time. It holds hashes, and
// of a failure the line. Safe for concurrent use.
type memory struct {
	seeds [2]maphash.Seed
	turns *store.Cache[secretName, summary]
}

// secretName names bytes by hashes whose seeds are secret: nobody can make two turns,
// or two texts, that share a name.
type secretName [2]uint64

// summary is what is remembered of a turn. It is immutable once it is in the memory.
type summary struct {
	steps   []trace
	waits   bool
	changes bool   // a call may have changed something
	wrong   bool   // nothing says that the calls failed, but all results read like it
	print   uint64 // of its failure, 0 where it did not fail
	key     uint64 // as turn.key says, where it failed or waits
}

// trace is what is remembered of a step.
type trace struct {
	verdict recovery.ToolFailure // but for what names the call
	call    uint64               // a hash, equal for calls that are the same but for what says nothing
	said    uint64               // a hash, equal for equal results
	nothing bool                 // the result says nothing
	awaits  bool
	changes bool // it succeeded, and may have changed something
}

func newMemory() *memory {
	return &memory{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, turns: store.NewCache[secretName, summary](maxMemory)}
}

// summary returns the summary of turn k. A turn that an earlier request had is not decoded again.
func (h *history) summary(k int) *summary {
	t, m := &h.turns[k], h.rules.memory
	if t.known {
		return &t.past
	}
	t.known = true
	raw := h.Body.Raw()[h.List[t.Start].Start:h.List[t.End-1].End]
	reading := uint64(h.Body.Format()) << 2 // how the bytes are read
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
	if t.past, ok = m.turns.Get(name); ok {
		return &t.past
	}
	if h.summarize(k) {
		size := sizeOfSummary + sizeOfTrace*len(t.past.steps)
		for i := range t.past.steps {
			size += len(t.past.steps[i].verdict.Line)
		}
		m.turns.Put(name, t.past, size)
	}
	return &t.past
}

// summarize sets the summary of turn k, and reports whether its results were judged. Beyond maxJudged, the results of
// earlier turns count as successes about which nothing is known, which ends a row of failures.
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
			verdict: v, call: maphash.Comparable(seed, [2]string{s.Tool, t.callKey(i)}), said: maphash.Comparable(seed, *e),
			nothing: h.rules.trivial(e.text) && e.middle == "" && e.media == "",
			awaits:  s.awaits(), changes: !v.Failed && (i >= maxRead || !s.made.Reads()),
		}
	}
	p := summary{steps: list, waits: t.waits()}
	p.changes = len(t.steps) > maxRead || slices.ContainsFunc(t.steps, func(s step) bool { return s.made.Changes() })
	f := t.failure()
	if f != nil {
		p.print = f.Fingerprint
	}
	p.wrong = f == nil && judged && len(t.steps) > 0 && !slices.ContainsFunc(t.steps, func(s step) bool { return !s.wrong() })
	if f != nil || p.waits || p.wrong {
		p.key = t.key()
	}
	t.past = p
	return judged
}
