package learn_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/learn"
)

// seen is n outcomes of one strategy, each of a session of its own.
type seen struct {
	n        int
	strategy string
	outcome  string
	change   func(*learn.Observation)
}

// fold counts outcomes of the chain timeout and the model m.
func fold(rows ...seen) *learn.Counts {
	var list []learn.Observation
	for _, r := range rows {
		for range r.n {
			o := learn.Observation{V: 1, ID: fmt.Sprint(len(list)), Session: fmt.Sprint("s", len(list)), Time: time.Now().Unix(), Key: "alice",
				Chain: "timeout", Model: "m", Strategy: r.strategy, Outcome: r.outcome}
			if r.change != nil {
				r.change(&o)
			}
			list = append(list, o)
		}
	}
	return learn.Fold(priors, list, time.Now())
}

func of(key string) func(*learn.Observation) {
	return func(o *learn.Observation) { o.Key = key }
}

// What decides the order of strategies: the rates of success of one's own key, of the
// finest kind of failure that has twelve outcomes.
func TestChoose(t *testing.T) {
	task := func(task recovery.Task) func(*learn.Observation) {
		return func(o *learn.Observation) { o.Task = string(task) }
	}
	worded := func(o *learn.Observation) { o.Template = "timed out" }
	bad, good := "reduce_scope", "background" // the chain has them in this order
	for name, c := range map[string]struct {
		rows []seen
		ask  func(*recovery.Question)
		want string
	}{
		"nothing":             {nil, nil, bad},
		"eleven":              {[]seen{{11, bad, "failure", nil}}, nil, bad},
		"twelve":              {[]seen{{12, bad, "failure", nil}}, nil, good},
		"one session":         {[]seen{{40, bad, "failure", func(o *learn.Observation) { o.Session = "loud" }}}, nil, bad},
		"censored":            {[]seen{{40, bad, "censored", nil}}, nil, bad},
		"another model":       {[]seen{{12, bad, "failure", nil}}, func(q *recovery.Question) { q.Model = "other" }, bad},
		"other models differ": {[]seen{{12, bad, "success", func(o *learn.Observation) { o.Model = "x" }}, {12, bad, "failure", nil}}, nil, good},
		"half and half":       {[]seen{{6, bad, "other_way", nil}, {3, bad, "failure", nil}, {3, bad, "success", nil}, {12, good, "success", nil}}, nil, good},
		"another task":        {[]seen{{12, bad, "failure", task(recovery.Exploring)}, {12, bad, "success", task(recovery.Changing)}}, func(q *recovery.Question) { q.Task = recovery.Changing }, bad},
		"this task":           {[]seen{{12, bad, "failure", task(recovery.Exploring)}, {12, bad, "success", task(recovery.Changing)}}, func(q *recovery.Question) { q.Task = recovery.Exploring }, good},
		"another wording":     {[]seen{{12, bad, "failure", worded}, {24, bad, "success", nil}}, nil, bad},
		"this wording":        {[]seen{{12, bad, "failure", worded}, {24, bad, "success", nil}}, func(q *recovery.Question) { q.Line = "Timed out" }, good},
		"too few so worded":   {[]seen{{11, bad, "failure", worded}, {24, bad, "success", nil}}, func(q *recovery.Question) { q.Line = "Timed out" }, bad},
		"one other key":       {[]seen{{200, bad, "failure", of("mallory")}}, nil, bad},
	} {
		q := recovery.Question{Session: "s2", Key: "alice", Model: "m", Chain: "timeout", Strategies: []string{bad, good}}
		if c.ask != nil {
			c.ask(&q)
		}
		if got := fold(c.rows...).Choose(q, public().Template(q.Line)); got.Strategies[0] != c.want || len(got.Strategies) != 2 {
			t.Errorf("%s: %v, want %s first", name, got.Strategies, c.want)
		}
	}
}

// A note is withheld where none is known to do better, and of a strategy that fails more
// often than not in one of ten sessions, so that this can be found out.
func TestWithhold(t *testing.T) {
	withheld := func(c *learn.Counts) (n int) {
		for i := range 1000 {
			q := recovery.Question{Session: fmt.Sprint("q", i), Key: "alice", Model: "m", Chain: "timeout", Strategies: []string{"background"}}
			if c.Choose(q, "").Withhold {
				n++
			}
		}
		return n
	}
	for name, c := range map[string]struct {
		rows        []seen
		least, most int
	}{
		"helps":              {[]seen{{20, "background", "success", nil}, {20, "", "failure", nil}}, 0, 0},
		"fails":              {[]seen{{20, "background", "failure", nil}}, 60, 140},
		"fails, so does not": {[]seen{{20, "background", "failure", nil}, {20, "", "failure", nil}}, 60, 140},
		"harms":              {[]seen{{20, "background", "failure", nil}, {20, "", "success", nil}}, 1000, 1000},
		"too few without":    {[]seen{{20, "background", "failure", nil}, {11, "", "success", nil}}, 60, 140},
		"another key's":      {[]seen{{500, "background", "failure", of("bob")}, {500, "", "success", of("bob")}}, 0, 0},
	} {
		if n := withheld(fold(c.rows...)); n < c.least || n > c.most {
			t.Errorf("%s: withheld from %d of 1000 sessions", name, n)
		}
	}
}

// Old outcomes count less than new ones.
func TestDecay(t *testing.T) {
	old := func(o *learn.Observation) { o.Time -= 28 * 24 * 3600 }
	q := recovery.Question{Session: "s", Key: "alice", Model: "m", Chain: "timeout", Strategies: []string{"background"}}
	before, ok := fold(seen{40, "background", "success", old}).Known(q, "")
	now, _ := fold(seen{40, "background", "success", old}, seen{12, "background", "failure", nil}).Known(q, "")
	if !ok || before.Observations != 40 || before.Rate < 0.6 || now.Rate > 0.3 || now.Observations != 52 {
		t.Errorf("%+v, then %+v", before, now)
	}
}

// What stands in for a planner has twelve outcomes with this trouble and model, and the
// best lower bound.
func TestKnown(t *testing.T) {
	loop := recovery.LoopChain(recovery.LoopSameError)
	stuck := func(o *learn.Observation) { o.Chain, o.Template = loop, "timed out <*>" }
	other := func(o *learn.Observation) { stuck(o); o.Model = "other" }
	unexplained := func(template string) func(*learn.Observation) {
		return func(o *learn.Observation) { o.Chain, o.Template = recovery.Unexplained, template }
	}
	for name, c := range map[string]struct {
		rows []seen
		ask  func(*recovery.Question)
		want string
	}{
		"nothing":                   {nil, nil, ""},
		"few":                       {[]seen{{11, "retry", "success", stuck}}, nil, ""},
		"twelve":                    {[]seen{{12, "retry", "success", stuck}}, nil, "retry"},
		"the best of two":           {[]seen{{12, "retry", "success", stuck}, {30, "hint", "success", stuck}}, nil, "hint"},
		"excluded":                  {[]seen{{12, "retry", "success", stuck}}, func(q *recovery.Question) { q.Strategies = []string{"hint"} }, ""},
		"another model":             {[]seen{{40, "retry", "success", other}}, nil, ""},
		"another wording":           {[]seen{{12, "retry", "success", stuck}}, func(q *recovery.Question) { q.Line = "no such file" }, "retry"},
		"unexplained":               {[]seen{{12, "retry", "success", unexplained("timed out <*>")}}, func(q *recovery.Question) { q.Chain = recovery.Unexplained }, "retry"},
		"unexplained, other words":  {[]seen{{40, "retry", "success", unexplained("no such file")}}, func(q *recovery.Question) { q.Chain = recovery.Unexplained }, ""},
		"unexplained, no such word": {[]seen{{40, "retry", "success", unexplained("<*>")}}, func(q *recovery.Question) { q.Chain, q.Line = recovery.Unexplained, "E41" }, ""},
		"another key":               {[]seen{{40, "retry", "success", func(o *learn.Observation) { stuck(o); o.Key = "bob" }}}, nil, ""},
	} {
		q := recovery.Question{Session: "s", Key: "alice", Model: "m", Chain: loop, Line: "Timed out after zq7", Strategies: []string{"hint", "retry"}}
		if c.ask != nil {
			c.ask(&q)
		}
		got, ok := fold(c.rows...).Known(q, public().Template(q.Line))
		if got.Strategy != c.want || ok != (c.want != "") || ok && (got.Lower < 0.6 || got.Lower >= got.Rate || got.Rate > 1) {
			t.Errorf("%s: %+v, want %q", name, got, c.want)
		}
	}
}

// Nothing is known in the modes that do not act.
func TestKnownOnlyWhereLearned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t)
		for i := range 12 {
			_ = s.Append(t.Context(), "outcomes", entry(i, nil), 8192)
		}
		for mode, want := range map[string]bool{learn.OutcomesAct: true, learn.OutcomesObserve: false, learn.OutcomesOff: false} {
			o, _ := replica(t, mode, s)
			_, _ = o.Report(t.Context())
			if _, ok := o.Known(recovery.Question{Session: "s", Model: "m", Chain: "timeout", Line: "Timed out", Strategies: []string{"background"}}); ok != want {
				t.Errorf("%s: known %v", mode, ok)
			}
		}
	})
}

// The report has what each key brought.
func TestReportOfKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t)
		keys := []string{"", "a", "b", "c"}
		for i := range 60 {
			_ = s.Append(t.Context(), "outcomes", entry(i, func(o *learn.Observation) {
				o.Key = keys[i%4]
				if i%4 == 0 {
					o.Outcome = "failure"
				}
			}), 8192)
		}
		o, _ := replica(t, learn.OutcomesAct, s)
		r := reported(t, o)
		var got []string
		for _, c := range r.Cells {
			got = append(got, fmt.Sprint(c.Key, " ", c.Decision, " ", c.Arms[0].Observations))
		}
		if want := []string{" learned 15", "a learned 15", "b learned 15", "c learned 15"}; !slices.Equal(got, want) {
			t.Errorf("cells %q, want %q", got, want)
		}
		if len(r.Patterns) != 4 || r.Patterns[0].Rate > 0.5 || r.Patterns[1].Rate < 0.5 || r.Patterns[1].Lower > r.Patterns[1].Rate {
			t.Errorf("patterns %+v", r.Patterns)
		}
	})
}

// An agent that is stuck is not left alone because of what is supposed of no note, but
// because of what was seen of it.
func TestStuckIsNotLeftAlone(t *testing.T) {
	for silent, want := range map[int]bool{11: false, 20: true} {
		loop := func(o *learn.Observation) { o.Chain = "loop_same_result" }
		c := fold(seen{60, "hint", "failure", loop}, seen{silent, "", "success", loop})
		got := c.Choose(recovery.Question{Session: "s1", Key: "alice", Model: "m", Chain: "loop_same_result", Strategies: []string{"hint"}}, "")
		if got.Withhold != want {
			t.Errorf("after %d without a note: %+v", silent, got)
		}
	}
}

// Whether it was right to hand over to the user nobody knows, nor how a circle ended
// that was left with an answer.
func TestNothingIsKnownOfAnEnd(t *testing.T) {
	before := priors
	priors = learn.Priors{"loop_same_result": {"hint": 0.5, "escalate": 0.5, "retry": 0.5, "parameter-adjustment": 0.5}}
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
		{"retry", 7, recovery.After{Stopped: true}, "failure"},
		{"parameter-adjustment", 7, recovery.After{Calls: 1, Some: true, Again: true}, "success"},
		{"retry", 7, recovery.After{Calls: 2, Some: true, Again: true}, "other_way"},
		{"escalate", 7, recovery.After{Stopped: true}, "censored"},
		{"escalate", 7, recovery.After{Calls: 1, Same: true}, "failure"},
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
