package plan

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// target is a planner as one client asks it: its key is left out, the client is not.
type target struct {
	recovery.Target
	client string
}

const (
	// spareTime is for how long a planner is not asked that gave an empty or useless
	// answer, or refused the question.
	spareTime = time.Hour
	// maxSpared bounds how many of those are remembered.
	maxSpared = 4096
	// maxListed bounds the plans that are listed.
	maxListed = 64
)

// targetOf is the planner that is asked for an exchange.
func (s *Planner) targetOf(x *recovery.Exchange, cfg *Config) target {
	t := target{recovery.Target{Upstream: cfg.Upstream, Model: cfg.Model}, x.Client()}
	if cfg.Upstream == Same {
		if t.Target = x.Candidates[0].Target; cfg.Model != "" {
			t.Model = cfg.Model
		}
	}
	return t
}

// isSpared reports whether a planner was of no use to this client lately.
func (s *Planner) isSpared(t target) bool {
	until, ok := s.spared.Get(target{t.Keyless(), t.client})
	return ok && time.Now().Before(until)
}

// spare has a planner left alone that answered with nothing useful, or refused: a rate
// limit is one. One that is away or slow is asked again.
func (s *Planner) spare(t target, err error) {
	var f *recovery.Failure
	if errors.As(err, &f) && (f.Signal.Status < 400 || f.Signal.Status >= 500) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return
	}
	s.spared.Put(target{t.Keyless(), t.client}, time.Now().Add(spareTime), 1)
}

// instead applies the rule that stands in for a planner that may not be asked again:
// other parameters first, then the user, then nothing until something new happens.
func (s *Planner) instead(x *recovery.Exchange, st *state, slot string) {
	if st.Slot == slot || st.Ruled >= maxAsked || !st.exhausted() && !s.isSpared(s.targetOf(x, s.cfg.Load())) {
		return
	}
	n := st.Ruled + 1
	if st.exhausted() {
		n = maxAsked // other parameters were proposed, or a plan was
	}
	s.rule(x, st, n, slot, "the planner is not asked again", 0)
}

// rule has the n-th rule in a trouble stand in for a planner that is late after so long, or
// is not asked: an agent is told to try something else once, and then to ask.
func (s *Planner) rule(x *recovery.Exchange, st *state, n int, slot, cause string, took time.Duration) {
	next := *st
	next.Ruled, next.Slot, next.Run, next.Used = n, slot, run(x, st.Tool), ""
	next.Plan, next.Until = heuristic(n), time.Now().Add(planTTL)
	ev := x.Event(recovery.EventPlanMade)
	ev.Duration = took
	s.report(ev, next.Plan, cause)
	s.apply(x, &next, slot)
}

// list keeps a plan for Plans.
func (s *Planner) list(m recovery.MadePlan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made = append(s.made, m)
	s.made = slices.Delete(s.made, 0, max(0, len(s.made)-maxListed))
}

// Plans lists the latest plans that this process made, the latest first.
func (s *Planner) Plans() []recovery.MadePlan {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := slices.Clone(s.made)
	slices.Reverse(out)
	return out
}
