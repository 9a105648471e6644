package inspect

import (
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// How far back progress is looked at, in steps: what was known before, of how many
// steps it is the share, how many are the last ones, and how little of what these
// could have brought is none, in percent.
const (
	progressKnown  = 24
	progressSteps  = 12
	progressRecent = 3
	stuckBelow     = 5
)

// What a step counts that only failed, in a way that was not known, and in one that
// was but with something else in it; both less the longer the row of failures is.
const (
	newFailure   = 1.0 / 3
	knownFailure = 1.0 / 6
)

// Progress says whether an agent gets on at the end of a history. Its time is linear in
// the last 24 turns.
func (r *Rules) Progress(b *transcript.Body) recovery.Progress {
	l, _ := r.get()
	return l.readHistory(b).getsOn()
}

func (h *history) getsOn() (p recovery.Progress) {
	var gains []float64
	p.Task = h.follow(func(_ int, gain float64) { gains = append(gains, gain) })
	gains = gains[max(0, len(gains)-progressSteps):]
	p.Steps, p.Percent = len(gains), percent(gains)
	p.Recent = percent(gains[max(0, len(gains)-progressRecent):])
	p.Stuck = len(gains) >= progressRecent && p.Recent < stuckBelow
	return p
}

// follow tells what each of the last turns since a person spoke brought, and returns
// what the agent was at.
func (h *history) follow(brought func(k int, gain float64)) (task recovery.Task) {
	n := len(h.turns) - 1
	first := n
	for first > 0 && n-first+1 < progressKnown && !h.spoken(first-1) {
		first--
	}
	c := course{seen: seen{results: map[uint64]bool{}, calls: map[uint64]bool{}}, failures: map[uint64]bool{}, turns: map[uint64]bool{}}
	for k := max(first, 0); k <= n; k++ {
		if n := h.made(k); n == 0 || n > maxParallel {
			continue
		}
		if h.lap(k).changes {
			task = recovery.Changing
		} else if task == "" {
			task = recovery.Exploring
		}
		if g, ok := h.gain(&c, k); ok {
			brought(k, g)
		}
	}
	return task
}

// course is what a session knows, and what it failed in.
type course struct {
	seen
	failures, turns map[uint64]bool // fingerprints of failures, keys of turns that failed
	row             int             // of failing turns
}

// gain is what a turn with calls brought, 0 to 1; ok is false for one that waited.
func (h *history) gain(c *course, k int) (gain float64, ok bool) {
	progress, l := c.progress(h.gists(k)), h.lap(k)
	if !l.failed {
		c.row = 0
		if progress && !l.waits {
			gain = 1
		}
		return gain, !l.waits
	}
	if l.waits {
		return 0, false
	}
	switch {
	case c.turns[l.key]:
	case c.failures[l.print]:
		gain = knownFailure
	default:
		gain = newFailure
	}
	c.turns[l.key], c.failures[l.print] = true, true
	gain /= 1 + float64(c.row)/4
	c.row++
	return gain, true
}

func percent(list []float64) int {
	sum := 0.0
	for _, v := range list {
		sum += v
	}
	return int(100*sum/float64(max(1, len(list))) + 0.5)
}
