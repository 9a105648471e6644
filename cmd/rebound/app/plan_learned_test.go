package app_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// The gateway learns from the outcomes of plans, without storing text. Once it is sure what helps, it tells the
// model so without asking the planner. A poisoned corpus has no effect.
func TestPlansAreLearned(t *testing.T) {
	t.Parallel()
	k, g := startAdvisedClerk(t, saysOnly(planJSON("parameter-adjustment", infer, 0.9)), brainPlanner, "breaker: {failures: 20}")
	k.topic, k.fails = " Zq7mark", `{"error":"ledger said: E41 Zq7mark not valid for this one"}`
	if text, _ := k.play(g, 8); text != "Ada has one entry." || len(k.asked) != 1 {
		t.Fatalf("it ended with %q, the planner was asked %d times", text, len(k.asked))
	}
	eventually(t, 10*time.Second, "the outcome is known", func() bool {
		return g.learned().Observations >= 2 && strings.Contains(g.admin("GET", "/rebound/learn/corpus", ""), "parameter-adjustment")
	})
	corpus := strings.Split(strings.TrimSpace(g.admin("GET", "/rebound/learn/corpus", "")), "\n")
	hint, line := corpus[0], corpus[len(corpus)-1]
	if o := gjson.Parse(hint); o.Get("strategy").Str != "hint" || o.Get("outcome").Str != "failure" {
		t.Errorf("the note before the plan: %s", hint)
	}
	o := gjson.Parse(line)
	if o.Get("chain").Str != "loop_same_error" || o.Get("strategy").Str != "parameter-adjustment" || o.Get("outcome").Str != "success" ||
		!strings.HasPrefix(o.Get("key").Str, "~") || o.Get("model").Str == "" {
		t.Fatalf("the corpus is %s", line)
	}
	for _, said := range []string{"Zq7mark", "Ada", "LG-77", "E41", "ledger"} {
		if strings.Contains(line, said) {
			t.Errorf("%q is kept: %s", said, line)
		}
	}

	// Thirty other sessions of this client, eight of them without a note.
	entry := func(i int, change ...string) string {
		change = append(change, `"id":"`+o.Get("id").Str+`"`, fmt.Sprintf(`"id":"i%d"`, i), `"session":"`+o.Get("session").Str+`"`, fmt.Sprintf(`"session":"s%d"`, i))
		return strings.NewReplacer(change...).Replace(line) + "\n"
	}
	poison := entry(900, `"strategy":"parameter-adjustment"`, `"strategy":"rm"`) + entry(901, `"chain":"loop_same_error"`, `"chain":"loop_x"`) +
		entry(902, `"template":"`, `"template":"zq7mark `) + "{\n"
	for i := range 100 {
		poison += strings.Replace(entry(1000+i), fmt.Sprintf(`"session":"s%d"`, 1000+i), `"session":"loud"`, 1)
	}
	if got := g.admin("POST", "/rebound/learn/corpus", poison); !strings.Contains(got, `"refused":4`) || len(g.learned().Patterns) != 0 {
		t.Errorf("poisoned: %s, %+v", got, g.learned().Patterns)
	}
	var others string
	for i := range 30 {
		if others += entry(i); i%4 == 0 {
			others += entry(500+i, `"strategy":"parameter-adjustment"`, `"strategy":""`, `"outcome":"success"`, `"outcome":"failure"`)
		}
	}
	g.admin("POST", "/rebound/learn/corpus", others)
	l := g.learned()
	if len(l.Patterns) != 1 || l.Patterns[0].Strategy != "parameter-adjustment" || l.Patterns[0].Chain != "loop_same_error" || l.Patterns[0].Key != o.Get("key").Str ||
		l.Patterns[0].Model != o.Get("model").Str {
		t.Fatalf("the patterns are %+v", l.Patterns)
	}
	asked := len(k.asked)
	k.topic = " Another one."
	k.play(g, 5)
	if _, ok := k.noteWith("A proposal, which may be wrong: change the parameter of `ledger_entries`"); !ok || len(k.asked) != asked {
		t.Errorf("the planner was asked %d times, the model told %q", len(k.asked)-asked, k.notes)
	}
	eventually(t, 10*time.Second, "the event of the learned plan", func() bool {
		list := g.log.lines(t, isEvent("plan_made"))
		last := list[len(list)-1]
		return last["source"] == "learned" && last["strategy"] == "parameter-adjustment"
	})
	k.topic = " A third one."
	if text, _ := k.play(g, 16); text != "Ada has one entry." || len(k.asked) != asked+1 {
		t.Errorf("what is known was no help, and the planner was asked %d times: %q", len(k.asked)-asked, text)
	}
	// An outcome that is judged just then may be counted behind a reset.
	eventually(t, 10*time.Second, "nothing is known after a reset", func() bool {
		g.admin("DELETE", "/rebound/learn", "")
		l := g.learned()
		return l.Observations == 0 && len(l.Patterns) == 0
	})
}

// Notes about loops are learned from, too: a result that is new afterwards counts as success.
func TestLoopNotesAreLearned(t *testing.T) {
	t.Parallel()
	k := &clerk{t: t}
	g := k.launch(startStrict(t, k.decide).config(noRepair))
	h := conversation{model: "m", tools: []string{lookup, shell}, messages: []string{message("system", "You are a clerk."), user("Find Ada. Zq7mark")}}
	for i := range 2 {
		id := fmt.Sprint("a", i)
		h = h.with(calls(call(id, "lookup_customer", `{"name":"Ada"}`)), result(id, found))
	}
	g.must(h.body())
	eventually(t, 10*time.Second, "it is open", func() bool { return g.learned().Open == 1 })
	h = h.with(calls(call("b", "bash", `{"command":"ls"}`)), result("b", "a.txt\n"))
	g.must(h.body())
	eventually(t, 10*time.Second, "the outcome is known", func() bool { return g.learned().Observations == 1 })
	line := g.admin("GET", "/rebound/learn/corpus", "")
	if o := gjson.Parse(line); o.Get("chain").Str != "loop_same_result" || o.Get("strategy").Str != "hint" || o.Get("outcome").Str != "success" || strings.Contains(line, "Zq7mark") {
		t.Errorf("the corpus is %s", line)
	}
	if c := g.learned().Cells; len(c) != 1 || c[0].Chain != "loop_same_result" || len(c[0].Arms) != 2 || c[0].Arms[0].Strategy != "hint" || c[0].Decision != "chain" {
		t.Errorf("the report is %+v", c)
	}
}
