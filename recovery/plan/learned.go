package plan

import (
	"strings"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// learned is a state with the plan that a pattern makes without a planner, nil where
// none is sure enough, or where one had its turn in this trouble already.
func (s *Planner) learned(x *recovery.Exchange, cfg *Config, t trouble, st *state, slot string, acts bool) *state {
	if s.parts.Known == nil || st.Learned || st.Asked > 0 {
		return nil
	}
	q, limits, tools := x.Stuck(t.loop), cfg.limits(x.Key), offered(x.Body)
	for _, strategy := range []recovery.PlanStrategy{recovery.PlanHint, recovery.PlanRetry, recovery.PlanOtherTool, recovery.PlanAdjust} {
		if s.open(x, t, tools, limits, strategy) {
			q.Strategies = append(q.Strategies, string(strategy))
		}
	}
	known, ok := s.parts.Known(q)
	if !ok || known.Lower < limits.Propose {
		return nil
	}
	next := *st
	next.Learned, next.Slot, next.Run, next.Until = true, slot, run(x, t.tool), time.Now().Add(planTTL)
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

// open reports whether a pattern may propose a strategy: operators have not excluded it,
// and what it has the agent do again, or in another way, nobody has ruled out.
func (s *Planner) open(x *recovery.Exchange, t trouble, tools []transcript.Tool, l Limits, strategy recovery.PlanStrategy) bool {
	switch strategy {
	case recovery.PlanHint:
		return t.loop != nil
	case recovery.PlanOtherTool: // which one is left to the agent
		return len(tools) > 1 && len(l.Tools) == 0 && l.permits(&recovery.Plan{Strategy: strategy})
	}
	used, rules := tool(tools, t.tool), s.parts.Rules()
	if used.Name == "" || !l.permits(&recovery.Plan{Strategy: strategy, Tool: used.Name}) || !rules.Permits(strings.Join(trajectory.NameWords(used.Name), " ")) {
		return false
	}
	for i := range x.Results {
		if f := &x.Results[i]; f.Tool == t.tool {
			made := trajectory.Call{Tool: f.Tool, Arguments: f.Arguments}
			if bars(x.Barred, used, f.Arguments) || made.Line() != "" && !rules.Permits(made.Line()) {
				return false
			}
		}
	}
	return true
}
