package fit

import (
	"encoding/json"
	"time"

	"github.com/rebound-llm/rebound/recovery"
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

// Shares of the count below which a report means that a part of the prompt was
// not read. Vocabularies differ less than that, and estimates of images too.
const (
	truncatedShare    = 0.6 // of a calibrated count
	truncatedShareRaw = 0.4 // of a count that nothing confirmed yet
	truncatedFrom     = 2000
)

// Truncated reports whether a server read only a part of a prompt without
// saying so, as servers with a small window do (Ollama's num_ctx is 4,096 by
// default, https://github.com/ollama/ollama/blob/main/docs/faq.md): what it
// reports is far below the count. Small prompts prove nothing. calibrated says
// that the count rests on earlier reports. Such a report is no basis for
// anything but a limit on what to send.
func Truncated(count, reported int, calibrated bool) bool {
	share := truncatedShareRaw
	if calibrated {
		share = truncatedShare
	}
	return count > truncatedFrom && reported > 0 && float64(reported) < share*float64(count)
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
	t, now := keyless(t), time.Now()
	if last, ok := w.Get(t); ok && now.Sub(last) < watchEvery {
		return false
	}
	w.Put(t, now, 1)
	return true
}
