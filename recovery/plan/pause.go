package plan

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// target is a planner as one client asks it: the upstream key is left out, the client is part of it.
type target struct {
	recovery.Target
	client string
}

const (
	// pauseTime is how long a planner is paused after an empty, useless or refused answer.
	pauseTime = time.Hour
	// maxPaused limits the number of paused planners.
	maxPaused = 4096
	// maxListed limits the number of plans that Plans lists.
	maxListed = 64
)

// targetOf returns the planner for an exchange.
func (s *Planner) targetOf(x *recovery.Exchange, cfg *Config) target {
	t := target{recovery.Target{Upstream: cfg.Upstream, Model: cfg.Model}, x.Client()}
	if cfg.Upstream == Same {
		if t.Target = x.Candidates[0].Target; cfg.Model != "" {
			t.Model = cfg.Model
		}
	}
	return t
}

// isPaused reports whether a planner is paused for this client.
func (s *Planner) isPaused(t target) bool {
	until, ok := s.paused.Get(target{t.Keyless(), t.client})
	return ok && time.Now().Before(until)
}

// pause pauses a planner after a useless answer or a 4xx status, rate limits included. A planner that is
// unreachable or slow is not paused.
func (s *Planner) pause(t target, err error) {
	var f *recovery.Failure
	if errors.As(err, &f) && (f.Signal.Status < 400 || f.Signal.Status >= 500) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return
	}
	s.paused.Put(target{t.Keyless(), t.client}, time.Now().Add(pauseTime), 1)
}

// applyFallback applies the heuristic if the planner may not be asked again: other parameters first, then ask the
// user, then nothing until something new happens.
func (s *Planner) applyFallback(x *recovery.Exchange, st *state, slot string) {
	if st.Slot == slot || st.Heuristics >= maxAsked || !st.exhausted() && !s.isPaused(s.targetOf(x, s.cfg.Load())) {
		return
	}
	n := st.Heuristics + 1
	if st.exhausted() {
		n = maxAsked // other parameters, or a plan, were already proposed
	}
	s.applyHeuristic(x, st, n, slot, "the planner is not asked again", 0)
}

// applyHeuristic applies the n-th plan of the heuristic, because the planner is late or is not asked: the first says to
// try something else, the second to ask the user. took is how long the request waited.
func (s *Planner) applyHeuristic(x *recovery.Exchange, st *state, n int, slot, cause string, took time.Duration) {
	next := *st
	next.Heuristics, next.Slot, next.TurnsInRow, next.Used = n, slot, turnsInRow(x, st.Tool), ""
	next.Plan, next.Until = heuristic(n), time.Now().Add(planTTL)
	ev := x.Event(recovery.EventPlanMade)
	ev.Duration = took
	s.report(ev, next.Plan, cause)
	s.apply(x, &next, slot)
}

// Plans lists the plans that this process made, latest first, at most 64.
func (s *Planner) Plans() []recovery.MadePlan {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := slices.Clone(s.made)
	slices.Reverse(out)
	return out
}
