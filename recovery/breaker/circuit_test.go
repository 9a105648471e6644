package breaker_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/breaker"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
)

// TestPersonal: failures that one of several clients provokes close the target to it alone.
func TestPersonal(t *testing.T) {
	for _, c := range []struct {
		name       string
		keys       int    // that are configured
		before     string // clients that were seen, by their first letter
		outcomes   string // attempts that fail, of clients a and b
		alice, bob bool   // for whom it is open then
		ready      bool   // after four times as many
	}{
		{"one of two keys", 2, "", "aaaaa", true, false, true},
		{"both", 2, "", "aaaab", true, true, false},
		{"the only key", 1, "", "aaaaa", true, true, false},
		{"the only one that was seen", 0, "", "aaaaa", true, true, false},
		{"one of two that were seen", 0, "b", "aaaaa", true, false, true},
		{"too few", 2, "", "aaaa", false, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := breaker.Defaults()
				cfg.Clients = c.keys
				l := &recoverytest.Observer{}
				s := breaker.NewSet(cfg, recoverytest.NewBoard(), l)
				attempt := func(client rune, o recovery.Outcome) {
					ticket, _ := s.For(string(client)).Begin(target, time.Now(), false, true)
					ticket.Place.Done(ticket, o)
				}
				for _, client := range c.before {
					attempt(client, recovery.Outcome{})
				}
				for _, client := range c.outcomes {
					attempt(client, broken)
				}
				if a, b := s.For("a").Check(target).Open, s.For("b").Check(target).Open; a != c.alice || b != c.bob {
					t.Errorf("open for a: %v, for b: %v", a, b)
				}
				if n := l.Count(recovery.EventBreakerOpened); (n == 1) != c.alice {
					t.Errorf("%d events", n)
				}
				if marks := s.Marks(); c.alice && !c.bob && (len(marks) != 1 || marks[0].Evidence != "server_error for a alone") {
					t.Errorf("marks %+v", marks)
				}
				for range 4 {
					for _, client := range c.outcomes {
						attempt(client, broken)
					}
				}
				if err := s.Ready(); (err == nil) != c.ready {
					t.Errorf("ready: %v", err)
				}
			})
		})
	}
}

// TestPersonalCloses: a client's own breaker is half-open as everybody's is, and closes by itself
// without traffic. Others are asked meanwhile.
func TestPersonalCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := breaker.Defaults()
		cfg.Clients = 2
		s := breaker.NewSet(cfg, recoverytest.NewBoard(), &recoverytest.Observer{})
		a, b := s.For("a"), s.For("b")
		open := func() {
			for range cfg.MinRequests {
				ticket, _ := a.Begin(target, time.Now(), false, true)
				ticket.Place.Done(ticket, broken)
			}
			if st := a.Check(target); !st.Open || st.Ready || !b.Check(target).Ready {
				t.Fatalf("for a: %+v", st)
			}
		}
		open()
		time.Sleep(cfg.Open)
		for range cfg.Successes {
			probe, st := a.Begin(target, time.Now(), false, false)
			if _, second := a.Begin(target, time.Now(), false, false); !st.Ready || !probe.ClientProbe || probe.Probe || second.Ready {
				t.Fatalf("a probe: %+v, %+v; a second one: %+v", probe, st, second)
			}
			other, st := b.Begin(target, time.Now(), false, false)
			if !st.Ready || st.Open {
				t.Fatalf("for b: %+v", st)
			}
			other.Place.Done(other, success)
			probe.Place.Done(probe, success)
		}
		if st := a.Check(target); st.Open {
			t.Errorf("after its probes: %+v", st)
		}
		open()
		time.Sleep(2 * time.Minute)
		if st := a.Check(target); st.Open {
			t.Errorf("without traffic: %+v", st)
		}
	})
}

// TestPersonalBounded: failures of clients without number take no memory without bound.
func TestPersonalBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := breaker.Defaults()
		cfg.Clients, cfg.MinRequests = 2, 1_000_000
		s := breaker.NewSet(cfg, recoverytest.NewBoard(), &recoverytest.Observer{})
		for i := range 1000 {
			ticket, _ := s.For(fmt.Sprint(i)).Begin(target, time.Now(), false, true)
			ticket.Place.Done(ticket, broken)
		}
		if n := s.Personal(); n > 64 {
			t.Errorf("%d clients are counted apart", n)
		}
	})
}

// A breaker with a long open period stays open for it, even if an attempt that was forced through still runs.
func TestLongOpenWithForcedAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := breaker.Defaults()
		cfg.Open, cfg.OpenMax = 10*time.Minute, 10*time.Minute
		s := breaker.NewSet(cfg, recoverytest.NewBoard(), &recoverytest.Observer{})
		open(t, s)
		force := func() recovery.Ticket {
			ticket, _ := s.Begin(target, time.Now(), false, true)
			return ticket
		}
		long := force()
		time.Sleep(10*time.Minute + time.Second)
		second := force()
		second.Place.Done(second, broken) // opens it again
		time.Sleep(6 * time.Minute)
		if st := s.Check(target); !st.Open || st.Ready {
			t.Errorf("after 6 of 10 minutes: %+v", st)
		}
		long.Place.Done(long, recovery.Outcome{})
	})
}
