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

func newWishes(t *testing.T) (*learn.Wishes, *store.Mirror) {
	t.Helper()
	s := memory.New(memory.Defaults())
	m := store.NewMirror(s, []string{learn.BoardWishes}, 0)
	t.Cleanup(func() {
		m.Stop()
		_ = s.Close()
	})
	return learn.NewWishes(m, true), m
}

// What a client's users forbid adds up, is no other client's, and ends 30 days after
// they said so last.
func TestWishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := newWishes(t)
		w.Keep("alice", recovery.Installs)
		w.Keep("bob", 0)
		w.Keep("", recovery.Runs)
		time.Sleep(20 * 24 * time.Hour)
		w.Keep("alice", recovery.Reaches)
		if a, b, none := w.Of("alice"), w.Of("bob"), w.Of(""); a != recovery.Installs|recovery.Reaches || b != 0 || none != 0 {
			t.Errorf("%v, %v and %v are ruled out", a, b, none)
		}
		time.Sleep(20 * 24 * time.Hour)
		w.Keep("alice", recovery.Installs)
		time.Sleep(20 * 24 * time.Hour)
		list := w.List()
		if len(list) != 1 || list[0].Key != "alice" || !slices.Equal(list[0].RuledOut, []string{"install", "network"}) {
			t.Errorf("listed: %v", list)
		}
		time.Sleep(11 * 24 * time.Hour)
		if got := w.Of("alice"); got != 0 || len(w.List()) != 0 {
			t.Errorf("%v is ruled out, %v is listed", got, w.List())
		}
	})
}

// Off, nothing is kept and nothing counts; what is kept comes back with it, unless it was
// forgotten.
func TestWishesOff(t *testing.T) {
	w, _ := newWishes(t)
	w.Keep("alice", recovery.Installs)
	w.Reconfigure(false)
	w.Keep("alice", recovery.Runs)
	if got := w.Of("alice"); got != 0 {
		t.Errorf("%v is ruled out", got)
	}
	w.Reconfigure(true)
	if got := w.Of("alice"); got != recovery.Installs {
		t.Errorf("%v is ruled out", got)
	}
	w.Clear()
	if got := w.Of("alice"); got != 0 || len(w.List()) != 0 {
		t.Errorf("%v is ruled out after it was forgotten", got)
	}
}

// What somebody else put on the board rules out nothing.
func TestWishesHostile(t *testing.T) {
	w, board := newWishes(t)
	for i, raw := range []string{"", "{", "null", "7", `["sudo rm -rf /","x"]`, `{"deeds":["install"]}`, `[["install"]]`} {
		board.Post(learn.BoardWishes, store.Field{Name: fmt.Sprint(i), Value: []byte(raw), Until: time.Now().Add(time.Hour)}, false)
		if got := w.Of(fmt.Sprint(i)); got != 0 {
			t.Errorf("%s rules out %v", raw, got)
		}
	}
	if list := w.List(); len(list) != 0 {
		t.Errorf("listed: %v", list)
	}
}
