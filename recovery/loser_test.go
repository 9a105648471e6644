package recovery_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// keeping is a rig that reads losers on.
func keeping(t testing.TB, scripts map[string][]step) *rig {
	g := newRig(scripts)
	g.Losers = &recovery.Losers{}
	t.Cleanup(g.Losers.Close)
	return g
}

// late counts the events that tell of losers, by how they ended.
func (g *rig) late() map[string]int {
	ended := map[string]int{}
	for _, ev := range g.observer.Events() {
		if ev.Name == recovery.EventLateAnswer {
			ended[ev.Cause]++
		}
	}
	return ended
}

// ask answers one request, and says who answered it and when.
func (g *rig) ask(t testing.TB, body, to string, streaming bool) (from string, took time.Duration) {
	t.Helper()
	x := exchange(t, body, to)
	x.Streaming, x.Key = streaming, "alice"
	f, err := g.Run(t.Context(), x, g)
	if f != nil || err != nil {
		t.Errorf("ended with %v, %v", f, err)
	}
	by, _, _ := x.Totals()
	return by.Upstream, time.Since(x.Started) - time.Second // it is delivered for one
}

// TestLoserRead: an attempt that lost is read to its end, and says whether its target is slow or dead.
func TestLoserRead(t *testing.T) {
	for _, c := range []struct {
		name  string
		a     []step
		wait  time.Duration
		ended string
		open  bool
		next  string // who answers the next request, and
		after time.Duration
	}{
		{"slow but well", []step{late(25*time.Second, ok)}, 30 * time.Second, "answered", false, "a", 25 * time.Second},
		{"ends without a byte", []step{late(25*time.Second, reset), ok}, 30 * time.Second, "failed", true, "a", 0},
		{"fails", []step{late(25*time.Second, busy), ok}, 30 * time.Second, "failed", false, "a", 0},
		{"silent for as long as it is read", []step{hang, ok}, 200 * time.Second, "given up", false, "a", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				g := keeping(t, map[string][]step{"a": c.a, "b": {ok}})
				if from, took := g.ask(t, plainBody, "ab", true); from != "b" || took != 10*time.Second {
					t.Errorf("answered by %s after %v", from, took)
				}
				time.Sleep(c.wait)
				if ended := g.late(); ended[c.ended] != 1 || len(ended) != 1 {
					t.Errorf("the loser ended as %v", ended)
				}
				if open := g.health.Set.Check(recovery.Target{Upstream: "a", Model: "m"}).Open; open != c.open && c.wait < 30*time.Second {
					t.Errorf("open: %v", open)
				}
				if n := g.observer.Count(recovery.EventBreakerOpened); (n == 1) != c.open {
					t.Errorf("%d breakers were opened", n)
				}
				if from, took := g.ask(t, plainBody, "ab", true); from != c.next || took.Round(time.Second) != c.after {
					t.Errorf("the next one is answered by %s after %v", from, took)
				}
			})
		})
	}
}

// TestLoserEnds: a loser outlives the answer of its request, but no client that leaves before, and no end of the process.
func TestLoserEnds(t *testing.T) {
	for name, leaves := range map[string]bool{"client leaves": true, "closed": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				g := keeping(t, map[string][]step{"a": {hang}, "b": {gives(func() *answer { return &answer{pause: 15 * time.Second} })}})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if leaves {
					time.AfterFunc(12*time.Second, cancel)
				}
				_, err := g.Run(ctx, exchange(t, plainBody, "ab"), g)
				cancel() // as a server does once all is answered
				time.Sleep(time.Second)
				synctest.Wait()
				if n := g.late()["given up"]; (n == 1) != leaves || (err != nil) != leaves {
					t.Errorf("%d losers ended, %v", n, err)
				}
				g.Losers.Close()
				if n := g.late()["given up"]; n != 1 {
					t.Errorf("%d losers ended", n)
				}
			})
		})
	}
}

// agents make requests one after the other, five at a time, for a while. It returns who answered, request by request
// of the primary, and how many answers took longer than the fallback and three seconds.
func (g *rig) agents(t *testing.T, streaming bool, last, fallback time.Duration) (from []string, slow int) {
	var mu sync.Mutex
	var group sync.WaitGroup
	until := time.Now().Add(last)
	for range 5 {
		group.Go(func() {
			for time.Now().Before(until) {
				by, took := g.ask(t, plainBody, "ab", streaming)
				mu.Lock()
				from = append(from, by)
				if took > fallback+3*time.Second {
					slow++
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return from, slow
}

// TestShare: of a healthy primary at a steady pace at least 95 % of the answers come, once twenty requests were made to it.
func TestShare(t *testing.T) {
	for _, c := range []struct {
		name     string
		primary  step
		fallback time.Duration
		streamed bool
	}{
		{"whole, 13 s", late(13*time.Second, ok), 2 * time.Second, false},
		{"whole, 20 s", late(20*time.Second, ok), 5 * time.Second, false},
		{"whole, 30 s", late(30*time.Second, ok), 8 * time.Second, false},
		{"whole, 100 s", late(100*time.Second, ok), 8 * time.Second, false},
		{"whole, as slow as the other", late(13*time.Second, ok), 13 * time.Second, false},
		{"a role at once", shows(recovery.SignAlive, late(13*time.Second, ok)), 2 * time.Second, true},
		{"open reasoning", shows(recovery.SignThinks, late(100*time.Second, ok)), 2 * time.Second, true},
		{"a silent stream, 13 s", late(13*time.Second, ok), 2 * time.Second, true},
		{"a silent stream, 25 s", late(25*time.Second, ok), 2 * time.Second, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				g := keeping(t, map[string][]step{"a": {c.primary}, "b": {late(c.fallback, ok)}})
				g.agents(t, c.streamed, 5*time.Minute, c.fallback)
				asked := 0
				for _, a := range g.attempts {
					if a.Target.Upstream == "a" {
						asked++
					}
				}
				from, _ := g.agents(t, c.streamed, 10*time.Minute, c.fallback)
				primary := 0
				for _, by := range from {
					if by == "a" {
						primary++
					}
				}
				if share := float64(primary) / float64(len(from)); share < 0.95 || asked > 200 {
					t.Errorf("%d of %d answers, after %d requests", primary, len(from), asked)
				}
			})
		})
	}
}

// TestDeadPrimary: after at most twelve slow answers all go to the fallback at once.
func TestDeadPrimary(t *testing.T) {
	for _, streamed := range []bool{true, false} {
		bubble(t, func(t *testing.T) {
			g := keeping(t, map[string][]step{"a": {hang}, "b": {late(time.Second, ok)}})
			from, slow := g.agents(t, streamed, 20*time.Minute, time.Second)
			if slow > 12 {
				t.Errorf("streamed %v: %d of %d answers were slow", streamed, slow, len(from))
			}
		})
	}
}

// TestProbeAnswersLate: the fallback is asked beside the probe of a half-open breaker after a second, and a probe that answers
// late closes the breaker.
func TestProbeAnswersLate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := keeping(t, map[string][]step{"a": {late(25*time.Second, ok)}, "b": {ok}})
		to := recovery.Target{Upstream: "a", Model: "m", Key: "k"}
		for range 5 {
			ticket, _ := g.health.Set.Begin(to, time.Now(), false, true)
			ticket.Place.Done(ticket, recovery.Outcome{Failure: &recovery.Failure{Diagnosis: recovery.Diagnosis{Spec: table.Spec(recovery.ServerError)}}})
		}
		time.Sleep(5 * time.Second)
		for i, want := range []time.Duration{time.Second, 0, time.Second} {
			if from, took := g.ask(t, plainBody, "ab", true); from != "b" || took != want {
				t.Errorf("request %d: answered by %s after %v", i, from, took)
			}
			if i > 0 {
				time.Sleep(25 * time.Second)
			}
		}
		if st := g.health.Set.Check(to); st.Open || g.observer.Count(recovery.EventBreakerClosed) != 1 {
			t.Errorf("after two probes: %+v", st)
		}
	})
}

// TestHang: where many requests hang at once and fresh ones are answered, all are answered soon, and so is one that
// hangs alone right afterwards.
func TestHang(t *testing.T) {
	for _, c := range []struct {
		n   int
		gap time.Duration
	}{{10, 150 * time.Millisecond}, {20, 0}, {12, 0}, {40, 10 * time.Millisecond}} {
		bubble(t, func(t *testing.T) {
			var mu sync.Mutex
			from := 0
			dying := func(g *rig, ctx context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
				mu.Lock()
				from--
				lost := from >= 0
				mu.Unlock()
				if lost {
					return hang(g, ctx, a)
				}
				return ok(g, ctx, a)
			}
			g := newRig(map[string][]step{"a": {dying}})
			incident := func(n int) {
				mu.Lock()
				from = n
				mu.Unlock()
				var group sync.WaitGroup
				for i := range n {
					group.Go(func() {
						time.Sleep(time.Duration(i) * c.gap)
						if _, took := g.ask(t, plainBody, "a", true); took > 45*time.Second {
							t.Errorf("%d, %v apart: answered after %v", c.n, c.gap, took)
						}
					})
				}
				group.Wait()
			}
			incident(c.n)
			incident(1)
		})
	}
}
