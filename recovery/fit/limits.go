package fit

import (
	"encoding/json"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
	"github.com/rebound-llm/rebound/store"
)

// Windows that exist. Numbers beyond are error codes, bytes, or something else.
const (
	minWindow = 256
	maxWindow = 20_000_000
)

// LimitFrom is the context window that a failure proves, in tokens. Only an
// overflow of the window does, whose text states the limit: an allowance per
// minute or per day is none, and neither is a number from an answer that had
// begun or was cut, which once poisoned every later session of a client
// (billion-context#570).
func LimitFrom(f *recovery.Failure) (tokens int, ok bool) {
	if f == nil || f.Class() != recovery.ContextLengthExceeded {
		return 0, false
	}
	if f.Released > recovery.ReleasedNothing || f.Stalled || f.Diverged || f.Client {
		return 0, false
	}
	stream := f.Signal.Stream || f.Signal.Phase == recovery.PhaseStream
	if stream && (f.Err != nil || f.Signal.Err != nil || len(f.Response.Body) > 0 && !json.Valid(f.Response.Body)) {
		return 0, false
	}
	facts := f.Facts
	limit := facts.LimitTokens
	if limit < minWindow || limit > maxWindow {
		return 0, false
	}
	// What was asked for must exceed it, if that is stated. An input alone need
	// not: the room for the answer is added, whether the text says so or not.
	if n := facts.RequestedTokens; n > 0 && n+max(facts.RequestedOutput, facts.MaxOutputTokens) < limit {
		return 0, false
	}
	return limit, true
}

// DefaultReserve is the room for an answer where the client sets no limit and
// the window is large.
const DefaultReserve = 4096

// Reserve is the room that the answer needs, in tokens: the client's own limit,
// else an eighth of the window, at most DefaultReserve. window is 0 where it is
// not known. A limit above the window is cut to it.
func Reserve(b *transcript.Body, window int) int {
	n := DefaultReserve
	if window > 0 {
		n = min(n, window/8)
	}
	if _, limit, ok := b.OutputLimit(); ok && limit > 0 {
		n = limit
	}
	if window > 0 {
		n = min(n, window)
	}
	return n
}

// minOutput is the room for an answer that a request keeps in any case, in tokens.
const minOutput = 1024

// cappedReserve is the room for an answer that the history gives way for: a client's limit
// that takes up more than a quarter of the window is seldom used up, and is
// lowered before anything of the history goes.
func cappedReserve(b *transcript.Body, window int) int {
	return min(Reserve(b, window), max(minOutput, window/4))
}

// watchEvery is how often answers of a local server are looked at while nothing
// is known against it: one look shows what its window is.
const watchEvery = 5 * time.Second

// watch says when a target's answer is to be looked at. Safe for concurrent use.
type watch struct {
	*store.Cache[recovery.Target, time.Time]
}

// due reports whether it is time, and if so starts anew.
func (w watch) due(t recovery.Target) bool {
	t, now := t.Keyless(), time.Now()
	if last, ok := w.Get(t); ok && now.Sub(last) < watchEvery {
		return false
	}
	w.Put(t, now, 1)
	return true
}
