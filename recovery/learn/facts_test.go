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
	"github.com/rebound-llm/rebound/store/memory"
)

var target = recovery.Target{Upstream: "up", Model: "m", Key: "k"}

func board(t *testing.T) *store.Mirror {
	m := store.NewMirror(memory.New(memory.Defaults()), []string{learn.BoardFacts}, 0)
	t.Cleanup(m.Stop)
	return m
}

func TestFacts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := learn.NewFacts(board(t), time.Hour)
		check := func(want ...recovery.Edit) {
			t.Helper()
			if got := f.Edits(target); !slices.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
		}
		check()
		drop := recovery.Edit{Field: "temperature", Drop: true}
		clamp := recovery.Edit{Field: "max_tokens", Clamp: 8192}
		role := recovery.Edit{Role: "developer", Rename: "system"}
		f.Learn(target.Keyless(), []recovery.Edit{drop}, "r1")
		f.Learn(target.Keyless(), []recovery.Edit{clamp, role, drop}, "r1")
		check(drop, clamp, role)
		clamp.Clamp = 4096
		f.Learn(target.Keyless(), []recovery.Edit{clamp}, "r1") // newer knowledge of the same field
		check(drop, clamp, role)

		other := target
		other.Key = "k2"
		if got := f.Edits(other); len(got) != 3 {
			t.Errorf("another key of the same target: %v", got)
		}
		f.Learn(target, []recovery.Edit{{Field: "reasoning", Drop: true}}, "r1") // of this account alone
		check(drop, clamp, role, recovery.Edit{Field: "reasoning", Drop: true})
		if got := f.Edits(other); len(got) != 3 {
			t.Errorf("the account of another key: %v", got)
		}
		other.Model = "m2"
		if got := f.Edits(other); len(got) != 0 {
			t.Errorf("another model: %v", got)
		}

		f.SawReasoning(target, "r1")
		f.Forget(target)
		check()
		if !f.Reasons(target) {
			t.Error("that it reasons was forgotten with the edits")
		}
		f.Learn(target.Keyless(), []recovery.Edit{drop}, "r1")
		if !f.Reasons(target) {
			t.Error("learning forgot that it reasons")
		}
		time.Sleep(time.Hour - time.Second)
		check(drop)
		time.Sleep(time.Second)
		check() // tried again as the client sent it
		if f.Reasons(target) {
			t.Error("that it reasons did not expire")
		}
		f.Reconfigure(time.Minute)
		f.Learn(target.Keyless(), []recovery.Edit{drop}, "r1")
		time.Sleep(time.Minute)
		check()
		f.Forget(target) // nothing to forget is no harm
	})
}

// TestFactsEnd: a window that is used again and again keeps no refused parameter.
func TestFactsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := learn.NewFacts(board(t), time.Hour)
		f.Learn(target.Keyless(), []recovery.Edit{{Field: "temperature", Drop: true}}, "r1")
		f.SawReasoning(target, "r1")
		for range 12 {
			f.LearnWindow(target, 8192, "r2")
			time.Sleep(10 * time.Minute)
		}
		if f.Window(target) != 8192 {
			t.Error("the window is forgotten although it is used")
		}
		if got := f.Edits(target); len(got) != 0 || f.Reasons(target) {
			t.Errorf("remembered for two hours in place of one: %v, reasons %v", got, f.Reasons(target))
		}
	})
}

// TestFactsShared: two replicas with one store learn from each other.
func TestFactsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memory.New(memory.Defaults())
		var facts [2]*learn.Facts
		for i := range facts {
			m := store.NewMirror(shared, []string{learn.BoardFacts}, 300*time.Millisecond)
			defer m.Stop()
			facts[i] = learn.NewFacts(m, time.Hour)
		}
		facts[0].Learn(target.Keyless(), []recovery.Edit{{Field: "top_k", Drop: true}}, "r1")
		time.Sleep(time.Second)
		facts[1].Learn(target.Keyless(), []recovery.Edit{{Field: "seed", Drop: true}}, "r1")
		time.Sleep(time.Second)
		for i, f := range facts {
			if got := f.Edits(target); len(got) != 2 {
				t.Errorf("replica %d knows %v", i, got)
			}
		}
		facts[0].Forget(target)
		time.Sleep(time.Second)
		if got := facts[1].Edits(target); len(got) != 0 {
			t.Errorf("not forgotten: %v", got)
		}
	})
}

func TestFactsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := learn.NewFacts(board(t), time.Hour)
		for i := range 500 {
			f.Learn(target.Keyless(), []recovery.Edit{{Conform: recovery.ConformKeyword, Field: fmt.Sprint("invented", i)}}, "r1")
		}
		if got := len(f.Edits(target)); got != 32 {
			t.Errorf("%d edits of one model", got)
		}
	})
}

// TestFactsHostile: what is no fact of ours is no fact.
func TestFactsHostile(t *testing.T) {
	for _, v := range []string{"", "x", "null", "[]", "{", `"edits"`, `{"edits":{}}`, `{"edits":[1]}`, `{"reasons":"yes"}`, `{"edits":null}`, "\x00",
		`{"edits":[{"field":"messages","drop":true},{"field":"tools","drop":true},{"field":"model","rename":"seed"},{"role":"user","rename":"system"},{"field":"max_tokens","clamp":1},{"mend":"nonsense"}],"window":-5}`} {
		synctest.Test(t, func(t *testing.T) {
			m := board(t)
			f := learn.NewFacts(m, time.Hour)
			m.Post(learn.BoardFacts, store.Field{Name: "up/m", Value: []byte(v), Until: time.Now().Add(time.Hour)}, false)
			if got := f.Edits(target); len(got) != 0 || f.Reasons(target) || f.Window(target) != 0 {
				t.Errorf("%q: %v, %v", v, got, f.Reasons(target))
			}
			f.Learn(target.Keyless(), []recovery.Edit{{Field: "seed", Drop: true}}, "r1")
			if got := f.Edits(target); len(got) != 1 {
				t.Errorf("%q keeps new knowledge out: %v", v, got)
			}
		})
	}
}

func TestFactsWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := learn.NewFacts(board(t), time.Hour)
		target := recovery.Target{Upstream: "u", Model: "m", Key: "a"}
		if f.Overflowed(target) || f.Window(target) != 0 {
			t.Error("something is known of a target that was never asked")
		}
		f.LearnWindow(target, 0, "r1")
		if !f.Overflowed(target) || f.Window(target) != 0 {
			t.Error("an overflow without a size was not remembered")
		}
		f.LearnWindow(target, 8192, "r1")
		f.LearnWindow(target, 0, "r1")
		target.Key = "b" // all keys see the same model
		if !f.Overflowed(target) || f.Window(target) != 8192 {
			t.Errorf("window %d", f.Window(target))
		}
		time.Sleep(40 * time.Minute)
		f.LearnWindow(target, 0, "r1") // lives on while it matters
		time.Sleep(40 * time.Minute)
		if f.Window(target) != 8192 {
			t.Error("forgotten although it was used")
		}
		time.Sleep(time.Hour)
		if f.Overflowed(target) || f.Window(target) != 0 {
			t.Error("remembered for ever")
		}
		f.ListWindow(target, 32_000)
		if f.Window(target) != 32_000 || f.Overflowed(target) {
			t.Errorf("from the list: %d", f.Window(target))
		}
		f.LearnWindow(target, 16_000, "r1")
		if f.Window(target) != 16_000 {
			t.Errorf("the refusal says 16000, not %d", f.Window(target))
		}
	})
}

// TestFactsShown: what was handed out stays as it was when more is learnt.
func TestFactsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := learn.NewFacts(board(t), time.Hour)
		f.Learn(target.Keyless(), []recovery.Edit{{Field: "max_tokens", Clamp: 8192}}, "r1")
		before := f.Edits(target)
		f.Learn(target.Keyless(), []recovery.Edit{{Field: "max_tokens", Clamp: 4096}}, "r1")
		if before[0].Clamp != 8192 || f.Edits(target)[0].Clamp != 4096 {
			t.Errorf("%v, then %v", before, f.Edits(target))
		}
	})
}
