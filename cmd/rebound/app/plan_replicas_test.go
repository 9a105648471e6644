//go:build unix

package app_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/store/storetest"
)

// alternately plays a clerk's conversation over two replicas with one Redis, whose requests alternate. decided runs
// after the n-th request.
func alternately(t *testing.T, confidence float64, more []string, decided func(n int, one, two *gateway)) (k *clerk, text string) {
	k = &clerk{t: t}
	up := startStrict(t, k.decide)
	planner := httptest.NewServer(saysOnly(planJSON("parameter-adjustment", infer, confidence)))
	t.Cleanup(planner.Close)
	config := strings.Replace(up.config(append(more, noRepair, slowStore(t, storetest.Redis(t)))...), `two: {url: "`+up.url, `two: {url: "`+planner.URL, 1)
	list := []*gateway{k.launch(config), k.launch(config)}
	for _, g := range list {
		g.asking = nil // the planner may be asked by either replica
	}
	h := conversation{tools: []string{lookup, ledger}, messages: []string{user("What are Ada's entries?")}}
	for n := range 9 {
		g := list[n%2]
		r := g.must(h.body())
		called := r.toolCalls()
		if len(called) == 0 {
			return k, r.answerText()
		}
		h = h.with(calls(called...))
		for _, c := range called {
			answer := unacceptable
			switch v := gjson.Parse(c); {
			case v.Get("function.name").Str == "lookup_customer":
				answer = found
			case gjson.Get(v.Get("function.arguments").Str, "account").Str == "LG-77":
				answer = entries
			}
			h = h.with(result(gjson.Get(c, "id").Str, answer))
		}
		if decided != nil {
			decided(n, list[0], list[1])
		}
	}
	return k, ""
}

// A plan of one replica runs at the other.
func TestPlanOfAnotherReplica(t *testing.T) {
	t.Parallel()
	k, text := alternately(t, 0.9, []string{brainPlanner}, func(n int, one, _ *gateway) {
		if n == 4 { // it has three failures
			eventually(t, 10*time.Second, "the plan is made", func() bool { return len(one.log.lines(t, isEvent("plan_made"))) == 1 })
			waitShared(t)
		}
	})
	if _, told := k.noteWith("LG-77"); !told || text != "Ada has one entry." {
		t.Errorf("ended with %q, was told %q", text, k.notes)
	}
}

// A plan that waits at one replica can be listed and approved at the other.
func TestApprovalAtAnotherReplica(t *testing.T) {
	t.Parallel()
	k, text := alternately(t, 0.6, []string{"planner: {upstream: two, model: brain, mode: act, approvals: true}", "breaker: {failures: 20}"}, func(n int, two, one *gateway) {
		if n == 4 {
			eventually(t, 10*time.Second, "the other replica lists the plan", func() bool { return len(one.approvals()) == 1 })
			id := gjson.Get(one.approvals()[0], "id").Str
			if got := one.post("/rebound/approvals/"+id, `{"approve":true}`); got != 204 {
				t.Errorf("the decision: %d", got)
			}
			if got := two.post("/rebound/approvals/"+id, `{"approve":false}`); got != 409 {
				t.Errorf("another decision at once: %d", got)
			}
			eventually(t, 10*time.Second, "the one that made it knows", func() bool {
				list := two.approvals()
				return len(list) == 1 && gjson.Get(list[0], "state").Str == "approved"
			})
			waitShared(t)
		}
	})
	if tool, told := k.noteWith("Do this next"); !told || tool != "" || text != "Ada has one entry." {
		t.Errorf("ended with %q, was told %q", text, fmt.Sprint(k.notes))
	}
}

// The store, the log and the metrics contain no text of a conversation or of a planner.
func TestPlansCannotBeRead(t *testing.T) {
	t.Parallel()
	redis := storetest.Redis(t)
	k := &clerk{t: t, plan: saysPlan(planJSON("parameter-adjustment", infer, 0.9))}
	up := startStrict(t, k.decide)
	g := k.launch(up.config(noRepair, slowStore(t, redis), actingPlanner, "log: {level: debug, requests: true}"))
	k.between = func(n int) {
		if n == 4 { // it has three failures; with a slow store the planner is asked after the answer
			eventually(t, 10*time.Second, "the plan is made", func() bool { return len(g.log.lines(t, isEvent("plan_made"))) == 1 })
		}
	}
	if text, _ := k.play(g, 8); text != "Ada has one entry." {
		t.Fatalf("it ended with %q", text)
	}
	metrics := g.metrics()
	if err := g.stop(); err != nil {
		t.Fatal(err)
	}
	stored, err := everythingIn(redis)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(stored, "plan/") || !strings.Contains(metrics, `rebound_plans_total{band="act",source="planner",strategy="parameter-adjustment"} 1`) {
		t.Error("the store has no plan: the test proves nothing")
	}
	for where, what := range map[string]string{"the store": stored, "the log": g.log.String(), "the metrics": metrics} {
		for _, mark := range []string{"LG-77", "Ada", "E41", "lookup shows", "the entries", "clerk"} {
			if at := strings.Index(what, mark); at >= 0 {
				t.Errorf("%s has %q: …%.200s", where, mark, what[max(0, at-100):])
			}
		}
	}
}
