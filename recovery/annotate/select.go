package annotate

import (
	"cmp"
	"slices"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// needNames are the names of tool uses in chains, in the order of their bits.
var needNames = [...]string{"shell", "code", "read", "list", "search", "write", "fetch", "ask"}

// needed returns the uses with these names.
func needed(names []string) (out trajectory.Use) {
	for i, n := range needNames {
		if slices.Contains(names, n) {
			out |= 1 << i
		}
	}
	return out
}

// deeds returns the deeds of a strategy that a user may have forbidden.
func (s Strategy) deeds() recovery.Deeds {
	if s.Risky && len(s.Does) == 0 {
		return recovery.Installs | recovery.Deletes | recovery.Permits
	}
	return recovery.DeedsOf(s.Does...)
}

// score orders strategies: confidence × simplicity, where
//
//	simplicity = 1 / (1 + (iterations − 1) / 4)
//
// so the factor is 1 for one call, 0.8 for two and 0.5 for five.
func (s Strategy) score() float64 {
	return s.Confidence / (1 + float64(max(s.Iterations, 1)-1)/4)
}

// Priors returns the permitted strategies of each chain with their scores before anything is learned:
// confidence, reduced for strategies that take many calls.
func (st *Stage) Priors() map[string]map[string]float64 {
	out := map[string]map[string]float64{}
	for name, chain := range st.chains {
		out[name] = map[string]float64{}
		for _, p := range chain {
			if st.permits(&p) {
				out[name][p.Name] = p.score()
			}
		}
	}
	// Strategies for stuck agents have equal priors, because nothing is known before.
	stuck := map[string]float64{recovery.Hint: 0.5}
	for _, p := range recovery.PlanStrategies() {
		stuck[string(p)] = 0.5
	}
	out[recovery.Unexplained] = stuck
	for _, k := range recovery.LearnedLoops() {
		out[recovery.LoopChain(k)] = stuck
	}
	return out
}

// permits reports whether the configuration permits proposing a strategy; ask_user is never proposed.
func (st *Stage) permits(p *Strategy) bool {
	return p.Name != AskUser && (!p.Risky || st.cfg.Risky) && !slices.Contains(st.cfg.Forbid, p.Name)
}

// ordered returns the strategies of a chain that this request can follow, best score first, without ask_user.
func (st *Stage) ordered(chain string, offered trajectory.Use) []Strategy {
	var out []Strategy
	for _, p := range st.chains[chain] {
		if need := needed(p.Needs); !st.permits(&p) || need != 0 && need&offered == 0 {
			continue
		}
		out = append(out, p)
	}
	slices.SortStableFunc(out, func(a, b Strategy) int {
		return cmp.Or(cmp.Compare(b.score(), a.score()), cmp.Compare(a.Priority, b.Priority))
	})
	return out
}

// Chooser selects strategies by what was learned. It must return at once, and must return the same for the same
// failure of a session.
type Chooser interface {
	Choose(recovery.Question) recovery.Preference
}

// prefer orders the candidate strategies by what was learned.
func (st *Stage) prefer(x *recovery.Exchange, f *recovery.ToolFailure, names []string, advice *recovery.Advice) []string {
	if st.Chooser == nil || len(names) == 0 {
		return names
	}
	q := x.About(f.Chain(), f)
	q.Strategies = names
	order := st.choose(q, advice)
	place := func(name string) int {
		if i := slices.Index(order, name); i >= 0 {
			return i
		}
		return len(order)
	}
	return slices.SortedStableFunc(slices.Values(names), func(a, b string) int { return cmp.Compare(place(a), place(b)) })
}

// choose orders a question's strategies by what was learned. It records the question in advice, and whether to
// withhold the note.
func (st *Stage) choose(q recovery.Question, advice *recovery.Advice) []string {
	got := st.Chooser.Choose(q)
	advice.Chain, advice.Key, advice.Task, advice.Fingerprint, advice.At = q.Chain, q.Key, q.Task, q.Fingerprint, q.At
	advice.Template, advice.Withheld = got.Template, got.Withhold
	return got.Strategies
}

// mayWithhold lets the Chooser withhold a note for a stuck agent, and records the question so that the outcome
// is learned. A note that hands over to the user is never withheld, because only the user knows whether it was
// right.
func (st *Stage) mayWithhold(x *recovery.Exchange, l *recovery.Loop, strategy string, handsOver bool, advice *recovery.Advice) {
	if st.Chooser == nil || l != nil && !slices.Contains(recovery.LearnedLoops(), l.Kind) {
		return
	}
	q := x.Stuck(l)
	q.Strategies = []string{strategy}
	st.choose(q, advice)
	advice.Withheld = advice.Withheld && !handsOver
}

// ask returns the template of the chain's ask_user step, or "" if there is no chain.
func (st *Stage) ask(chain string) string {
	list := st.chains[chain]
	if n := len(list); n > 0 && list[n-1].Name == AskUser && len(list[n-1].Steps) > 0 {
		return list[n-1].Steps[0]
	}
	return ""
}
