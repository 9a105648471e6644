package inspect

import (
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Limits of the progress, in steps: how far back results are known, how many steps count, how many are the
// recent ones. Below stuckBelow percent, the recent steps count as no progress.
const (
	progressKnown  = 24
	progressSteps  = 12
	progressRecent = 3
	stuckBelow     = 5
)

// The share of a step that failed in a new way, and of one that failed in a known way with a new detail. Both
// decrease with the number of consecutive failures.
const (
	newFailure   = 1.0 / 3
	knownFailure = 1.0 / 6
)

// Progress measures an agent's progress at the end of a history. It takes time linear in the last 24 turns.
func (r *Rules) Progress(b *transcript.Body) recovery.Progress {
	l, _ := r.get()
	return l.readHistory(b).progress()
}

func (h *history) progress() (p recovery.Progress) {
	gains, task := h.gains()
	gains = gains[max(0, len(gains)-progressSteps):]
	p.Steps, p.Percent, p.Task = len(gains), percent(gains), task
	p.Recent = percent(gains[max(0, len(gains)-progressRecent):])
	p.Stuck = len(gains) >= progressRecent && p.Recent < stuckBelow
	return p
}

// gain is the progress of a turn, 0 to 1.
type gain struct {
	turn  int
	share float64
}

// gains returns the progress of the last turns since the user spoke, without waiting turns, and the agent's kind
// of task.
func (h *history) gains() (list []gain, task recovery.Task) {
	c := progressState{seen: newSeen(), failures: map[uint64]bool{}, turns: map[uint64]bool{}}
	for k := max(h.since(progressKnown), 0); k < len(h.turns); k++ {
		p := h.summary(k)
		if n := len(p.steps); n == 0 || n > maxParallel {
			continue
		}
		if p.changes {
			task = recovery.Changing
		} else if task == "" {
			task = recovery.Exploring
		}
		if share := c.gain(p); !p.waits {
			list = append(list, gain{k, share})
		}
	}
	return list, task
}

// noProgress finds a number of steps at the end of the history, in turn first or later, that brought nothing:
// each repeated a call or only read, and each result was known or empty. After a call that may have changed
// something all results count as new, and so after a user's message.
func (h *history) noProgress(first, steps int) []recovery.Loop {
	if steps <= 0 || len(h.turns)-first < steps {
		return nil
	}
	known, count, from, before := newSeen(), 0, first, false
	for k := first; k < len(h.turns); k++ {
		switch p := h.summary(k); {
		case len(p.steps) == 0:
		case known.progress(p.steps):
			before = before || count >= steps
			count = 0
		default:
			if count++; count == 1 {
				from = k
			}
		}
	}
	if count < steps {
		return nil
	}
	l := h.loop(recovery.LoopNoProgress, count, from, from)
	l.New = count == steps && !before // reported once
	l.Fingerprint = trajectory.Hash(string(l.Kind), string(h.List[l.From].Raw()))
	return []recovery.Loop{l}
}

// seen holds what is known so far, by the hashes of traces.
type seen struct {
	results, calls map[uint64]bool
}

func newSeen() seen { return seen{results: map[uint64]bool{}, calls: map[uint64]bool{}} }

// progress reports whether a turn brought anything new, and records it.
func (known *seen) progress(turn []trace) bool {
	progress, changed := false, false
	for i := range turn {
		s := &turn[i]
		if !s.nothing {
			progress = progress || !known.results[s.result]
			known.results[s.result] = true
		}
		progress = progress || s.awaits
		changed = changed || s.changes && !known.calls[s.call]
		known.calls[s.call] = true
	}
	if changed {
		clear(known.results)
		clear(known.calls)
	}
	return progress || changed
}

// progressState is a session's known results and its failures.
type progressState struct {
	seen
	failures, turns map[uint64]bool // fingerprints of failures, keys of turns that failed
	row             int             // consecutive failing turns
}

// gain returns the progress of a turn with calls, 0 to 1; 0 for a waiting turn.
func (c *progressState) gain(p *summary) (gain float64) {
	progress := c.progress(p.steps)
	if p.print == 0 {
		c.row = 0
		if progress {
			gain = 1
		}
		return gain
	}
	if p.waits {
		return 0
	}
	switch {
	case c.turns[p.key]:
	case c.failures[p.print]:
		gain = knownFailure
	default:
		gain = newFailure
	}
	c.turns[p.key], c.failures[p.print] = true, true
	gain /= 1 + float64(c.row)/4
	c.row++
	return gain
}

// percent returns the mean share in percent.
func percent(list []gain) int {
	sum := 0.0
	for _, g := range list {
		sum += g.share
	}
	return int(100*sum/float64(max(1, len(list))) + 0.5)
}
