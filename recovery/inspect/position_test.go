package inspect

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
)

func TestPosition(t *testing.T) {
	for _, c := range []struct {
		name, text   string
		failed       bool
		streak, seen int
	}{
		{"nothing new", "< hello\n> there", false, 0, 0},
		{"a success", listing, false, 0, 0},
		{"a failure", listing + notFound, true, 1, 1},
		{"again", times(4, notFound), true, 4, 4},
		{"a success between", notFound + listing + times(2, notFound), true, 2, 3},
		{"another failure between", times(2, notFound) + booking + notFound, true, 1, 3},
		{"a new message between", times(2, notFound) + "\n< I give up.\n> try this" + notFound, true, 1, 3},
		{"a new message after", times(2, notFound) + "\n> stop that", true, 1, 2},
		{"the task again, word for word", times(2, notFound) + "\n< I give up.\n> Do it." + notFound, true, 3, 3},
		{"a talk between", notFound + "\n< Hm.\n> Do it.\n< Hm.\n> Do it." + notFound, true, 2, 2},
		{"parallel failures are one turn", times(2, "\n! rg {}\n& rg {}\n= bash: rg: command not found\n= bash: rg: command not found"), true, 2, 2},
		{"one of the parallel calls succeeded", notFound + "\n! rg {}\n& ls {}\n= bash: rg: command not found\n= a\\nb", false, 0, 0},
	} {
		p := Position(script(t, c.text))
		if (p.Failure != nil) != c.failed || p.Streak != c.streak || p.Seen != c.seen || (p.Slot != "") != c.failed {
			t.Errorf("%s: %+v", c.name, p)
		}
	}
}

// Only the last turns are looked at.
func TestPositionIsBounded(t *testing.T) {
	if p := Position(script(t, times(2*lookBack, notFound))); p.Streak != lookBack || p.Seen != lookBack {
		t.Errorf("%+v", p)
	}
	if l := Loops(script(t, times(2*lookBack, notFound))); len(l) != 1 || l[0].Count != lookBack {
		t.Errorf("%+v", l)
	}
}

func TestSlot(t *testing.T) {
	one := Position(script(t, notFound))
	if again := Position(script(t, notFound)); again.Slot != one.Slot || len(one.Slot) != 32 {
		t.Errorf("the same request: %q and %q", one.Slot, again.Slot)
	}
	if more := Position(script(t, notFound+"\n> also look there")); more.Slot != one.Slot {
		t.Error("what follows the turn changes its slot")
	}
	// The ids differ in these; the same bytes at another place are another turn, too.
	if two := Position(script(t, times(2, notFound))); two.Slot == one.Slot {
		t.Error("two turns have the same slot")
	}
	call, result := called(1, "rg", "{}"), answered(1, "bash: rg: command not found")
	a := Position(parsed(t, request(said("user", "x"), call, result)))
	b := Position(parsed(t, request(said("user", "x"), call, result, call, result)))
	if a.Slot == b.Slot {
		t.Error("the same bytes in two turns have the same slot")
	}
}

func TestUserAndSuccess(t *testing.T) {
	first := Position(script(t, listing+notFound))
	later := Position(script(t, listing+times(3, notFound)))
	if first.User == 0 || first.Success == 0 || first.User != later.User || first.Success != later.Success {
		t.Errorf("%+v, then %+v", first, later)
	}
	if p := Position(script(t, notFound)); p.Success != 0 {
		t.Errorf("a success out of nothing: %+v", p)
	}
	if p := Position(script(t, listing+notFound+listing+notFound)); p.Success == first.Success {
		t.Error("a new success has the mark of the old one")
	}
	if p := Position(script(t, listing+notFound+"\n> and that")); p.User == first.User {
		t.Error("a new message has the hash of the old one")
	}
	if p := Position(script(t, listing+notFound+"\n> Do it.")); p.User != first.User {
		t.Error("a repeated message has another hash")
	}
}

func TestSeveralFailuresAreOne(t *testing.T) {
	a, b := "rg {}\n", "fetch {}\n"
	ra, rb := "\n= bash: rg: command not found", "\n= Error: connect ECONNREFUSED 203.0.113.7:443"
	ab := Position(script(t, "! "+a+"& "+b+strings.TrimSpace(ra)+rb)).Failure
	ba := Position(script(t, "! "+b+"& "+a+strings.TrimSpace(rb)+ra)).Failure
	only := Position(script(t, "! "+a+strings.TrimSpace(ra))).Failure
	if ab == nil || ba == nil || only == nil || ab.Fingerprint != ba.Fingerprint || ab.Fingerprint == only.Fingerprint {
		t.Errorf("%+v, %+v, %+v", ab, ba, only)
	}
	if only.Category != recovery.CommandNotFound {
		t.Errorf("%+v", only)
	}
}

// An observation of a text protocol is a result, not a person's message.
func TestTextProtocol(t *testing.T) {
	history := func(extra ...string) []byte {
		list := []string{said("system", "Answer with exactly one command in a block."), said("user", "Fix it.")}
		for range 3 {
			list = append(list, said("assistant", "Let me see.\n```bash\nrg x\n```"), said("user", "<returncode>127</returncode>\n<output>\nbash: rg: command not found\n</output>"))
		}
		return []byte(`{"model":"m","messages":[` + strings.Join(append(list, extra...), ",") + `]}`)
	}
	b := parsed(t, history())
	p, l := Position(b), Loops(b)
	if p.Failure == nil || p.Streak != 3 || len(l) != 1 || l[0].Kind != recovery.LoopSameError || l[0].Count != 3 {
		t.Errorf("%+v, %+v", p, l)
	}
	q := Position(parsed(t, bytes.Replace(history(), []byte("Fix it."), []byte("Mend it."), 1)))
	if p.User == 0 || p.User == q.User || p.Slot != q.Slot {
		t.Errorf("the person's message is not the hashed one: %+v, %+v", p, q)
	}
	more := Position(parsed(t, history(said("assistant", "I need help."), said("user", "Use grep."), said("assistant", "```bash\nrg x\n```"),
		said("user", "<returncode>127</returncode>\n<output>\nbash: rg: command not found\n</output>"))))
	if more.User == p.User || more.Streak != 1 || more.Seen != 4 {
		t.Errorf("%+v", more)
	}
}

// Many different failures of earlier turns are not all judged.
func TestJudgingIsBounded(t *testing.T) {
	var text strings.Builder
	for i := range 20 {
		for k := range 20 {
			fmt.Fprintf(&text, "\n%s bash {\"command\":\"cat f%d\"}", map[bool]string{true: "!", false: "&"}[k == 0], k)
		}
		for k := range 20 {
			fmt.Fprintf(&text, "\n= cat: f%d-%d: No such file or directory", i, k)
		}
	}
	h := readHistory(script(t, text.String()))
	h.position()
	h.loops(defaultNoProgress)
	if n := h.judged; n < 20 || n > maxJudged {
		t.Errorf("%d results were judged", n)
	}
	// Nor are all results of a single turn: those beyond the limit are no failures.
	var one strings.Builder
	for k := range 300 {
		fmt.Fprintf(&one, "\n%s bash {\"command\":\"cat f%d\"}", map[bool]string{true: "!", false: "&"}[k == 0], k)
	}
	for k := range 300 {
		fmt.Fprintf(&one, "\n= cat: f%d: No such file or directory", k)
	}
	h = readHistory(script(t, one.String()))
	failed := 0
	for _, s := range h.summary(0).steps {
		if s.verdict.Failed {
			failed++
		}
	}
	if failed != maxJudged {
		t.Errorf("%d of 300 results were judged", failed)
	}
}
