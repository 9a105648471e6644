package recovery

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// Resume continues an answer of which the client already has the beginning.
type Resume struct {
	Sent  string // text that the client has
	Way   Way    // how the rest is asked for; empty with Calls
	Calls bool   // the client has all of the text: only the calls of the new answer are wanted

	// Of WayListen and WayFetch: what is listened to again, or asked for.
	Job *Job

	// Of WayAsk: what the model is told, how many bytes of Sent's end that tells
	// it to repeat, and how many it must.
	Question      string
	Quoted, Least int

	// Tokens of Sent, and those that the request's prompt has more than the
	// client's: an answer is counted as if it had come in one piece.
	Tokens, Prompt int
}

// Way is how the rest of an answer is asked for.
type Way string

// The ways, the surest first.
const (
	WayPrefill Way = "prefill" // Sent is given as the beginning of the answer, which the server goes on from
	WayReplay  Way = "replay"  // the same request again: it must repeat all of Sent
	WayListen  Way = "listen"  // the server has gone on with it, and is asked for what is missing
	WayFetch   Way = "fetch"   // the server is asked for the whole answer, which it was to keep
	WayAsk     Way = "ask"     // the model is asked to repeat the last words of Sent and go on
)

// Ways are all of them, in the order in which they are tried.
func Ways() []Way { return []Way{WayPrefill, WayReplay, WayAsk} }

// Prober is a Sender that can find out how a target continues an answer whose
// beginning is given. It takes a moment, so it is asked only after a cut.
type Prober interface {
	// Prefill is never PrefillAuto.
	Prefill(ctx context.Context, c Candidate) Prefill
}

// probe finds out how the candidates continue an answer, where that is not known.
func (r *run) probe(ctx context.Context) {
	p, ok := r.sender.(Prober)
	if !ok || !slices.Contains(r.Config.Continue, WayPrefill) {
		return
	}
	for i := range r.x.Candidates {
		if c := &r.x.Candidates[i]; c.Prefill == PrefillAuto && !c.Out() && r.Health.Check(c.Target).Ready {
			c.Prefill = PrefillNone
			r.guard("prober", func() { c.Prefill = p.Prefill(ctx, c.Candidate) })
		}
	}
}

// Counter counts tokens, at least roughly. Safe for concurrent use; no I/O.
type Counter interface {
	Count(model, text string) int
}

// fetches reports whether nothing is asked of a model, nor of its target as such.
func (res *Resume) fetches() bool { return res != nil && res.Way == WayFetch }

// measure counts what a continuation has in its prompt.
func (r *run) measure(a Action) {
	res := a.Resume
	if res == nil || res.Calls || res.Tokens > 0 || res.fetches() {
		return
	}
	model := r.x.Candidates[a.Target].Model
	res.Tokens = r.tokens(model, res.Sent)
	switch res.Way {
	case WayPrefill:
		res.Prompt = res.Tokens
	case WayAsk:
		res.Prompt = res.Tokens + r.tokens(model, res.Question)
	}
}

func (r *run) tokens(model, text string) (n int) {
	if r.Tokens == nil || !r.guard("counter", func() { n = r.Tokens.Count(model, text) }) {
		return (len(text) + 3) / 4
	}
	return n
}

// spared is how many tokens of the answer a continuation does not write again.
func (res *Resume) spared() int {
	switch res.Way {
	case WayPrefill:
		return res.Tokens
	case WayAsk:
		return res.Delivered(res.Quoted)
	}
	return 0
}

// Delivered is how many tokens of Sent came before a continuation that repeats
// the last bytes of it.
func (res *Resume) Delivered(repeated int) int {
	return res.Tokens * max(0, len(res.Sent)-repeated) / max(1, len(res.Sent))
}

// repeaters are the targets that gave the same sampled answer twice: caches, and test
// servers. The zero repeaters knows none. Safe for concurrent use.
type repeaters struct {
	of sync.Map // Target without its key -> struct{}
	n  atomic.Int32
}

// maxRepeaters limits the targets that are remembered: clients name models.
const maxRepeaters = 1024

func (r *repeaters) saw(t Target) {
	if r.n.Load() >= maxRepeaters {
		return
	}
	if _, known := r.of.LoadOrStore(t.Keyless(), struct{}{}); !known {
		r.n.Add(1)
	}
}

func (r *repeaters) know(t Target) bool {
	_, known := r.of.Load(t.Keyless())
	return known
}
