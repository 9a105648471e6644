package inspect

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// position describes where a history stands whose last turn failed or waits again for the same thing: which turn
// it is, its failure, and what came before. It returns the zero Turn if a tool succeeded or there are no new
// results.
func (h *history) position() (p recovery.Turn) {
	t, n := h.last(), len(h.turns)-1
	if t == nil || len(t.steps) == 0 || len(t.steps) > maxParallel {
		return p
	}
	now := h.summary(n)
	if now.print == 0 && !((now.waits || now.seemsFailed) && n > 0 && !h.userSpoke(n-1) && h.repeats(n-1, n)) {
		return p
	}
	p.User, p.Slot, p.Key = h.userBefore(len(h.List)), h.slot(n), now.key
	p.Streak = h.streak(p.Key, p.User)
	if p.Streak > 1 {
		p.Allowed, p.Until = h.askedToRepeat()
	}
	if p.Waits = now.waits; n > 0 && (p.Waits || p.Until) {
		p.Before = h.slot(n - 1)
	}
	if p.Waits {
		return p
	}
	p.Failure, p.Success = t.failure(), h.lastSuccess()
	if now.seemsFailed {
		p.Failure, p.Success, p.Seen = t.steps[0].complaint(), 0, p.Streak
		return p
	}
	for k := range h.turns {
		if h.summary(k).print == now.print {
			p.Seen++
		}
	}
	return p
}

// key returns a hash of the turn's calls and results, equal in every process and for turns that repeat each
// other.
func (t *turn) key() uint64 {
	prints := make([]uint64, len(t.steps))
	for i := range t.steps {
		s := &t.steps[i]
		prints[i] = trajectory.Hash(s.Tool, t.callKey(i), fmt.Sprint(s.outcome()))
	}
	return combined("", prints)
}

// callKey returns a key of call i, equal for equivalent calls.
func (t *turn) callKey(i int) string {
	if i >= maxRead {
		return t.steps[i].Arguments
	}
	return t.steps[i].call.Key()
}

// slot identifies turn k by its bytes and its position.
func (h *history) slot(k int) string {
	t, sum := &h.turns[k], sha256.New()
	for _, m := range h.List[t.Start:t.Answered] {
		_, _ = sum.Write(m.Raw())
	}
	_, _ = sum.Write(binary.BigEndian.AppendUint64(nil, uint64(h.ordinal-(len(h.turns)-1-k))))
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// failure returns the turn's failure, or nil if a result is a success or there are no results. Several different
// failures become one with a fingerprint of its own.
func (t *turn) failure() *recovery.ToolFailure {
	var first *recovery.ToolFailure
	var prints []uint64
	for i := range t.steps {
		f := t.steps[i].judge()
		if !f.Failed {
			return nil
		}
		if first == nil || first.Category == recovery.CategoryNone && f.Category != recovery.CategoryNone {
			first = f
		}
		prints = append(prints, f.Fingerprint)
	}
	if first == nil {
		return nil
	}
	out := *first
	if slices.Sort(prints); prints[0] != prints[len(prints)-1] {
		out.Fingerprint = combined("", prints)
	}
	return &out
}

// complaint returns a failure for a result that reads like an error although the outcome of its call is unknown. It
// counts only once the result is repeated.
func (s *step) complaint() *recovery.ToolFailure {
	f := *s.judge()
	f.Failed, f.Category, f.Confidence, f.Rule = true, recovery.CategoryNone, possible, "complaint"
	for line := range strings.Lines(s.essence().text) {
		if line = strings.TrimSpace(line); f.Line == "" || s.history.rules.says(short(line), complaint) {
			if f.Line = trajectory.Shorten(line, maxLine); s.history.rules.says(short(line), complaint) {
				break
			}
		}
	}
	f.Fingerprint = fingerprint(s.Tool, f.Category, f.Line)
	return &f
}

// lastSuccess identifies the last successful result.
func (h *history) lastSuccess() uint64 {
	for k := len(h.turns) - 1; k >= 0; k-- {
		t := h.load(k)
		for i := len(t.steps) - 1; i >= 0; i-- {
			if s := &t.steps[i]; !s.judge().Failed {
				return trajectory.Hash(s.CallID, s.Tool, s.Arguments, s.content())
			}
		}
	}
	return 0
}

// streak counts the consecutive turns at the end with this key and no new user message between them. Turns
// without calls do not count.
func (h *history) streak(key, user uint64) (n int) {
	for k := len(h.turns) - 1; k >= 0 && h.userBefore(h.turns[k].Start) == user; k-- {
		if p := h.summary(k); p.key == key {
			n++
		} else if len(p.steps) > 0 {
			break
		}
	}
	return max(n, 1)
}
