package recovery

import (
	"context"
	"slices"
	"time"
)

// withoutFallback goes on as if the fallback that failed did not exist: with the target of an earlier rank that was not
// asked because it was not available, or with the first target's failure.
func (r *run) withoutFallback(ctx context.Context, f *Failure) (Action, bool) {
	x := r.x
	if f.Released > ReleasedNothing || !r.onlyFallback(f) {
		return Action{}, false
	}
	i, ok := r.unasked(f)
	if x.exclude(f.Target); f.Class().Retryable() {
		r.spare = f
	}
	switch {
	case !ok:
		return r.plan(ctx, r.transient)
	case time.Now().After(x.deadline):
		return Action{}, false
	}
	a := Action{Strategy: "move", Target: i}
	r.recordAction(a, f)
	return a, true
}

// onlyFallback reports whether f is the failure of a fallback, although an earlier target may serve the request: that one has
// failed for a reason that may pass, or was not asked. What another failure than a refusal of the request says stands if the
// first target has never answered.
func (r *run) onlyFallback(f *Failure) bool {
	if f.Spec == nil || f.Flaw != nil {
		return false
	}
	if _, ok := r.unasked(f); ok {
		return true
	}
	first := r.transient
	return first != nil && !f.Target.alike(first.Target) && (f.Scope() == ScopeRequest || !first.NeverAnswered)
}

// unasked returns a candidate of an earlier rank than the one that failed, which was not asked because it was not available.
func (r *run) unasked(f *Failure) (int, bool) {
	list := r.x.Candidates
	rank := list[(&Situation{Exchange: r.x}).Current(f)].Rank
	i := slices.IndexFunc(list, func(c Choice) bool { return c.Rank < rank && c.Tries == 0 && !c.Unusable() })
	return i, i >= 0
}
