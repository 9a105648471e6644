package plan_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/plan"
)

// What is known to help is told at once, and nobody is asked; where it did not help the
// planner is, and stays so when the agent has called something else in between.
func TestLearnedGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []recovery.Question
		g := start(t, &brain{text: good}, func(_ *plan.Config, p *plan.Parts) {
			p.Known = func(q recovery.Question) (recovery.LearnedPattern, bool) {
				asked = append(asked, q)
				return recovery.LearnedPattern{Strategy: "parameter-adjustment", Rate: 0.9, Lower: 0.8}, true
			}
		})
		for range 2 { // and the client's retry
			p, took := g.prepare(stuck(t, "s", "get", 2))
			if synctest.Wait(); p == nil || took != 0 || p.Source != recovery.PlanLearned || p.Strategy != recovery.PlanAdjust || p.Tool != "get" || p.Parameters != "" || p.Band != recovery.BandPropose {
				t.Fatalf("%+v", p)
			}
		}
		q := asked[0]
		if len(asked) != 1 || q.Chain != "unexplained" || q.Line != "E41" || q.Tool != "get" || q.Model != "m" || q.Session != "s" || strings.Join(q.Strategies, " ") != "retry alternative-tool parameter-adjustment" {
			t.Errorf("it was asked %+v", asked)
		}
		if ev := g.observer.Events(); len(ev) != 1 || ev[0].Plan.Source != "learned" || ev[0].Strategy != "parameter-adjustment" || ev[0].Observed || g.brain.asked() != 0 {
			t.Errorf("%d asked, events %+v", g.brain.asked(), ev)
		}
		for n := 3; n < 5; n++ {
			p, _ := g.prepare(stuck(t, "s", "get", n))
			if synctest.Wait(); n == 4 && (p == nil || p.Source != recovery.PlanPlanner) {
				t.Errorf("%d: %+v", n, p)
			}
		}
		g.prepare(stuck(t, "s", "find", 2)) // another trouble
		g.prepare(stuck(t, "s", "get", 2))
		if synctest.Wait(); len(asked) != 3 {
			t.Errorf("asked %d times", len(asked))
		}
	})
}

// A pattern is no way around what operators and users rule out, nor around approval.
func TestLearnedKeepsToTheRules(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*plan.Config)
		stuck  func(x *recovery.Exchange)
		open   string // what it may propose
		rate   float64
		takes  bool
	}{
		"all": {nil, nil, "retry alternative-tool parameter-adjustment", 0.9, true},
		"a loop": {nil, func(x *recovery.Exchange) {
			x.Loops = []recovery.Loop{{Kind: recovery.LoopSameError, Count: 2, Tools: []string{"get"}}}
		}, "hint retry alternative-tool parameter-adjustment", 0.9, true},
		"strategies": {func(c *plan.Config) {
			c.Strategies = []recovery.PlanStrategy{recovery.PlanRetry, recovery.PlanEscalate}
		}, nil, "retry", 0.9, true},
		"tools":      {func(c *plan.Config) { c.Tools = []string{"find"} }, nil, "", 0.9, false},
		"too unsure": {nil, nil, "retry alternative-tool parameter-adjustment", 0.49, false},
		"ruled out": {nil, func(x *recovery.Exchange) {
			x.Results[0].Tool, x.Results[0].Arguments, x.Barred = "bash", `{"command":"pip install x"}`, recovery.Installs
		}, "alternative-tool", 0.9, true},
		"a forbidden command": {nil, func(x *recovery.Exchange) {
			x.Results[0].Tool, x.Results[0].Arguments = "bash", `{"command":"evil --now"}`
		}, "alternative-tool", 0.9, true},
		"a forbidden tool":    {nil, func(x *recovery.Exchange) { x.Results[0].Tool = "evil_tool" }, "alternative-tool", 0.9, true},
		"a tool that is gone": {nil, func(x *recovery.Exchange) { x.Results[0].Tool = "gone" }, "alternative-tool", 0.9, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var open string
				g := start(t, &brain{text: good, after: time.Minute}, func(cfg *plan.Config, p *plan.Parts) {
					if c.change != nil {
						c.change(cfg)
					}
					p.Known = func(q recovery.Question) (recovery.LearnedPattern, bool) {
						open = strings.Join(q.Strategies, " ")
						if len(q.Strategies) == 0 {
							return recovery.LearnedPattern{}, false
						}
						return recovery.LearnedPattern{Strategy: q.Strategies[0], Lower: c.rate}, true
					}
				})
				x := stuck(t, "s", "get", 2)
				if c.stuck != nil {
					c.stuck(x)
				}
				p, _ := g.prepare(x)
				if open != c.open || (p != nil) != c.takes || p != nil && !slices.Contains(strings.Fields(c.open), string(p.Strategy)) {
					t.Errorf("open %q, plan %+v", open, p)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		for _, mode := range []plan.Mode{plan.ModeObserve, plan.ModeAct} {
			g := start(t, &brain{text: good}, func(c *plan.Config, p *plan.Parts) {
				c.Mode, c.Approvals = mode, true
				p.Known = func(recovery.Question) (recovery.LearnedPattern, bool) {
					return recovery.LearnedPattern{Strategy: "retry", Lower: 1}, true
				}
			})
			p, _ := g.prepare(stuck(t, "s", "get", 2))
			if ev := g.observer.Events()[0]; p != nil || ev.Observed != (mode == plan.ModeObserve) || len(g.Approvals()) != map[plan.Mode]int{plan.ModeAct: 1}[mode] {
				t.Errorf("%s: %+v, event %+v, %d wait", mode, p, ev, len(g.Approvals()))
			}
		}
	})
}

// A planner that hangs has the agent try something else once, and then ask its user.
func TestHangingPlanner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := start(t, &brain{text: good, after: 25 * time.Second}, nil)
		g.prepare(stuck(t, "s", "get", 2))
		for range 2 { // and the client's retry
			if p, _ := g.prepare(stuck(t, "s", "get", 3)); p == nil || p.Strategy != recovery.PlanAdjust || p.Source != recovery.PlanHeuristic {
				t.Errorf("%+v", p)
			}
		}
		for n := 4; n < 6; n++ {
			if p, _ := g.prepare(stuck(t, "s", "get", n)); p == nil || p.Strategy != recovery.PlanEscalate || p.Source != recovery.PlanHeuristic {
				t.Errorf("%d: %+v", n, p)
			}
		}
	})
}
