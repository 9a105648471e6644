package plan_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/plan"
)

// A planner that answered with nothing useful, or refused, is not asked again for an hour
// by the same client; one that is away or slow is. In its place the rules speak: other
// parameters, then the user, then nothing.
func TestSpared(t *testing.T) {
	status := func(code int) error {
		return &recovery.Failure{Diagnosis: recovery.Diagnosis{Signal: recovery.Signal{Status: code}}}
	}
	for name, c := range map[string]struct {
		brain  *brain
		spared bool
	}{
		"empty":         {&brain{}, true},
		"no plan":       {&brain{text: "I would look at the account."}, true},
		"refused":       {&brain{err: status(400)}, true},
		"rate limited":  {&brain{err: status(429)}, true},
		"no such tool":  {&brain{text: `{"strategy":"alternative-tool","action":{"toolName":"none","parameters":{"q":"x"}},"confidence":1}`}, true},
		"not complete":  {&brain{err: errors.New("the answer is no complete text")}, true},
		"away":          {&brain{err: status(503)}, false},
		"slow":          {&brain{text: good, after: time.Hour}, false},
		"a good answer": {&brain{text: good}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := start(t, c.brain, nil)
			ask := func(session string) int {
				before := c.brain.asked()
				g.prepare(stuck(t, session, "get", 2))
				time.Sleep(time.Minute)
				return c.brain.asked() - before
			}
			if ask("one") != 1 {
				t.Fatalf("%s: not asked at all", name)
			}
			if n := ask("two"); (n == 0) != c.spared {
				t.Errorf("%s: asked %d times again", name, n)
			}
			if !c.spared {
				return
			}
			var said []recovery.PlanStrategy
			for n := 3; n < 7; n++ {
				if p, _ := g.prepare(stuck(t, "three", "get", n)); p != nil {
					said = append(said, p.Strategy)
				}
			}
			if fmt.Sprint(said) != "[parameter-adjustment escalate]" {
				t.Errorf("%s: instead it said %v", name, said)
			}
			other := stuck(t, "four", "get", 2)
			other.Key = "bob"
			g.prepare(other)
			if synctest.Wait(); c.brain.asked() != 2 {
				t.Errorf("%s: another client's planner was not asked", name)
			}
			time.Sleep(time.Hour)
			if ask("five") != 1 {
				t.Errorf("%s: not asked after an hour", name)
			}
		})
	}
}

// A plan has its steps, its estimate and what to try next; a step that may not be made
// ends the steps.
func TestWholePlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := start(t, &brain{text: `{"strategy":"parameter-adjustment","confidence":0.9,"estimatedIterations":3,"fallbackChain":["alternative-tool","hope","escalate","escalate"],
			"steps":[{"toolName":"get","parameters":{"id":"LG-77"},"expectedOutcome":"the entry"},{"toolName":"find","parameters":{"q":"Ada"}},
			{"toolName":"evil_tool","parameters":{}},{"toolName":"find","parameters":{"q":"more"}}]}`}, nil)
		g.prepare(stuck(t, "s", "get", 2))
		synctest.Wait()
		p, _ := g.prepare(stuck(t, "s", "get", 3))
		if p == nil || p.Tool != "get" || p.Parameters != `{"id":"LG-77"}` || p.Iterations != 3 || p.Forced ||
			fmt.Sprint(p.Steps) != `[{get {"id":"LG-77"} the entry} {find {"q":"Ada"} }]` || fmt.Sprint(p.Fallbacks) != "[alternative-tool escalate]" {
			t.Fatalf("%+v", p)
		}
		if list := g.Plans(); len(list) != 1 || list[0].Plan.Parameters == "" || list[0].Session != "s" {
			t.Errorf("listed: %+v", list)
		}
		bare := g.observer.Events()[0].Plan
		if len(bare.Steps) != 2 || bare.Steps[0] != (recovery.PlanStep{Tool: "get"}) || bare.Iterations != 3 || len(bare.Fallbacks) != 2 || bare.Parameters != "" {
			t.Errorf("an event has %+v", bare)
		}
	})
}

// A call is forced only where that is configured, for a tool that rules and planner say
// reads, and with values that a person or the agent's own calls have.
func TestForced(t *testing.T) {
	answer := func(id, reads string) string {
		return fmt.Sprintf(`{"strategy":"alternative-tool","action":{"toolName":"find","parameters":{"q":%q}},"readsOnly":%s,"confidence":0.9}`, id, reads)
	}
	for name, c := range map[string]struct {
		answer string
		force  bool
		want   bool
	}{
		"the person's word":     {answer("Ada", "true"), true, true},
		"not configured":        {answer("Ada", "true"), false, false},
		"a tool's word":         {answer("LG-77", "true"), true, false},
		"the planner disagrees": {answer("Ada", "false"), true, false},
		"it is not sure":        {`{"strategy":"alternative-tool","action":{"toolName":"find","parameters":{"q":"Ada"}},"readsOnly":true,"confidence":0.7}`, true, false},
		"the rules disagree":    {`{"strategy":"alternative-tool","action":{"toolName":"write_file","parameters":{"path":"Ada","content":"Ada"}},"readsOnly":true,"confidence":1}`, true, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := start(t, &brain{text: c.answer}, func(cfg *plan.Config, _ *plan.Parts) { cfg.Force = c.force })
			g.prepare(stuck(t, "s", "get", 2))
			synctest.Wait()
			if p, _ := g.prepare(stuck(t, "s", "get", 3)); p == nil || p.Forced != c.want {
				t.Errorf("%s: %+v", name, p)
			}
		})
	}
}
