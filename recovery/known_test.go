package recovery_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// A credential without quota is asked once in half a minute, however often its client asks;
// another credential, and another model, is not held back by it.
func TestKnownQuota(t *testing.T) {
	quota := refuse(429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`)
	for name, c := range map[string]struct {
		script []step
		client bool // the client's own credential
		status int
		asked  string
	}{
		"the client's key":   {[]step{quota, quota, quota, ok}, true, 429, "aaaa"},
		"the gateway's key":  {[]step{quota, quota, quota, ok}, false, 429, "aaaa"},
		"a limit, not quota": {[]step{refuse(429, envelope("Rate limit reached"), "Retry-After", "120")}, true, 429, "aaaaaaaaaaaaaaaaaaaa"},
		"too much for the rest": {[]step{refuse(402, envelope("This request requires more credits, or fewer max_tokens. You requested up to 65536 tokens, but can only afford 3000."))},
			true, 402, "aaaaaaaaaaaaaaaaaaaa"},
		"words in a bad call": {[]step{refuse(400, envelope("You exceeded your current quota"))}, true, 400, "aaaaaaaaaaaaaaaaaaaa"},
	} {
		bubble(t, func(t *testing.T) {
			g := newRig(map[string][]step{"a": c.script})
			statuses := map[int]int{}
			for range 20 { // for 100 s
				x := exchange(t, plainBody, "a")
				x.Candidates[0].Client = c.client
				f, err := g.Run(t.Context(), x, g)
				if err != nil {
					t.Fatal(err)
				}
				if f != nil {
					statuses[f.Response.Status]++
				}
				time.Sleep(5 * time.Second)
			}
			if c.asked == "aaaa" { // what the first one after the last refusal found out holds for all
				if n := len(g.asked()); n < 4 || statuses[429] != 18 {
					t.Errorf("%s: asked %s, %v", name, g.asked(), statuses)
				}
				return
			}
			if g.asked() != c.asked && name != "a limit, not quota" || statuses[c.status] != 20 {
				t.Errorf("%s: asked %s, %v", name, g.asked(), statuses)
			}
		})
	}
	// An answer that breaks has shown that the quota is there again: it may be asked for once more.
	bubble(t, func(t *testing.T) {
		g := newRig(map[string][]step{"a": {quota, empty, ok}})
		if f, _ := g.Run(t.Context(), exchange(t, plainBody, "a"), g); f == nil {
			t.Fatal("answered")
		}
		time.Sleep(31 * time.Second)
		f, err := g.Run(t.Context(), exchange(t, plainBody, "a"), g)
		answered(t, f, err)
	})
	// A request that tests the quota blocks others only until it is clear that it is not refused, not until its answer ends.
	bubble(t, func(t *testing.T) {
		g := newRig(map[string][]step{"a": {quota, late(2*time.Minute, ok), ok}})
		if f, _ := g.Run(t.Context(), exchange(t, plainBody, "a"), g); f == nil {
			t.Fatal("answered")
		}
		time.Sleep(31 * time.Second)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			f, err := g.Run(t.Context(), exchange(t, plainBody, "a"), g)
			answered(t, f, err)
		}()
		time.Sleep(5 * time.Second)
		f, err := g.Run(t.Context(), exchange(t, plainBody, "a"), g)
		answered(t, f, err)
		<-ended
	})
	bubble(t, func(t *testing.T) {
		g := newRig(map[string][]step{"a": {quota, ok}, "b": {ok}})
		first := exchange(t, plainBody, "a")
		first.Candidates[0].Client = true
		if f, _ := g.Run(t.Context(), first, g); f == nil {
			t.Fatal("answered")
		}
		again := exchange(t, plainBody, "a")
		if f, _ := g.Run(t.Context(), again, g); f == nil || len(again.Attempts) != 0 || f.Class() != recovery.QuotaExhausted {
			t.Errorf("%v after %d attempts", f, len(again.Attempts))
		}
		other := exchange(t, plainBody, "a")
		other.Candidates[0].Key = "another"
		f, err := g.Run(t.Context(), other, g)
		answered(t, f, err)
		moved := exchange(t, plainBody, "ab")
		f, err = g.Run(t.Context(), moved, g)
		answered(t, f, err)
		if by, _, _ := moved.Totals(); by.Upstream != "b" {
			t.Errorf("answered by %v", by)
		}
		busy := newRig(map[string][]step{"a": {quota}, "b": {refuse(503, envelope("overloaded"))}})
		if f, _ := busy.Run(t.Context(), exchange(t, plainBody, "a"), busy); f == nil {
			t.Fatal("answered")
		}
		if f, _ := busy.Run(t.Context(), exchange(t, plainBody, "ab"), busy); f == nil || f.Response.Status != 503 {
			t.Errorf("the fallback is overloaded, and the client is not to try again: %v", f)
		}
		plain := exchange(t, plainBody, "a")
		plain.Mode = recovery.ModeOff
		f, err = g.Run(t.Context(), plain, g)
		answered(t, f, err) // a plain proxy asks
	})
}

// A quota that another request finds used up while a cut answer is continued does not begin that answer again: the client
// has its beginning.
func TestKnownQuotaAfterText(t *testing.T) {
	quota := refuse(429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`)
	for name, c := range map[string]struct {
		job   *recovery.Job
		to    string
		asked string
		ways  []recovery.Way
	}{
		"continued elsewhere":     {nil, "ab", "aab", []recovery.Way{recovery.WayAsk}},
		"nobody else":             {nil, "a", "aa", nil},
		"the server still has it": {&recovery.Job{ID: "1"}, "ab", "aaa", []recovery.Way{recovery.WayListen}},
	} {
		bubble(t, func(t *testing.T) {
			first := func(g *rig, ctx context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
				return g.answer(ctx, a, &answer{released: recovery.ReleasedText, sent: "Hel", breaks: true, job: c.job})
			}
			g := newRig(map[string][]step{"a": {first, quota, ok}, "b": {ok}})
			x := exchange(t, plainBody, c.to)
			var f *recovery.Failure
			var err error
			done := make(chan struct{})
			go func() {
				f, err = g.Run(t.Context(), x, g)
				close(done)
			}()
			time.Sleep(1100 * time.Millisecond) // the answer has broken, and its continuation waits
			if other, _ := g.Run(t.Context(), exchange(t, plainBody, "a"), g); other == nil || other.Class() != recovery.QuotaExhausted {
				t.Fatalf("%s: the other request ended with %v", name, other)
			}
			<-done
			if c.to == "a" {
				if err != nil || f == nil || f.Class() != recovery.StreamCut || f.Released != recovery.ReleasedText {
					t.Errorf("%s: ended with %v, %v", name, f, err)
				}
			} else {
				answered(t, f, err)
			}
			var ways []recovery.Way
			for _, a := range g.attempts[2:] {
				if a.Resume == nil || a.Resume.Sent != "Hel" {
					t.Errorf("%s: attempt %d at %s begins the answer again", name, a.Number, a.Target)
					continue
				}
				ways = append(ways, a.Resume.Way)
			}
			if g.asked() != c.asked || !slices.Equal(ways, c.ways) {
				t.Errorf("%s: asked %s by %v, want %s by %v", name, g.asked(), ways, c.asked, c.ways)
			}
		})
	}
}
