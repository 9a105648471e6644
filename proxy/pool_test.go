package proxy

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pool
		fill := func(key string, limit int64) (n int64) {
			for p.take(key, 1, limit) {
				n++
			}
			return n
		}
		if n := fill("greedy", 10); n != 10 {
			t.Fatalf("alone, a key has %d of 10", n)
		}
		if p.take("modest", 1, 10) {
			t.Fatal("there are more than 10")
		}
		p.give("greedy", 3)
		if n := fill("greedy", 10); n != 2 {
			t.Errorf("of 3 free places, one of which another key wants, a key gets %d", n)
		}
		if n := fill("modest", 10); n != 1 {
			t.Errorf("who wanted a place gets %d", n)
		}
		// Who wants more gets it as places become free, up to an even share.
		for range 20 {
			fill("modest", 10)
			p.give("greedy", 1)
			fill("greedy", 10)
		}
		if g, m := p.users["greedy"].taken, p.users["modest"].taken; g != 5 || m != 5 {
			t.Errorf("of two keys that want all, one has %d and one %d", g, m)
		}
		p.give("modest", 5)
		if n := fill("greedy", 10); n != 0 {
			t.Errorf("what another key had a moment ago is given away: %d", n)
		}
		time.Sleep(2 * era)
		if n := fill("greedy", 10); n != 5 || len(p.users) != 1 {
			t.Errorf("when the other has gone, %d more places are had by one of %d keys", n, len(p.users))
		}
		p.give("greedy", 10)
		if n := fill("", 10); n != 10 || p.taken.Load() != 10 {
			t.Errorf("without keys there are %d places", n)
		}
	})
}

// A key that takes all it can get leaves so much that each key that is away can begin at once,
// however long its answers last; with more keys than places half of them stay free.
func TestPoolKeepsRoom(t *testing.T) {
	for _, c := range []struct{ keys, limit, greedy, late int64 }{{2, 10, 9, 1}, {2, 100, 88, 12}, {4, 100, 82, 6}, {50, 10, 5, 1}, {1, 10, 10, 0}, {2, 1, 1, 0}} {
		synctest.Test(t, func(t *testing.T) {
			var p pool
			p.keys.Store(c.keys)
			fill := func(key string) (n int64) {
				for p.take(key, 1, c.limit) {
					n++
				}
				return n
			}
			if n := fill("greedy"); n != c.greedy {
				t.Errorf("%d keys, %d places: one key takes %d, want %d", c.keys, c.limit, n, c.greedy)
			}
			time.Sleep(time.Hour)
			for range 3 {
				if n := fill("late"); n != c.late {
					t.Errorf("%d keys, %d places: who comes later gets %d, want %d", c.keys, c.limit, n, c.late)
				}
				p.give("late", c.late)
				time.Sleep(time.Second)
				fill("greedy")
			}
		})
	}
}

// Of memory, everybody may have what he needs until half of it is taken.
func TestPoolOpen(t *testing.T) {
	p := pool{open: 0.5}
	for _, key := range []string{"a", "b", "c", "d"} { // each wanted an even share
		p.take(key, 25, 100)
		p.give(key, 25)
	}
	if !p.take("a", 50, 100) || p.take("a", 1, 100) {
		t.Error("half of what there is is not what is open")
	}
	if !p.take("b", 25, 100) || p.take("b", 1, 100) || !p.take("c", 25, 100) || p.take("d", 1, 100) {
		t.Error("the rest is not shared evenly")
	}
}

// Where nothing is limited, limits cost no allocation.
func TestNoLimitsCostNothing(t *testing.T) {
	s, k, who := &Server{}, &Core{}, client{name: "alice"}
	if n := testing.AllocsPerRun(100, func() {
		leave, err := s.reservePlace(who, 0)
		grant, refused := k.admit(t.Context(), who, "m", nil, nil)
		if err != nil || refused != nil {
			t.Error(err, refused)
		}
		grant.End(1, 1)
		leave()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	p := pool{open: 0.5}
	p.take("alice", 1, 1<<20)
	if n := testing.AllocsPerRun(100, func() { p.take("alice", 1000, 1<<20); p.give("alice", 1000) }); n != 0 {
		t.Errorf("%v allocations for a share of memory", n)
	}
}
