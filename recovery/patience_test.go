package recovery_test

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// refused is a connection that was never made.
func refused(_ *rig, _ context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
	return nil, fail(a, recovery.Evidence{Phase: recovery.PhaseConnect, Err: syscall.ECONNREFUSED})
}

// stranger is one to a host that never answered anybody.
func stranger(g *rig, ctx context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
	_, f := refused(g, ctx, a)
	f.NeverAnswered = true
	return nil, f
}

// until does what first does for so long, then what then does.
func until(d time.Duration, first, then step) step {
	var began time.Time
	return func(g *rig, ctx context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
		if began.IsZero() {
			began = time.Now()
		}
		if time.Since(began) < d {
			return first(g, ctx, a)
		}
		return then(g, ctx, a)
	}
}

// numbered refuses each time in the same words with other numbers, or in other words.
func numbered(status int, words string) step {
	n := 0
	return func(g *rig, ctx context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
		n++
		return refuse(status, fmt.Sprintf(`{"error":{"message":%q,"type":"server_error"}}`, strings.ReplaceAll(words, "%d", fmt.Sprint(n))))(g, ctx, a)
	}
}

// Failures that cost nothing are waited out, as long as that helps.
func TestPatience(t *testing.T) {
	down := refuse(503, envelope("The server is overloaded"))
	asked20 := refuse(503, envelope("The server is overloaded"), "Retry-After", "20")
	for _, c := range []struct {
		name        string
		a, b        []step
		to          string
		client      time.Duration // its own limit
		answered    bool
		least, most time.Duration
		attempts    int // at most
		asked       string
	}{
		{name: "an outage of 20 s", a: []step{until(20*time.Second, down, ok)}, to: "a", answered: true, least: 20 * time.Second, most: 30 * time.Second, attempts: 9},
		{name: "nothing listens for 20 s", a: []step{until(20*time.Second, refused, ok)}, to: "a", answered: true, least: 20 * time.Second, most: 30 * time.Second, attempts: 9},
		{name: "Cloudflare does not reach it for 20 s", a: []step{until(20*time.Second, refuse(530, "error code: 1033"), ok)}, to: "a", answered: true, least: 20 * time.Second, most: 30 * time.Second, attempts: 9},
		{name: "an outage without an end", a: []step{down}, to: "a", least: 29 * time.Second, most: 31 * time.Second, attempts: 10},
		{name: "a rate limit without an end", a: []step{limited}, to: "a", least: 29 * time.Second, most: 31 * time.Second, attempts: 9},
		{name: "slow refusals", a: []step{late(12*time.Second, down)}, to: "a", least: 29 * time.Second, most: 45 * time.Second, attempts: 4},
		{name: "a client that waits 20 s", a: []step{down}, to: "a", client: 20 * time.Second, least: 9 * time.Second, most: 11 * time.Second, attempts: 7},
		{name: "waits that are asked for are not counted", a: []step{asked20, asked20, asked20, until(15*time.Second, down, ok)}, to: "a", answered: true,
			least: 75 * time.Second, most: 100 * time.Second, attempts: 12},
		{name: "the same 500 with other numbers", a: []step{numbered(500, "An error occurred, request id req_%d")}, to: "a", most: 3 * time.Second, asked: "aaa"},
		{name: "other 500s", a: []step{numbered(500, "An error occurred"), numbered(500, "Something else"), numbered(500, "An error occurred"),
			numbered(500, "Something else"), numbered(500, "An error occurred"), numbered(500, "Something else"), ok}, to: "a", answered: true, most: 30 * time.Second, asked: "aaaaaaa"},
		{name: "slow 500s may have cost something", a: []step{late(3*time.Second, numbered(500, "one")), late(3*time.Second, numbered(500, "two")),
			late(3*time.Second, numbered(500, "three")), late(3*time.Second, numbered(500, "one")), late(3*time.Second, numbered(500, "two")),
			late(3*time.Second, numbered(500, "three")), ok}, to: "a", most: time.Minute, asked: "aaaaaa"},
		{name: "a host that never answered", a: []step{stranger}, to: "a", most: 2 * time.Second, asked: "aa"},
		{name: "a host that never answered, another target", a: []step{stranger}, b: []step{ok}, to: "ab", answered: true, most: time.Second, asked: "ab"},
		{name: "another target first", a: []step{down}, b: []step{until(20*time.Second, down, ok)}, to: "ab", answered: true, least: 20 * time.Second, most: 30 * time.Second, attempts: 13},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				g := newRig(map[string][]step{"a": c.a, "b": c.b})
				x := exchange(t, plainBody, c.to)
				x.Patience = c.client
				f, err := g.run(t, t.Context(), x)
				if err != nil || (f == nil) != c.answered {
					t.Errorf("ended with %v, %v", f, err)
				}
				if took := time.Since(x.Started) - time.Second; took < c.least || took > c.most+time.Second {
					t.Errorf("took %v", took)
				}
				if c.asked != "" && g.asked() != c.asked || c.attempts > 0 && len(g.attempts) > c.attempts {
					t.Errorf("asked %s", g.asked())
				}
				if f != nil && f.Repeated != strings.HasPrefix(c.name, "the same 500") {
					t.Errorf("repeated: %v", f.Repeated)
				}
			})
		})
	}
}

// Waits grow, so that an outage is not hammered; with attempts of 1 nothing is tried
// again, and without patience the number of attempts bounds all failures.
func TestPatienceSettings(t *testing.T) {
	down := refuse(503, envelope("The server is overloaded"))
	for _, c := range []struct {
		attempts, asked int
		patience        time.Duration
	}{{6, 9, 30 * time.Second}, {1, 1, 30 * time.Second}, {6, 6, 0}} {
		bubble(t, func(t *testing.T) {
			g := newRig(map[string][]step{"a": {down}})
			g.Config.Attempts, g.Config.Patience = c.attempts, c.patience
			_, _ = g.run(t, t.Context(), exchange(t, plainBody, "a"))
			if n := len(g.attempts); n > c.asked || c.patience == 0 && n != c.asked {
				t.Errorf("%d attempts of %d, patience %v", n, c.attempts, c.patience)
			}
			for i := 3; i < min(len(g.attempts)-1, 6); i++ {
				before, wait := g.attempts[i-1].at.Sub(g.attempts[i-2].at), g.attempts[i].at.Sub(g.attempts[i-1].at)
				if wait < before {
					t.Errorf("waits %v after %v", wait, before)
				}
			}
		})
	}
}

// A request that stands in line behind the cool-downs of others asks in the end.
func TestPatienceInLine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := newRig(map[string][]step{"a": {ok}})
		x := exchange(t, plainBody, "a")
		to := x.Candidates[0].Target
		ticker := time.NewTicker(500 * time.Millisecond)
		defer ticker.Stop()
		done := make(chan struct{})
		defer close(done)
		go func() {
			for {
				g.cool(to, time.Second)
				select {
				case <-ticker.C:
				case <-done:
					return
				}
			}
		}()
		time.Sleep(time.Millisecond)
		f, err := g.Run(t.Context(), x, g)
		answered(t, f, err)
		if took := time.Since(x.Started); took < 55*time.Second || took > 65*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// A 500 that other requests get now and then is none of this request: it is waited out. The
// same request once more is no other one, and a target that answers nobody fails soon.
func TestPatienceOfMany(t *testing.T) {
	another := `{"model":"m","messages":[{"role":"user","content":"another"}]}`
	for name, c := range map[string]struct {
		other    string // body of a request a moment before
		between  step   // what the target says to a third one
		answered bool
	}{
		"now and then": {another, ok, true},
		"the same":     {plainBody, ok, false},
		"for ever":     {another, refuse(400, envelope("Invalid value")), false},
	} {
		bubble(t, func(t *testing.T) {
			g := newRig(map[string][]step{"a": {busy, busy, busy, c.between, busy, busy, busy, busy, ok}})
			if f, _ := g.Run(t.Context(), exchange(t, c.other, "a"), g); f == nil || !f.Repeated {
				t.Errorf("%s: the first one: %v", name, f)
			}
			_, _ = g.Run(t.Context(), exchange(t, sampleless, "a"), g)
			if f, _ := g.Run(t.Context(), exchange(t, plainBody, "a"), g); (f == nil) != c.answered {
				t.Errorf("%s: %v, asked %s", name, f, g.asked())
			}
		})
	}
}
