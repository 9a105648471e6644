package inspect

import (
	"hash/maphash"
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
	"github.com/rebound-llm/rebound/store"
)

// maxMemory is how much is remembered of turns, in bytes: some 15,000 of them.
const maxMemory = 4 << 20

// memory is what turns came to under one set of rules. An agent sends its whole
// history again with every request: with the memory a turn is judged once, without it
// once a request, which took three quarters of the stage's time. It holds hashes, and
// of a failure the line. Safe for concurrent use.
type memory struct {
	seeds [2]maphash.Seed
	turns *store.Cache[secretName, past]
}

// secretName names bytes by hashes whose seeds are secret: nobody can make two turns,
// or two texts, that share a name.
type secretName [2]uint64

// past is what the steps of a turn came to, as far as that was needed. It is never
// changed once it is remembered.
type past struct {
	judged   bool
	verdicts []recovery.ToolFailure // but for what names the call
	weighed  bool
	gists    []gist
	lapped   bool
	lap      lap
}

// lap is what a turn says of how an agent gets on.
type lap struct {
	changes bool // a call may have changed something
	waits   bool
	failed  bool
	print   uint64 // of the failure
	key     uint64 // of what failed, as turn.key says
}

// gist is what a step can bring to a history.
type gist struct {
	call, said uint64 // hashes: equal for equal calls, for equal results
	same       uint64 // equal for calls that trajectory.Call.Same says are the same
	nothing    bool   // the result says nothing
	awaits     bool
	changes    bool // it may have changed something
}

func newMemory() *memory {
	return &memory{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, turns: store.NewCache[secretName, past](maxMemory)}
}

// recall is what is known of turn k from earlier requests. Nothing is decoded for it.
func (h *history) recall(k int) *past {
	t := &h.turns[k]
	if !t.recalled {
		t.recalled = true
		raw := h.Body.Raw()[h.List[t.Start].Start:h.List[t.End-1].End]
		reading := uint64(h.Body.Format()) << 2 // how the bytes are read
		if h.Textual() {
			reading |= 1
		}
		if h.Fenced() {
			reading |= 2
		}
		m := h.rules.memory
		for i := range t.name {
			t.name[i] = transcript.Sum(m.seeds[i], reading, raw)
		}
		t.past, _ = m.turns.Get(t.name)
	}
	return &t.past
}

// remember keeps what is known of a turn now.
func (h *history) remember(t *turn) {
	size := 240 + 160*len(t.past.verdicts) + 32*len(t.past.gists)
	for i := range t.past.verdicts {
		size += len(t.past.verdicts[i].Line)
	}
	h.rules.memory.turns.Put(t.name, t.past, size)
}

// judge sets the verdicts of turn k. When too many different results were judged that
// nobody remembers, those of earlier turns count as successes of which nothing is
// known: that ends a row of failures.
func (h *history) judge(k int) {
	t, p := h.load(k), h.recall(k)
	if !p.judged && (len(h.turns)-1 == k || h.judged+len(t.steps) <= maxJudged) {
		h.judged += len(t.steps)
		verdicts := make([]recovery.ToolFailure, len(t.steps))
		for i := range t.steps {
			v := t.steps[i].open().verdict(&t.steps[i].ToolResult)
			v.CallID, v.Tool, v.Arguments, v.Line = "", "", "", strings.Clone(v.Line)
			verdicts[i] = v
		}
		p.judged, p.verdicts = true, verdicts
		h.remember(t)
	}
	for i := range t.steps {
		s := &t.steps[i]
		if s.judged = true; p.judged {
			s.verdict = p.verdicts[i]
			s.verdict.Index, s.verdict.CallID, s.verdict.Tool, s.verdict.Arguments = s.Index, s.CallID, s.Tool, s.Arguments
		}
	}
}

// gists is what the steps of turn k can bring.
func (h *history) gists(k int) []gist {
	p := h.recall(k)
	if p.weighed {
		return p.gists
	}
	t := h.load(k)
	gists := make([]gist, len(t.steps))
	for i := range t.steps {
		s := &t.steps[i]
		e, seed := h.look(s), h.rules.memory.seeds[0]
		gists[i] = gist{
			call: maphash.Comparable(seed, [2]string{s.Tool, s.made.Canonical()}), said: maphash.Comparable(seed, *e),
			same:    maphash.Comparable(seed, [2]string{s.Tool, s.made.Key()}),
			nothing: h.rules.trivial(e.text) && e.middle == "" && len(e.media) <= 1,
			awaits:  s.awaits(), changes: !s.made.Reads() && !s.judge().Failed,
		}
	}
	p.weighed, p.gists = true, gists
	if p.judged || len(gists) == 0 {
		h.remember(t)
	}
	return gists
}

// made is how many calls with results turn k has.
func (h *history) made(k int) int {
	if p := h.recall(k); p.weighed {
		return len(p.gists)
	}
	return len(h.load(k).steps)
}

// lap is what turn k says of how the agent gets on. Only where something is wrong
// that is asked.
func (h *history) lap(k int) *lap {
	p := h.recall(k)
	if p.lapped {
		return &p.lap
	}
	t := h.load(k)
	p.lap = lap{waits: t.waits(), changes: slices.ContainsFunc(t.steps, func(s step) bool { return s.made.Changes() })}
	if f := t.failure(); f != nil {
		p.lap.failed, p.lap.print, p.lap.key = true, f.Fingerprint, t.key()
	}
	p.lapped = true
	if p.judged {
		h.remember(t)
	}
	return &p.lap
}
