package breaker_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/breaker"
	"github.com/rebound-llm/rebound/recovery/classify"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/store"
	"github.com/rebound-llm/rebound/store/memory"
)

var (
	table  = classify.New(configs.UpstreamRules)
	target = recovery.Target{Upstream: "up", Model: "m", Key: "k"}
)

func failed(c recovery.Class) recovery.Outcome {
	return recovery.Outcome{Failure: &recovery.Failure{Diagnosis: recovery.Diagnosis{Spec: table.Spec(c)}}}
}

// limited is a failure whose upstream asks for a wait.
func limited(c recovery.Class, wait time.Duration) recovery.Outcome {
	o := failed(c)
	o.Failure.Signal.HasRetryAfter, o.Failure.Signal.RetryAfter = true, wait
	return o
}

var (
	success = recovery.Outcome{Success: true}
	broken  = failed(recovery.ServerError)
)

// once makes one attempt, which must be let through.
func once(t *testing.T, s *breaker.Set, to recovery.Target, o recovery.Outcome) recovery.Ticket {
	t.Helper()
	ticket, st := s.Begin(to, time.Now(), false, false)
	if !st.Ready {
		t.Fatalf("not let through: %+v", st)
	}
	ticket.Place.Done(ticket, o)
	return ticket
}

func open(t *testing.T, s *breaker.Set) {
	t.Helper()
	for range breaker.Defaults().MinRequests {
		once(t, s, target, broken)
	}
	if st := s.Check(target); !st.Open || st.Ready {
		t.Fatalf("not open: %+v", st)
	}
}

func TestOpensAtShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cases := []struct {
			outcomes string // s: success, f: failure, n: neutral, r: refused for a reason of the request
			open     bool
		}{
			{"ffff", false},       // too few to say anything
			{"fffff", true},       // all of enough
			{"sssfff", true},      // half of six
			{"ssssfff", false},    // three of seven
			{"fnfnfnfn", false},   // neutral ones do not count, either way
			{"ffffn", false},      //
			{"rrrrrrrrrr", false}, // nor do refusals speak against the target
			{"frfrf", true},       // but they make up the number
			{"frrrrfrrrr", false}, //
			{strings.Repeat("s", 100) + "ffff", false},
			{strings.Repeat("s", 100) + "fffff", true}, // five in a row, however much went well before
		}
		for i, c := range cases {
			l := &recoverytest.Observer{}
			s := breaker.NewSet(breaker.Defaults(), recoverytest.NewBoard(), l)
			for _, o := range c.outcomes {
				once(t, s, target, map[rune]recovery.Outcome{'s': success, 'f': broken, 'n': {}, 'r': failed(recovery.InvalidRequest)}[o])
			}
			if got := s.Check(target).Open; got != c.open {
				t.Errorf("case %d: %s: open is %v", i, c.outcomes, got)
			}
			if got := l.Count(recovery.EventBreakerOpened); (got == 1) != c.open {
				t.Errorf("case %d: %s: %d events", i, c.outcomes, got)
			}
			// Another key of the same upstream and model is the same target.
			other := target
			other.Key = "k2"
			if got := s.Check(other).Open; got != c.open {
				t.Errorf("case %d: %s: other key: open is %v", i, c.outcomes, got)
			}
		}
	})
}

// TestOutage: however many probes fail, an outage begins once, says since when and why, and counts as one until it ends.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, board := &recoverytest.Observer{}, recoverytest.NewBoard()
		s := breaker.NewSet(breaker.Defaults(), board, l)
		began := time.Now()
		for range 5 {
			once(t, s, target, broken)
		}
		bare := recovery.Target{Upstream: target.Upstream, Model: target.Model}
		for time.Since(began) < 3*time.Minute {
			ticket, st := s.Begin(target, time.Now(), false, false)
			time.Sleep(10 * time.Second) // the upstream hangs, or the breaker is open
			if open := s.Open(); len(open) != 1 || open[0] != bare {
				t.Fatalf("after %v the open breakers are %v", time.Since(began), open)
			}
			if st.Ready {
				ticket.Place.Done(ticket, broken)
			}
		}
		if n := l.Count(recovery.EventBreakerOpened); n != 1 {
			t.Errorf("the outage began %d times", n)
		}
		m := s.Marks()
		if len(m) != 1 || !m[0].Since.Equal(began) || m[0].Evidence != string(broken.Failure.Class()) {
			t.Errorf("marks: %+v, began %v", m, began)
		}
		for l.Count(recovery.EventBreakerClosed) == 0 {
			if time.Since(began) > time.Hour {
				t.Fatal("it does not close")
			}
			if ticket, st := s.Begin(target, time.Now(), false, false); st.Ready {
				ticket.Place.Done(ticket, success)
			}
			time.Sleep(time.Second)
		}
		if open := s.Open(); len(open) != 0 {
			t.Errorf("still open: %v", open)
		}
	})
}

func TestWindowSlides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := breaker.NewSet(breaker.Defaults(), recoverytest.NewBoard(), &recoverytest.Observer{})
		for range 4 {
			once(t, s, target, broken)
		}
		time.Sleep(11 * time.Second)
		once(t, s, target, broken)
		if s.Check(target).Open {
			t.Error("failures from before the window opened it")
		}
	})
}

func TestHalfOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &recoverytest.Observer{}
		s := breaker.NewSet(breaker.Defaults(), recoverytest.NewBoard(), l)
		open(t, s)
		st := s.Check(target)
		if wait := time.Until(st.Until); wait <= 4*time.Second || wait > 5*time.Second {
			t.Fatalf("open for %v", wait)
		}
		time.Sleep(4900 * time.Millisecond)
		if s.Check(target).Ready {
			t.Fatal("asked before the open period ended")
		}
		time.Sleep(100 * time.Millisecond)
		for i := range 2 {
			probe, st := s.Begin(target, time.Now(), false, false)
			if !st.Ready || !probe.Probe {
				t.Fatalf("probe %d: %+v %+v", i, probe, st)
			}
			if _, st := s.Begin(target, time.Now(), false, false); st.Ready || !st.Open || !st.Until.After(time.Now()) {
				t.Fatalf("a second probe beside probe %d: %+v", i, st)
			}
			if got := l.Count(recovery.EventBreakerClosed); got != 0 {
				t.Fatalf("closed before probe %d", i)
			}
			probe.Place.Done(probe, success)
		}
		if got := l.Count(recovery.EventBreakerClosed); got != 1 {
			t.Fatalf("%d events", got)
		}
		for range 3 { // any number at a time
			if ticket, st := s.Begin(target, time.Now(), false, false); !st.Ready || ticket.Probe {
				t.Fatal("not closed")
			}
		}
	})
}

// TestNeutralProbe: a probe whose client left proves nothing and keeps no place.
func TestNeutralProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &recoverytest.Observer{}
		s := breaker.NewSet(breaker.Defaults(), recoverytest.NewBoard(), l)
		open(t, s)
		time.Sleep(5 * time.Second)
		for range 5 {
			once(t, s, target, recovery.Outcome{})
		}
		if got := l.Count(recovery.EventBreakerClosed); got != 0 {
			t.Error("neutral outcomes closed it")
		}
		once(t, s, target, success)
		once(t, s, target, success)
		if got := l.Count(recovery.EventBreakerClosed); got != 1 {
			t.Error("two successes did not close it")
		}
	})
}

func TestOpenPeriodDoubles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := breaker.NewSet(breaker.Defaults(), recoverytest.NewBoard(), &recoverytest.Observer{})
		open(t, s)
		for i, want := range []time.Duration{10, 15, 15, 15} {
			time.Sleep(time.Until(s.Check(target).Until))
			once(t, s, target, success) // one is not enough, and a failure forgets it
			once(t, s, target, broken)
			got := time.Until(s.Check(target).Until)
			if want *= time.Second; got > want || got < want-time.Second/10 {
				t.Errorf("period %d lasts %v, want %v", i, got, want)
			}
		}
		// What comes late of before the opening changes nothing.
		until := s.Check(target).Until
		late, _ := s.Begin(target, time.Now(), false, true)
		late.Place.Done(late, broken)
		if got := s.Check(target).Until; !got.Equal(until) {
			t.Error("a failure while open prolonged it")
		}
		// Without traffic it closes by itself, once its time on the board is over.
		time.Sleep(2 * time.Minute)
		if ticket, st := s.Begin(target, time.Now(), false, false); !st.Ready || ticket.Probe {
			t.Errorf("still half-open: %+v", st)
		}
	})
}

// TestShared: what one replica finds out the other knows, through a real store.
func TestShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memory.New(memory.Defaults())
		boards := []string{breaker.BoardBreakers, breaker.BoardCooldowns}
		var sets [2]*breaker.Set
		for i := range sets {
			m := store.NewMirror(shared, boards, 300*time.Millisecond)
			defer m.Stop()
			sets[i] = breaker.NewSet(breaker.Defaults(), m, &recoverytest.Observer{})
		}
		synctest.Wait()
		open(t, sets[0])
		cool := recovery.Target{Upstream: "up", Model: "other", Key: "k"}
		once(t, sets[0], cool, limited(recovery.RateLimit, 20*time.Second))
		time.Sleep(time.Second)
		if !sets[1].Check(target).Open {
			t.Error("the other replica does not know of the breaker")
		}
		if st := sets[1].Check(cool); !st.Cooling || time.Until(st.Until) > 19*time.Second || time.Until(st.Until) < 18*time.Second {
			t.Errorf("the other replica does not know of the cool-down: %+v", st)
		}
		other := cool
		other.Key = "k2"
		if st := sets[1].Check(other); !st.Ready {
			t.Errorf("another key cools, too: %+v", st)
		}
		time.Sleep(4 * time.Second)
		once(t, sets[1], target, success)
		once(t, sets[1], target, success)
		time.Sleep(time.Second)
		if !sets[0].Check(target).Ready {
			t.Error("the first replica does not know that it was closed")
		}
	})
}

// TestHostileBoard: whatever stands on a shared board, no target is closed for long.
func TestHostileBoard(t *testing.T) {
	century := 100 * 365 * 24 * time.Hour
	values := []string{"", " ", "x", "1", "1 ", " 1", "1 x", "-1 -1", "1 -9223372036854775808",
		"9223372036854775807 9223372036854775807", "-9223372036854775808 9223372036854775807",
		"99999999999999999999999 1", "9999999999999 5000", "9999999999999 9999999999999", "NaN NaN", "1 2 3", "\x00\xff"}
	for _, v := range values {
		t.Run(strconv.Quote(v), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := recoverytest.NewBoard()
				s := breaker.NewSet(breaker.Defaults(), b, &recoverytest.Observer{})
				b.Post(breaker.BoardBreakers, store.Field{Name: "up/m", Value: []byte(v), Until: time.Now().Add(century)}, false)
				time.Sleep(time.Minute)
				if st := s.Check(target); !st.Ready {
					t.Fatalf("closed after a minute: %+v", st)
				}
				for range 2 {
					once(t, s, target, success)
				}
				for range 2 {
					if _, st := s.Begin(target, time.Now(), false, false); !st.Ready {
						t.Fatalf("not closed by successes: %+v", st)
					}
				}
			})
		})
	}
	for _, v := range []string{"", "rate_limit 1000 2000"} {
		t.Run("cool-down "+v, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := recoverytest.NewBoard()
				s := breaker.NewSet(breaker.Defaults(), b, &recoverytest.Observer{})
				b.Post(breaker.BoardCooldowns, store.Field{Name: target.String(), Value: []byte(v), Until: time.Now().Add(century)}, true)
				time.Sleep(2 * breaker.Defaults().CooldownMax)
				if st := s.Check(target); !st.Ready {
					t.Errorf("still cooling: %+v", st)
				}
			})
		})
	}
}

func TestResendBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := breaker.NewSet(breaker.Defaults(), recoverytest.NewBoard(), &recoverytest.Observer{})
		resends := func() (n int) {
			var list []recovery.Ticket
			for {
				ticket, st := s.Begin(target, time.Now(), true, false)
				if !st.Ready {
					if st.Open || st.Cooling || !st.Until.After(time.Now()) {
						t.Errorf("refused with %+v", st)
					}
					break
				}
				list = append(list, ticket)
			}
			for _, ticket := range list {
				ticket.Place.Done(ticket, recovery.Outcome{})
			}
			return len(list)
		}
		if got := resends(); got != 3 {
			t.Errorf("%d at a time on an idle target, want 3", got)
		}
		for range 100 {
			s.Begin(target, time.Now(), false, false)
		}
		// 20 % of all that is in flight, themselves included: n = (100+n)/5.
		if got := resends(); got < 20 || got > 25 {
			t.Errorf("%d beside 100 in flight, want 20 to 25", got)
		}
		if _, st := s.Begin(target, time.Now(), false, false); !st.Ready {
			t.Error("the budget is not for others")
		}
		if ticket, st := s.Begin(target, time.Now(), true, true); !st.Ready || !ticket.Resend {
			t.Error("force")
		}
	})
}

// TestBounded: clients may invent model names.
func TestBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := breaker.NewSet(breaker.Defaults(), recoverytest.NewBoard(), &recoverytest.Observer{})
		held, _ := s.Begin(target, time.Now(), false, false)
		for i := range 10_000 {
			to := recovery.Target{Upstream: "up", Model: fmt.Sprint("invented", i), Key: "k"}
			s.Check(to)
			once(t, s, to, limited(recovery.RateLimit, time.Minute))
		}
		if targets, keys := s.Sizes(); targets > breaker.MaxTargets || keys > breaker.MaxTargets {
			t.Errorf("%d targets, %d keys", targets, keys)
		}
		if n, _, _ := s.UnderWay(); n != 1 {
			t.Errorf("%d under way: what is in use was dropped", n)
		}
		held.Place.Done(held, success)
		if n, _, _ := s.UnderWay(); n != 0 {
			t.Errorf("%d under way", n)
		}
	})
}

func TestReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := breaker.NewSet(breaker.Defaults(), recoverytest.NewBoard(), &recoverytest.Observer{})
		fail := func(n int) {
			for i := range n {
				ticket, _ := s.Begin(recovery.Target{Upstream: fmt.Sprint("u", i%3), Model: "m"}, time.Now(), false, true)
				ticket.Place.Done(ticket, broken)
			}
		}
		if err := s.Ready(); err != nil {
			t.Error(err)
		}
		fail(19)
		if err := s.Ready(); err != nil {
			t.Errorf("after 19: %v", err)
		}
		fail(1)
		if s.Ready() == nil {
			t.Error("ready after 20 failures in a row")
		}
		ticket, _ := s.Begin(target, time.Now(), false, false)
		ticket.Place.Done(ticket, failed(recovery.InvalidRequest)) // says nothing
		if s.Ready() == nil {
			t.Error("a refusal made it ready")
		}
		time.Sleep(31 * time.Second)
		if err := s.Ready(); err != nil {
			t.Errorf("a quiet gateway: %v", err)
		}
		fail(1)
		if s.Ready() == nil {
			t.Error("ready while nothing works")
		}
		once(t, s, target, success)
		if err := s.Ready(); err != nil {
			t.Errorf("after a success: %v", err)
		}
	})
}

// TestBalance: whatever happens in whatever order, nothing stays under way.
func TestBalance(t *testing.T) {
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			s := breaker.NewSet(breaker.Defaults(), recoverytest.NewBoard(), &recoverytest.Observer{})
			outcomes := []recovery.Outcome{{}, success, success, broken, failed(recovery.Timeout), failed(recovery.Auth),
				failed(recovery.InvalidRequest), limited(recovery.RateLimit, time.Second), limited(recovery.RateLimit, 0), {Failure: &recovery.Failure{}}}
			var held []recovery.Ticket
			done := func() {
				i := r.IntN(len(held))
				ticket := held[i]
				held = append(held[:i], held[i+1:]...)
				ticket.Place.Done(ticket, outcomes[r.IntN(len(outcomes))])
			}
			for range 2000 {
				switch n := r.IntN(10); {
				case n < 5:
					to := recovery.Target{Upstream: "u", Model: fmt.Sprint(r.IntN(3)), Key: fmt.Sprint(r.IntN(2))}
					if ticket, st := s.Begin(to, time.Now(), r.IntN(3) == 0, r.IntN(8) == 0); st.Ready {
						held = append(held, ticket)
					}
				case n < 9 && len(held) > 0:
					done()
				default:
					time.Sleep(time.Duration(r.IntN(2000)) * time.Millisecond)
				}
				if n, _, _ := s.UnderWay(); n != len(held) {
					t.Fatalf("seed %d: %d under way, want %d", seed, n, len(held))
				}
			}
			for len(held) > 0 {
				done()
			}
			if a, b, c := s.UnderWay(); a+b+c != 0 {
				t.Errorf("seed %d: %d requests, %d resends, %d probes stay under way", seed, a, b, c)
			}
		})
	}
}

// TestConcurrent is for the race detector.
func TestConcurrent(t *testing.T) {
	m := store.NewMirror(memory.New(memory.Defaults()), []string{breaker.BoardBreakers, breaker.BoardCooldowns}, 0)
	defer m.Stop()
	s := breaker.NewSet(breaker.Defaults(), m, &recoverytest.Observer{})
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 2))
			for range 300 {
				to := recovery.Target{Upstream: "u", Model: fmt.Sprint(r.IntN(3)), Key: "k"}
				s.Check(to)
				if ticket, st := s.Begin(to, time.Now(), r.IntN(2) == 0, r.IntN(4) == 0); st.Ready {
					ticket.Place.Done(ticket, []recovery.Outcome{{}, success, broken, limited(recovery.RateLimit, time.Millisecond)}[r.IntN(4)])
				}
				_ = s.Ready()
				s.Reconfigure(breaker.Defaults())
			}
		})
	}
	wg.Wait()
	if err := m.Sync(context.Background()); err != nil {
		t.Error(err)
	}
	if a, b, c := s.UnderWay(); a+b+c != 0 {
		t.Errorf("%d requests, %d resends, %d probes stay under way", a, b, c)
	}
}

func TestValidate(t *testing.T) {
	if err := breaker.Defaults().Validate(); err != nil {
		t.Error(err)
	}
	if (breaker.Config{ResendShare: 2}).Validate() == nil {
		t.Error("an empty configuration is valid")
	}
}
