package annotate

import (
	"cmp"
	"slices"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// needNames name the uses of tools, as chains do, in the order of their bits.
var needNames = [...]string{"shell", "code", "read", "list", "search", "write", "fetch", "ask"}

// needed is the uses that a strategy names.
func needed(names []string) (out trajectory.Use) {
	for i, n := range needNames {
		if slices.Contains(names, n) {
			out |= 1 << i
		}
	}
	return out
}

// deeds are what a strategy does that a person may have ruled out.
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
// so that one call counts whole, two count 0.8, five count a half.
func (s Strategy) score() float64 {
	return s.Confidence / (1 + float64(max(s.Iterations, 1)-1)/4)
}

// Priors are the strategies of each chain that may be proposed, with what orders them
// before anything is learned: the chance that they help, less for what takes long.
func (s *Stage) Priors() map[string]map[string]float64 {
	out := map[string]map[string]float64{}
	for name, chain := range s.chains {
		out[name] = map[string]float64{}
		for _, st := range chain {
			if s.permits(&st) {
				out[name][st.Name] = st.score()
			}
		}
	}
	// What an agent is stuck in has no order: nothing is known before.
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

// permits reports whether the configuration lets a strategy be proposed, and not only asked for at the end.
func (s *Stage) permits(p *Strategy) bool {
	return p.Name != AskUser && (!p.Risky || s.cfg.Risky) && !slices.Contains(s.cfg.Forbid, p.Name)
}

// ordered is the strategies of a chain that this request can follow, the most
// promising first, without ask_user.
func (s *Stage) ordered(chain string, offered trajectory.Use) []Strategy {
	var out []Strategy
	for _, st := range s.chains[chain] {
		if need := needed(st.Needs); !s.permits(&st) || need != 0 && need&offered == 0 {
			continue
		}
		out = append(out, st)
	}
	slices.SortStableFunc(out, func(a, b Strategy) int {
		return cmp.Or(cmp.Compare(b.score(), a.score()), cmp.Compare(a.Priority, b.Priority))
	})
	return out
}

// Chooser decides by what was learned. It answers at once, and for the same failure
// of a session always the same.
type Chooser interface {
	Choose(recovery.Question) recovery.Preference
}

// prefer orders the strategies that could be proposed by what was learned.
func (s *Stage) prefer(x *recovery.Exchange, f *recovery.ToolFailure, names []string, advice *recovery.Advice) []string {
	if s.Chooser == nil || len(names) == 0 {
		return names
	}
	q := x.About(f.Chain(), f)
	q.Strategies = names
	order := s.choose(q, advice)
	place := func(name string) int {
		if i := slices.Index(order, name); i >= 0 {
			return i
		}
		return len(order)
	}
	return slices.SortedStableFunc(slices.Values(names), func(a, b string) int { return cmp.Compare(place(a), place(b)) })
}

// choose orders a question's strategies by what was learned, and notes in advice what
// was asked and whether to say nothing.
func (s *Stage) choose(q recovery.Question, advice *recovery.Advice) []string {
	got := s.Chooser.Choose(q)
	advice.Chain, advice.Key, advice.Task, advice.Fingerprint, advice.At = q.Chain, q.Key, q.Task, q.Fingerprint, q.At
	advice.Template, advice.Withheld = got.Template, got.Withhold
	return got.Strategies
}

// mayWithhold asks what was learned whether a note for a stuck agent is given, and has its outcome learned. A note
// that hands over to the user is always given: only the user knows whether it was right.
func (s *Stage) mayWithhold(x *recovery.Exchange, l *recovery.Loop, strategy string, handsOver bool, advice *recovery.Advice) {
	if s.Chooser == nil || l != nil && !slices.Contains(recovery.LearnedLoops(), l.Kind) {
		return
	}
	q := x.Stuck(l)
	q.Strategies = []string{strategy}
	s.choose(q, advice)
	advice.Withheld = advice.Withheld && !handsOver
}

// ask is the step that ends a chain: what a person can do, as a template. It is "" for a
// failure without a chain.
func (s *Stage) ask(chain string) string {
	list := s.chains[chain]
	if n := len(list); n > 0 && list[n-1].Name == AskUser && len(list[n-1].Steps) > 0 {
		return list[n-1].Steps[0]
	}
	return ""
}
