package learn_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/learn"
	"github.com/rebound-llm/rebound/store"
)

// each is marks, one line each: what, of what age, for how long, from which request.
func each(marks []recovery.Mark) (out []string) {
	for _, m := range marks {
		left := "-"
		if !m.Until.IsZero() {
			left = time.Until(m.Until).String()
		}
		out = append(out, fmt.Sprintf("%s %s | %s | %s | %v %s | %s", m.Target, m.Kind, m.Item, m.Detail, time.Since(m.Since), left, m.Request))
	}
	slices.Sort(out)
	return out
}

// TestMarks: each thing that was learned is told with its age and its request, and is
// forgotten alone.
func TestMarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) // ages are kept in seconds
		b := board(t)
		f := learn.NewFacts(b, time.Hour)
		check := func(want ...string) {
			t.Helper()
			if got := each(f.Marks()); !slices.Equal(got, want) {
				t.Errorf("marks are\n%q, want\n%q", got, want)
			}
		}
		drop, clamp := recovery.Edit{Field: "seed", Drop: true}, recovery.Edit{Field: "max_tokens", Clamp: 8192}
		f.Learn(target.Keyless(), []recovery.Edit{drop, {Conform: recovery.ConformPairing}, {Role: "developer", Rename: "system"}}, "r1")
		time.Sleep(10 * time.Minute)
		f.Learn(target.Keyless(), []recovery.Edit{drop, clamp}, "r2") // seed is known
		f.LearnWindow(target, 8192, "r3")
		f.SawReasoning(target, "r4")
		f.ListWindow(target, 32_000)
		time.Sleep(time.Minute)
		f.LearnWindow(target, 0, "r5") // nothing new
		check("up/m learned | conform pairing | needs pairing | 11m0s 59m0s | r1",
			"up/m learned | field max_tokens | max_tokens at most 8192 | 1m0s 59m0s | r2",
			"up/m learned | field seed | refuses seed | 11m0s 59m0s | r1",
			"up/m learned | reasoning in silence | reasons in silence | 1m0s 59m0s | r4",
			"up/m learned | role developer | takes developer as system | 11m0s 59m0s | r1",
			"up/m window | listed window | window of 32000 tokens | 1m0s - | ",
			"up/m window | window | window of 8192 tokens | 1m0s 59m0s | r3")
		for _, item := range []string{"conform pairing", "role developer", "listed window", "reasoning in silence", "no such", "window"} {
			f.Clear("up/m", item)
		}
		clamp.Clamp = 4096
		time.Sleep(time.Minute)
		f.Learn(target.Keyless(), []recovery.Edit{clamp}, "r6") // newer knowledge has a newer origin
		check("up/m learned | field max_tokens | max_tokens at most 4096 | 0s 1h0m0s | r6",
			"up/m learned | field seed | refuses seed | 12m0s 1h0m0s | r1")
		if f.Window(target) != 0 || f.Overflowed(target) || f.Reasons(target) || len(f.Edits(target)) != 2 {
			t.Error("what was cleared is known still")
		}
		time.Sleep(time.Minute)
		f.Clear("up/m", "field max_tokens") // the others do not live longer for it
		check("up/m learned | field seed | refuses seed | 13m0s 59m0s | r1")
		f.Clear("up/m", "")
		f.Clear("up/m", "") // nothing to clear is no harm
		check()
		if b.Any(learn.BoardFacts) {
			t.Error("something is left on the board")
		}
	})
}

// TestMarksOfOthers: what an older version kept is shown without an origin, and no
// hostile origin is.
func TestMarksOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := board(t)
		f := learn.NewFacts(b, time.Hour)
		long := make([]byte, 10_000)
		for i := range long {
			long[i] = 'x'
		}
		for _, origins := range []string{``, `,"origins":{"field seed":{"at":5,"request":"` + string(long) + `"}}`, `,"origins":null`} {
			b.Post(learn.BoardFacts, store.Field{Name: "up/m", Value: []byte(`{"edits":[{"field":"seed","drop":true}]` + origins + `}`), Until: time.Now().Add(time.Hour)}, false)
			if got := each(f.Marks()); !slices.Equal(got, []string{"up/m learned | field seed | refuses seed | 0s 1h0m0s | "}) {
				t.Errorf("%.40s: %.200q", origins, got)
			}
		}
		b.Post(learn.BoardFacts, store.Field{Name: "up/m", Value: []byte(`{"edits":[{"field":"seed","drop":true}],"origins":[]}`), Until: time.Now().Add(time.Hour)}, false)
		if got := f.Marks(); len(got) != 0 {
			t.Errorf("what is not ours is shown as %v", got)
		}
	})
}

// TestPaceMarks: a pace is told once it counts, and is forgotten with a reset.
func TestPaceMarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := newPace(t)
		x := exchange(t, 5000, "")
		for i := range 24 {
			if marks := p.Marks(); i < 20 && len(marks) > 0 {
				t.Fatalf("after %d answers: %v", i, marks)
			}
			p.Observe(x, candidate("m"), 4*time.Second+time.Duration(i)*time.Millisecond, recovery.Usage{})
		}
		time.Sleep(time.Minute)
		p.Observe(exchange(t, 100, ""), candidate("m"), time.Second, recovery.Usage{}) // too few of that size
		want := []string{"up/m pace | first token | 95 % within 4.02s, streams below 8192 tokens; may be silent for 12.1s at least | 1m0s - | "}
		if got := each(p.Marks()); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		if limit := p.Limits(x, candidate("m"), true).Silent; limit <= 11*time.Second {
			t.Errorf("the limit is %v: the pace does not count", limit)
		}
		p.Clear("up/m", "window")
		p.Clear("up/m2", "")
		if len(p.Marks()) != 1 {
			t.Error("another reset has cleared it")
		}
		p.Clear("up/m", "first token")
		if got := p.Marks(); len(got) != 0 {
			t.Errorf("after the reset: %v", got)
		}
	})
}
