package fit

import (
	"encoding/json"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
	"github.com/rebound-llm/rebound/store"
)

// The range of plausible windows, in tokens. Other numbers are error codes, bytes, or the like.
const (
	minWindow = 256
	maxWindow = 20_000_000
)

// limitFrom returns the context window that a failure proves, in tokens. Only an overflow
// of the window that states the limit proves one. A rate limit does not, nor does a number
// from an answer that had begun or was cut off, which in another client poisoned every
// later session (billion-context#570).
func limitFrom(f *recovery.Failure) (tokens int, ok bool) {
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
	// The requested tokens must exceed the limit, if they are stated. An input alone need
	// not, since the answer's tokens come on top, stated or not.
	if n := facts.RequestedTokens; n > 0 && n+max(facts.RequestedOutput, facts.MaxOutputTokens) < limit {
		return 0, false
	}
	return limit, true
}

// defaultReserve is the reserve for an answer, in tokens, if the client sets no limit and
// the window is large.
const defaultReserve = 4096

// outputReserve returns how many tokens to keep for the answer: the client's output limit, else an
// eighth of the window, at most defaultReserve. It never exceeds the window, which is 0 if
// unknown.
func outputReserve(b *transcript.Body, window int) int {
	n := defaultReserve
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

// minOutput is the smallest output limit that fitting sets, in tokens.
const minOutput = 1024

// cappedReserve returns the reserve for which the history is shortened: at most a quarter of
// the window. A greater output limit is seldom used up, so it is lowered instead.
func cappedReserve(b *transcript.Body, window int) int {
	return min(outputReserve(b, window), max(minOutput, window/4))
}

// watchEvery is the interval between checks of a local server's answers for silent
// truncation.
const watchEvery = 5 * time.Second

// watch decides when to check a target's answer. Safe for concurrent use.
type watch struct {
	*store.Cache[recovery.Target, time.Time]
}

// due reports whether a check is due, and if so starts the next interval.
func (w watch) due(t recovery.Target) bool {
	t, now := t.Keyless(), time.Now()
	if last, ok := w.Get(t); ok && now.Sub(last) < watchEvery {
		return false
	}
	w.Put(t, now, 1)
	return true
}
