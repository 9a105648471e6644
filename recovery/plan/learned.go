package plan

import (
	"strings"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// learned returns the state with a plan from a learned pattern, without a planner. It returns nil if no pattern
// is certain enough or if one was already used in this trouble.
func (s *Planner) learned(x *recovery.Exchange, cfg *Config, t trouble, st *state, slot string, acts bool) *state {
	if s.parts.Known == nil || st.Learned || st.Asked > 0 {
		return nil
	}
	q, tools := x.Stuck(t.loop), offered(x.Body)
	for _, strategy := range []recovery.PlanStrategy{recovery.PlanHint, recovery.PlanRetry, recovery.PlanOtherTool, recovery.PlanAdjust} {
		if s.mayPropose(x, t, tools, cfg, strategy) {
			q.Strategies = append(q.Strategies, string(strategy))
		}
	}
	known, ok := s.parts.Known(q)
	if !ok || known.Lower < cfg.Propose {
		return nil
	}
	next := *st
	next.Learned, next.Slot, next.TurnsInRow, next.Until = true, slot, turnsInRow(x, t.tool), time.Now().Add(planTTL)
	next.Plan = &recovery.Plan{Strategy: recovery.PlanStrategy(known.Strategy), Confidence: known.Rate, Band: recovery.BandPropose, Source: recovery.PlanLearned}
	if s := next.Plan.Strategy; s == recovery.PlanRetry || s == recovery.PlanAdjust {
		next.Plan.Tool = strings.Clone(t.tool)
	}
	ev := x.Event(recovery.EventPlanMade)
	ev.Observed = !acts
	s.report(ev, next.Plan, "")
	s.keep(cfg, ev, []byte(x.Secret), acts, &next)
	return &next
}

// mayPropose reports whether a learned pattern may propose a strategy: the configuration permits it, and neither the user nor
// the rules forbid the calls that it repeats.
func (s *Planner) mayPropose(x *recovery.Exchange, t trouble, tools []transcript.Tool, cfg *Config, strategy recovery.PlanStrategy) bool {
	switch strategy {
	case recovery.PlanHint:
		return t.loop != nil
	case recovery.PlanOtherTool: // the agent chooses the tool
		return len(tools) > 1 && len(cfg.Tools) == 0 && cfg.permits(&recovery.Plan{Strategy: strategy})
	}
	used, rules := tool(tools, t.tool), s.parts.Rules()
	if used.Name == "" || !cfg.permits(&recovery.Plan{Strategy: strategy, Tool: used.Name}) || !rules.Permits(strings.Join(trajectory.NameWords(used.Name), " ")) {
		return false
	}
	for i := range x.Results {
		if f := &x.Results[i]; f.Tool == t.tool {
			made := trajectory.Call{Tool: f.Tool, Arguments: f.Arguments}
			if isBarred(x.Barred, used, f.Arguments) || made.Line() != "" && !rules.Permits(made.Line()) {
				return false
			}
		}
	}
	return true
}
