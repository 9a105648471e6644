package learn_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/learn"
)

// A pattern stands in for the planner where it is known to do better than nothing and
// not known to do worse than planners do; not on the word of few, of one session, of
// another wording or kind of tool only, nor where the planner does better.
func TestKnown(t *testing.T) {
	stuck := map[string]float64{recovery.Hint: 0.5}
	for _, s := range recovery.PlanStrategies() {
		stuck[string(s)], stuck[recovery.ByPlanner(s)] = 0.5, 0.5
	}
	loop := recovery.LoopChain(recovery.LoopSameError)
	before := priors
	priors = learn.Priors{"unexplained": stuck, loop: stuck, recovery.LoopChain(recovery.LoopSameResult): stuck}
	defer func() { priors = before }()
	type row struct {
		n        int
		strategy string
		outcome  string
		change   func(*learn.Observation)
	}
	silent := row{12, "", "failure", nil}
	retried := row{20, "planner:retry", "success", nil}
	of := func(change func(*learn.Observation), rows ...row) (out []row) {
		for _, r := range rows {
			r.change = change
			out = append(out, r)
		}
		return out
	}
	for name, c := range map[string]struct {
		rows []row
		ask  func(*recovery.Question)
		want string
	}{
		"nothing":                      {nil, nil, ""},
		"what planners proposed":       {[]row{retried, silent}, nil, "retry"},
		"few":                          {[]row{{10, "planner:retry", "success", nil}, silent}, nil, ""},
		"one session":                  {of(func(o *learn.Observation) { o.Session = "loud" }, retried, silent), nil, ""},
		"no better than nothing":       {[]row{retried, {12, "", "success", nil}}, nil, ""},
		"by itself no help":            {[]row{retried, silent, {12, "retry", "failure", nil}}, nil, ""},
		"the planner does better":      {[]row{silent, {30, "planner:parameter-adjustment", "success", nil}, {9, "retry", "success", nil}, {9, "retry", "failure", nil}}, func(q *recovery.Question) { q.Strategies = []string{"retry"} }, ""},
		"the rules' note":              {[]row{{20, "hint", "success", nil}, silent}, nil, "hint"},
		"excluded":                     {[]row{retried, silent}, func(q *recovery.Question) { q.Strategies = []string{"hint", "parameter-adjustment"} }, ""},
		"nothing is left":              {[]row{retried, silent}, func(q *recovery.Question) { q.Strategies = nil }, ""},
		"another wording":              {[]row{retried, silent}, func(q *recovery.Question) { q.Line = "no such file" }, ""},
		"no public word":               {of(func(o *learn.Observation) { o.Template = "<*>" }, retried, silent), func(q *recovery.Question) { q.Line = "E41" }, ""},
		"another chain":                {[]row{retried, silent}, func(q *recovery.Question) { q.Chain = "unexplained" }, ""},
		"another model, ten are worth": {of(func(o *learn.Observation) { o.Model = "other" }, row{40, "planner:retry", "success", nil}, row{40, "", "failure", nil}), nil, "retry"},
		"it helps others, not this kind of tool": {append(of(func(o *learn.Observation) { o.Kind = "editor" }, row{40, "planner:retry", "success", nil}, silent),
			row{12, "retry", "failure", nil}), nil, ""},
		"a loop in which nothing failed": {of(func(o *learn.Observation) { o.Chain, o.Template = "loop_same_result", "" }, row{20, "hint", "success", nil}, silent),
			func(q *recovery.Question) { q.Chain, q.Line = "loop_same_result", "" }, "hint"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(t)
				i := 0
				for _, r := range c.rows {
					for range r.n {
						i++
						if err := s.Append(t.Context(), "outcomes", entry(i, func(o *learn.Observation) {
							o.Chain, o.Strategy, o.Outcome = loop, r.strategy, r.outcome
							if r.change != nil {
								r.change(o)
							}
						}), 8192); err != nil {
							t.Fatal(err)
						}
					}
				}
				for mode, want := range map[string]string{learn.OutcomesAct: c.want, learn.OutcomesObserve: "", learn.OutcomesOff: ""} {
					o, _ := replica(t, mode, s)
					if mode != learn.OutcomesOff && reported(t, o).Refused != 0 {
						t.Errorf("%+v", reported(t, o))
					}
					q := recovery.Question{Session: "s", Model: "m", Chain: loop, Tool: "bash", Line: "Timed out after zq7", Strategies: []string{"hint", "retry", "alternative-tool", "parameter-adjustment"}}
					if c.ask != nil {
						c.ask(&q)
					}
					if got, ok := o.Known(q); got.Strategy != want || ok != (want != "") || ok && (got.Rate < 0.5 || got.Observations < 12) {
						t.Errorf("%s: %+v, want %q", mode, got, want)
					}
				}
			})
		})
	}
}

// An agent that is stuck is not left alone because of what is supposed of no note, but
// because of what was seen of it.
func TestStuckIsNotLeftAlone(t *testing.T) {
	before := priors
	priors = learn.Priors{"loop_same_result": {"hint": 0.5}}
	defer func() { priors = before }()
	for silent, want := range map[int]bool{9: false, 20: true} {
		synctest.Test(t, func(t *testing.T) {
			s := newStore(t)
			for i := range 60 + silent {
				_ = s.Append(t.Context(), "outcomes", entry(i, func(o *learn.Observation) {
					if o.Chain, o.Template, o.Strategy, o.Outcome = "loop_same_result", "", "hint", "failure"; i >= 60 {
						o.Strategy, o.Outcome = "", "success"
					}
				}), 8192)
			}
			o, _ := replica(t, learn.OutcomesAct, s)
			reported(t, o)
			got := o.Choose(recovery.Question{Session: "s", Model: "m", Chain: "loop_same_result", Strategies: []string{"hint"}})
			if got.Withhold != want {
				t.Errorf("after %d without a note: %+v", silent, got)
			}
		})
	}
}

// Whether it was right to hand over to the user nobody knows, nor how a circle ended
// that was left with an answer.
func TestNothingIsKnownOfAnEnd(t *testing.T) {
	before := priors
	priors = learn.Priors{"loop_same_result": {"hint": 0.5, "planner:escalate": 0.5, "planner:retry": 0.5, "planner:parameter-adjustment": 0.5}}
	defer func() { priors = before }()
	for i, c := range []struct {
		strategy    string
		fingerprint uint64
		after       recovery.After
		want        string
	}{
		{"hint", 0, recovery.After{Stopped: true}, "censored"},
		{"hint", 0, recovery.After{Calls: 1, Same: true}, "failure"},
		{"hint", 0, recovery.After{Calls: 1, Target: true}, "success"},
		{"planner:retry", 7, recovery.After{Stopped: true}, "failure"},
		{"planner:parameter-adjustment", 7, recovery.After{Calls: 1, Some: true, Again: true}, "success"},
		{"planner:retry", 7, recovery.After{Calls: 2, Some: true, Again: true}, "other_way"},
		{"planner:escalate", 7, recovery.After{Stopped: true}, "censored"},
		{"planner:escalate", 7, recovery.After{Calls: 1, Same: true}, "failure"},
	} {
		synctest.Test(t, func(t *testing.T) {
			o, seen := replica(t, learn.OutcomesAct, newStore(t))
			ev := noted("s", 3)
			ev.Advice = &recovery.Advice{Chain: "loop_same_result", Strategies: []string{c.strategy}, Fingerprint: c.fingerprint, At: 3}
			o.Observe(ev)
			c.after.Session, c.after.Fingerprint, c.after.At = "s", c.fingerprint, 3
			o.After(c.after)
			if synctest.Wait(); len(seen.Events()) != 1 || seen.Events()[0].Cause != c.want {
				t.Errorf("%d: %s", i, fmt.Sprint(seen.Events()))
			}
		})
	}
}
