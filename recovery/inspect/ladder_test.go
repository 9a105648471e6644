package inspect

import (
	"testing"

	"github.com/rebound-llm/rebound/recovery"
)

// A failure is new once; the second of the same, or the third of its kind, is due for
// help; the third of the same is stuck. A person's new words begin anew.
func TestLadder(t *testing.T) {
	fails := func(name string) string {
		return "\n! bash {\"command\":\"cat " + name + "\"}\n= cat: " + name + ": No such file or directory\\n\\nCommand exited with code 1"
	}
	syntaxError := func(name string) string {
		return "\n! bash {\"command\":\"python " + name + ".py\"}\n= File \\\"" + name + ".py\\\", line 3\\n    " + name + " = (\\n        ^\\nSyntaxError: invalid syntax\\n\\nCommand exited with code 1"
	}
	a := fails("a.txt")
	for _, c := range []struct {
		name, text string
		want       recovery.Ladder
	}{
		{"success", listing, recovery.Ladder{}},
		{"first", a, recovery.Ladder{Rung: recovery.RungFirst, Same: 1, Kind: 1}},
		{"the same again", a + listing + a, recovery.Ladder{Rung: recovery.RungAgain, Same: 2, Kind: 2, Met: 1}},
		{"third of a kind", a + fails("b.txt") + fails("c.txt"), recovery.Ladder{Rung: recovery.RungAgain, Same: 1, Kind: 3, Met: 2}},
		{"third syntax error", syntaxError("a") + syntaxError("b") + syntaxError("c"), recovery.Ladder{Rung: recovery.RungFirst, Same: 1, Kind: 3, Met: 2}},
		{"third of the same", a + a + a, recovery.Ladder{Rung: recovery.RungStuck, Same: 3, Kind: 3, Met: 2, Given: 1}},
		{"a person spoke", a + a + "\n< It is not there.\n> Now it is. Again." + a, recovery.Ladder{Rung: recovery.RungFirst, Same: 1, Kind: 1, Met: 2, Given: 1}},
		{"a firm loop", times(3, listing), recovery.Ladder{Rung: recovery.RungStuck}},
	} {
		x := prepared(t, NewStage(Defaults(), RulesForTests(), &events{}), &recovery.Exchange{Request: recovery.Request{Body: script(t, c.text), Mode: recovery.ModeAct}})
		got := x.Ladder
		if (got.Failure != nil) != (c.want.Same > 0) {
			t.Errorf("%s: the failure is %v", c.name, got.Failure)
		}
		if got.Failure = nil; got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}
