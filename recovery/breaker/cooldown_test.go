package breaker_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/breaker"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/store"
)

func TestCooldown(t *testing.T) {
	affordable := failed(recovery.QuotaExhausted)
	affordable.Failure.Facts.AffordableOutput = 3000
	cases := []struct {
		name   string
		o      recovery.Outcome
		client bool
		want   time.Duration
	}{
		{"hint", limited(recovery.RateLimit, 7*time.Second), false, 7 * time.Second},
		{"no hint", failed(recovery.RateLimit), false, time.Second},
		{"hint of nothing", limited(recovery.RateLimit, 0), false, 0},
		{"negative hint", limited(recovery.RateLimit, -time.Hour), false, 0},
		{"absurd", limited(recovery.RateLimit, 114*time.Hour), false, time.Hour},
		{"quota", failed(recovery.QuotaExhausted), false, 5 * time.Minute},
		{"quota with hint", limited(recovery.QuotaExhausted, 10*time.Minute), false, 10 * time.Minute},
		{"quota for a smaller request", affordable, false, 0},
		{"auth", failed(recovery.Auth), false, 5 * time.Minute},
		{"permission", failed(recovery.Permission), false, 0},
		{"overloaded", failed(recovery.Overloaded), false, 0},
		{"overloaded with hint", limited(recovery.Overloaded, time.Minute), false, time.Minute},
		{"server error with hint of nothing", limited(recovery.ServerError, 0), false, 0},
		{"client's, overloaded with hint", limited(recovery.Overloaded, time.Minute), true, time.Minute},
		{"a request's fault, with hint", limited(recovery.InvalidRequest, time.Minute), false, 0},
		{"an unknown one's, with hint", limited(recovery.Unknown, time.Minute), false, 0},
		{"client's rate limit", limited(recovery.RateLimit, 7*time.Second), true, 7 * time.Second},
		{"client's quota", failed(recovery.QuotaExhausted), true, 0},
		{"client's quota with hint", limited(recovery.QuotaExhausted, time.Minute), true, 0},
		{"client's auth", failed(recovery.Auth), true, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &recoverytest.Observer{}
				s := breaker.NewSet(breaker.Defaults(), recoverytest.NewBoard(), l)
				c.o.Client = c.client
				once(t, s, target, c.o)
				st := s.Check(target)
				if c.want == 0 {
					if !st.Ready || l.Count(recovery.EventTargetCooled) != 0 {
						t.Fatalf("cools: %+v", st)
					}
					return
				}
				if got := time.Until(st.Until); !st.Cooling || got != c.want || l.Count(recovery.EventTargetCooled) != 1 {
					t.Fatalf("cools for %v, want %v", got, c.want)
				}
				time.Sleep(c.want - time.Millisecond)
				if s.Check(target).Ready {
					t.Error("ready too early")
				}
				time.Sleep(time.Millisecond)
				if !s.Check(target).Ready {
					t.Error("not ready in time")
				}
			})
		})
	}
}

// What is shown of a cool-down is when it began, when it ends and why, and nothing that
// somebody else wrote on the board.
func TestCooldownMarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, board := time.Now(), recoverytest.NewBoard()
		s := breaker.NewSet(breaker.Defaults(), board, &recoverytest.Observer{})
		once(t, s, target, limited(recovery.RateLimit, 7*time.Second))
		time.Sleep(2 * time.Second)
		want := recovery.Mark{Target: target.String(), Kind: recovery.MarkCooldown, Item: "cool-down", Evidence: "rate_limit", Since: began, Until: began.Add(7 * time.Second)}
		if got := s.Marks(); len(got) != 1 || !got[0].Since.Equal(began) || !got[0].Until.Equal(want.Until) || got[0].Evidence != want.Evidence {
			t.Errorf("%+v, want %+v", got, want)
		}
		for value, want := range map[string]recovery.Mark{
			"rate_limit":                      {Evidence: "rate_limit"}, // of a version before
			"rate_limit x":                    {Evidence: "rate_limit"},
			"rate_limit -5":                   {Evidence: "rate_limit"},
			"rate_limit 9223372036854775807":  {Evidence: "rate_limit"},
			"<b> 1000":                        {Since: time.UnixMilli(1000)},
			strings.Repeat("a", 50) + " 1000": {Since: time.UnixMilli(1000)},
			"":                                {},
		} {
			board.Post(breaker.BoardCooldowns, store.Field{Name: target.String(), Value: []byte(value), Until: began.Add(time.Minute)}, false)
			if got := s.Marks(); len(got) != 1 || got[0].Evidence != want.Evidence || !got[0].Since.Equal(want.Since) {
				t.Errorf("%q: %+v, want %+v", value, got, want)
			}
		}
	})
}

// TestCooldownMax: a shorter hint does not end a longer cool-down.
func TestCooldownMax(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := breaker.NewSet(breaker.Defaults(), recoverytest.NewBoard(), &recoverytest.Observer{})
		a, _ := s.Begin(target, time.Now(), false, false)
		b, _ := s.Begin(target, time.Now(), false, false)
		a.Place.Done(a, limited(recovery.RateLimit, 30*time.Second))
		b.Place.Done(b, limited(recovery.RateLimit, 2*time.Second))
		if got := time.Until(s.Check(target).Until); got != 30*time.Second {
			t.Errorf("cools for %v", got)
		}
	})
}

// TestRamp: when a cool-down ends one request starts, and twice as many each half second.
func TestRamp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		board := recoverytest.NewBoard()
		first := breaker.NewSet(breaker.Defaults(), board, &recoverytest.Observer{})
		for _, cooldown := range []time.Duration{10 * time.Second, 2 * time.Second} { // the next one begins anew
			once(t, first, target, limited(recovery.RateLimit, cooldown))
			time.Sleep(cooldown)
			started := 0
			for began := time.Now(); started < 40; {
				ticket, st := first.Begin(target, time.Now(), false, false)
				if st.Ready {
					started++
					ticket.Place.Done(ticket, recovery.Outcome{})
					continue
				}
				if passed := time.Since(began); started != 1<<(passed/(500*time.Millisecond)) {
					t.Errorf("%d started after %v", started, passed)
				}
				if wait := time.Until(st.Until); wait <= 0 || wait > time.Second || !st.Cooling {
					t.Errorf("look again in %v", wait)
				}
				time.Sleep(time.Until(st.Until))
			}
			time.Sleep(10 * time.Second)
			for range 100 {
				if _, st := first.Begin(target, time.Now(), false, false); !st.Ready {
					t.Fatal("ramps for ever")
				}
			}
		}
	})
}

// TestRampOfReplica: a replica that had no request during the cool-down ramps as well.
func TestRampOfReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		board := recoverytest.NewBoard()
		once(t, breaker.NewSet(breaker.Defaults(), board, &recoverytest.Observer{}), target, limited(recovery.RateLimit, 10*time.Second))
		time.Sleep(10*time.Second + time.Millisecond)
		s := breaker.NewSet(breaker.Defaults(), board, &recoverytest.Observer{})
		for i := range 2 {
			if _, st := s.Begin(target, time.Now(), false, false); st.Ready != (i == 0) {
				t.Errorf("request %d: %+v", i, st)
			}
		}
	})
}
