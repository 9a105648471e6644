package recovery_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// TestClientLeaves: whenever the client leaves, all ends, and nobody is blamed.
func TestClientLeaves(t *testing.T) {
	scripts := map[string]map[string][]step{
		"hang":     {"a": {hang}, "b": {hang}},
		"busy":     {"a": {busy}, "b": {busy}},
		"limited":  {"a": {refuse(429, envelope("Rate limit reached"), "Retry-After", "4")}, "b": {limited}},
		"stall":    {"a": {stall("Hel", time.Hour)}, "b": {hang}},
		"rescued":  {"a": {stall("Hel", time.Hour), late(2*time.Second, stall("Hel", time.Hour))}, "b": {hang}},
		"deaf":     {"a": {deaf(3 * time.Second)}, "b": {deaf(3 * time.Second)}},
		"parallel": {"a": {deaf(15 * time.Second)}, "b": {deaf(4 * time.Second)}},
	}
	for name, script := range scripts {
		for _, after := range []time.Duration{0, time.Nanosecond, 100 * time.Millisecond, time.Second, 3 * time.Second, 10 * time.Second,
			10*time.Second + 1, 12 * time.Second, 20 * time.Second, 21 * time.Second, 22 * time.Second, 40 * time.Second} {
			t.Run(fmt.Sprint(name, after), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					g := newRig(script)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					gone := time.Now().Add(after)
					time.AfterFunc(after, cancel)
					x := exchange(t, plainBody, "ab")
					f, err := g.Run(ctx, x, g)
					if time.Now().Before(gone) {
						return // all was over before
					}
					if !errors.Is(err, recovery.ErrClientGone) {
						t.Errorf("ended with %v, %v", f, err)
					}
					if over := time.Since(gone); over > 100*time.Millisecond && !strings.Contains(name, "deaf") && name != "parallel" {
						t.Errorf("took %v to notice", over)
					}
					for _, a := range g.attempts {
						if a.at.After(gone) {
							t.Errorf("attempt %d began %v later", a.Number, a.at.Sub(gone))
						}
					}
					n := len(g.attempts)
					time.Sleep(time.Minute)
					g.check(t, x)
					if len(g.attempts) != n {
						t.Error("went on without the client")
					}
				})
			})
		}
	}
}

// TestRescueLost: the client leaves in the moment in which another attempt takes
// a paused answer over.
func TestRescueLost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		g := newRig(map[string][]step{"a": {func(g *rig, c context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
			return g.answer(c, a, &answer{released: recovery.ReleasedText, sent: "Hel", pause: time.Hour, whenTaken: cancel})
		}, ok}})
		if _, err := g.run(t, ctx, exchange(t, plainBody, "a")); !errors.Is(err, recovery.ErrClientGone) {
			t.Errorf("ended with %v", err)
		}
		if len(g.attempts) != 2 {
			t.Errorf("%d attempts", len(g.attempts))
		}
	})
}

// TestPlaces: whatever happens, each place is given back exactly once, each
// answer is delivered or discarded, and nothing goes on.
func TestPlaces(t *testing.T) {
	for seed := range uint64(400) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 3))
			second := func(n int) time.Duration { return time.Duration(r.IntN(n*1000)) * time.Millisecond }
			one := func() step {
				switch r.IntN(14) {
				case 0, 1:
					return busy
				case 2:
					return reset
				case 3:
					return limited
				case 4:
					return refuse(429, envelope("Rate limit reached"), "Retry-After", fmt.Sprint(r.IntN(10)))
				case 5:
					return hang
				case 6:
					return late(second(60), busy)
				case 7:
					return late(second(60), ok)
				case 8:
					return deaf(second(60))
				case 9:
					return cut(recovery.Released(r.IntN(4)), "Hel")
				case 10:
					return stall("Hel", second(60))
				case 11:
					return refuse(400, envelope("Invalid value"))
				case 12:
					return refuse(401, envelope("Incorrect API key provided"))
				}
				return ok
			}
			script := map[string][]step{}
			for _, u := range []string{"a", "b", "c"} {
				for range 6 {
					script[u] = append(script[u], one())
				}
			}
			g := newRig(script)
			g.Config.ExtraInput = r.IntN(3)
			if seed%2 == 0 {
				g.Losers = &recovery.Losers{}
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if r.IntN(3) == 0 {
				timer := time.AfterFunc(second(60), cancel)
				defer timer.Stop()
			}
			x := exchange(t, plainBody, "abc"[:1+r.IntN(3)])
			if r.IntN(3) == 0 {
				x.Patience = time.Second + second(60)
			}
			f, err := g.Run(ctx, x, g)
			n := len(g.attempts)
			time.Sleep(5 * time.Minute)
			g.check(t, x)
			if len(g.attempts) != n {
				t.Errorf("went on after its end")
			}
			won := -g.late()["answered"]
			for _, p := range g.health.places {
				if len(p.outcomes) == 1 && p.outcomes[0].Success {
					won++
				}
			}
			if won > 0 != (f == nil && err == nil) {
				t.Errorf("ended with %v, %v; %d attempts succeeded", f, err, won)
			}
			if t.Failed() {
				t.Fatalf("seed %d: asked %s", seed, g.asked())
			}
		})
	}
}

// A client leaves while its first attempt waits for a target that cools down.
func TestLeavesWhileWaiting(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := newRig(map[string][]step{"a": {refuse(429, envelope("slow down"), "Retry-After", "40"), ok}})
		x := exchange(t, plainBody, "a")
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := g.run(t, ctx, x); err != recovery.ErrClientGone {
			t.Fatalf("the first client: %v", err)
		}
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		second := exchange(t, plainBody, "a")
		if f, err := g.Run(ctx, second, g); f != nil || err != recovery.ErrClientGone || len(second.Attempts) != 0 {
			t.Errorf("%v, %v, %d attempts", f, err, len(second.Attempts))
		}
	})
}
