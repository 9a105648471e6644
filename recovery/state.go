package recovery

import (
	"math/rand/v2"
	"slices"
	"time"
)

// A request that refers to state on a server ([transcript.State]) can be recovered in fewer ways. The engine enforces
// that here, whatever stages and strategies propose; [run.plan] and [run.alternative] do so for continuations and
// parallel starts.

// applyServerState limits the candidates to the account that stores the conversation. From the upstream copy it removes
// the ids of items that the gateway created itself, since no server knows them.
func (r *run) applyServerState() {
	x := r.x
	x.state = x.Body.State()
	only := func(where func(c Choice) bool) { // keeps the first candidate of this kind; without any, the first of all
		i := max(0, slices.IndexFunc(x.Candidates, where))
		x.Candidates = x.Candidates[i : i+1]
	}
	if x.Home != (Target{}) {
		only(func(c Choice) bool { return c.Upstream == x.Home.Upstream && c.Key == x.Home.Key })
	}
	if x.Body.HasOwn() {
		for i := range x.Candidates {
			x.Candidates[i].Edits = append(x.Candidates[i].Edits, Edit{Conform: ConformOwn})
		}
	}
	r.applyMakers()
	if !x.state.MayMove() || x.Stays {
		only(func(c Choice) bool { return len(x.made) > 0 && x.made[len(x.made)-1].by(c.Target) })
	}
}

// reattach proposes to read the rest of an answer that its server still writes, or to fetch one that it may have stored.
func (r *run) reattach(f *Failure) (Action, bool) {
	x := r.x
	if f.Job == nil || f.Flaw != nil || x.Mode != ModeAct || r.stopped || r.exhausted(f.Job.Stored) {
		return Action{}, false
	}
	s := &Situation{Exchange: x, Config: &r.Config, Jitter: rand.Float64}
	i := s.Current(f)
	if f.Job.Stored {
		if x.fetched || f.Released != ReleasedText || f.Sent == "" || len(r.Config.Continue) == 0 {
			return Action{}, false
		}
		x.fetched, x.deadline = true, time.Now().Add(r.patience())
		return Action{Strategy: StrategyFetch, Target: i, Resume: &Resume{Way: WayFetch, Sent: f.Sent, Job: f.Job}}, true
	}
	return Action{Strategy: StrategyListen, Target: i, Wait: s.Backoff(x.Candidates[i].Tries - 1), Resume: &Resume{Way: WayListen, Sent: f.Sent, Job: f.Job}}, true
}

// allowed reports whether a proposed action may be carried out. It removes a note that a server would store, and returns
// false for an action that makes no sense without its note.
func (r *run) allowed(a *Action) bool {
	if a.Note == "" || r.x.state.MayNote() {
		return true
	}
	a.Note = ""
	return !a.Reask && !a.Explain
}
