package recovery

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// Resume describes how to continue an answer whose beginning the client already has.
type Resume struct {
	Sent  string // text that the client has
	Way   Way    // how to get the rest; empty with Calls
	Calls bool   // the client has the whole text: only the calls of the new answer are used

	// For WayListen and WayFetch: the answer on the server.
	Job *Job

	// For WayAsk: Question asks the model to repeat the last Quoted bytes of Sent; the answer counts as a continuation if
	// it repeats at least the last Least bytes.
	Question      string
	Quoted, Least int

	// Tokens counts Sent; Prompt counts what the continuation adds to the client's prompt. They make the reported usage
	// that of an answer in one piece.
	Tokens, Prompt int
}

// Way is a way to get the rest of an answer.
type Way string

// The ways to continue an answer.
const (
	WayPrefill Way = "prefill" // the request gives Sent as the beginning of the answer, which the server continues
	WayReplay  Way = "replay"  // the same request is sent again: its answer must repeat all of Sent
	WayListen  Way = "listen"  // the server has continued the answer, and is asked for the missing events
	WayFetch   Way = "fetch"   // the server is asked for the whole answer, which it may have stored
	WayAsk     Way = "ask"     // the model is asked to repeat the last words of Sent and go on
)

// Ways returns the ways that can be configured, in the order in which they are tried.
func Ways() []Way { return []Way{WayPrefill, WayReplay, WayAsk} }

// Prober is a Sender that can find out how a target continues an answer whose beginning is given. This takes a moment,
// so it is used only after a cut.
type Prober interface {
	// Prefill never returns PrefillAuto.
	Prefill(ctx context.Context, c Candidate) Prefill
}

// probe finds out how the candidates continue an answer, if that is unknown.
func (r *run) probe(ctx context.Context) {
	p, ok := r.sender.(Prober)
	if !ok || !slices.Contains(r.Config.Continue, WayPrefill) {
		return
	}
	for i := range r.x.Candidates {
		if c := &r.x.Candidates[i]; c.Prefill == PrefillAuto && !c.Unusable() && r.Health.Check(c.Target).Ready {
			c.Prefill = PrefillNone
			r.guard("prober", func() { c.Prefill = p.Prefill(ctx, c.Candidate) })
		}
	}
}

// Counter counts tokens, at least roughly. Safe for concurrent use; no I/O.
type Counter interface {
	Count(model, text string) int
}

// fetches reports whether the attempt only fetches a stored answer, without work for a model.
func (res *Resume) fetches() bool { return res != nil && res.Way == WayFetch }

// listens reports whether the attempt reads the rest of an answer that its server still writes.
func (res *Resume) listens() bool { return res != nil && res.Way == WayListen }

// measure counts the tokens that a continuation adds to the prompt.
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

// tokensSaved returns how many tokens of the answer the continuation does not have to generate again.
func (res *Resume) tokensSaved() int {
	switch res.Way {
	case WayPrefill:
		return res.Tokens
	case WayAsk:
		return res.Delivered(res.Quoted)
	}
	return 0
}

// Delivered returns the number of tokens of Sent without its last repeated bytes, which the continuation repeats.
func (res *Resume) Delivered(repeated int) int {
	return res.Tokens * max(0, len(res.Sent)-repeated) / max(1, len(res.Sent))
}

// repeaters remembers targets that gave the same sampled answer twice: caches and test servers. The zero value is ready.
// Safe for concurrent use.
type repeaters struct {
	of sync.Map // Target without its key -> struct{}
	n  atomic.Int32
}

// maxRepeaters limits the remembered targets, since clients choose the names of models.
const maxRepeaters = 1024

func (r *repeaters) add(t Target) {
	if r.n.Load() >= maxRepeaters {
		return
	}
	if _, known := r.of.LoadOrStore(t.Keyless(), struct{}{}); !known {
		r.n.Add(1)
	}
}

func (r *repeaters) contains(t Target) bool {
	_, known := r.of.Load(t.Keyless())
	return known
}
