package recovery_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// told is all that a run tells: its events, the response header, and what is settled.
func told(g *rig, x *recovery.Exchange, f *recovery.Failure) string {
	var b strings.Builder
	for _, ev := range g.observer.Events() {
		if ev.Name == recovery.EventTargetCooled {
			continue // the breakers' own
		}
		fmt.Fprintf(&b, "%s %s %d", ev.Name, ev.Target.Upstream, ev.Attempt)
		for _, s := range []string{string(ev.Class), ev.Strategy, string(ev.Way), ev.Cause} {
			if s != "" {
				b.WriteString(" " + s)
			}
		}
		if ev.Status != 0 {
			fmt.Fprintf(&b, " %d", ev.Status)
		}
		if ev.Wait > 0 {
			b.WriteString(" waits")
		}
		if ev.Observed {
			b.WriteString(" observed")
		}
		if ev.Compressed != nil {
			fmt.Fprintf(&b, " %v", ev.Compressed.Tiers)
		}
		if ev.Cost.Input > 0 {
			fmt.Fprintf(&b, " cost %d", ev.Cost.Input)
		}
		b.WriteString("\n")
	}
	t, answer, beyond := x.Totals()
	fmt.Fprintf(&b, "asked %s, did %v, extra %d, %s used %d, beyond %d", g.asked(), x.Actions(), x.Extra(), t.Upstream, answer.Input, beyond.Input)
	if f != nil {
		fmt.Fprintf(&b, ", failed by %s of attempt %d with %s %d, released %d", f.Target.Upstream, f.Attempt, f.Class(), f.Response.Status, f.Released)
	}
	return b.String()
}

// behind is a step whose client has some text already.
func behind(text string, s step) step {
	return func(g *rig, ctx context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
		n, f := s(g, ctx, a)
		f.Released, f.Sent = recovery.ReleasedText, text
		return n, f
	}
}

// TestTold: who looks at the events, the header and the bill can tell what happened.
func TestTold(t *testing.T) {
	small := &fitter{fitted: parsed(t, smaller)}
	known := &fitter{known: parsed(t, smaller)}
	odd := refuse(400, envelope("Invalid value: 'messages[2]' is odd"))
	text := "This is the beginning of an answer"
	after := cut(recovery.ReleasedText, text)
	for _, c := range []struct {
		name string
		a, b []step
		to   string
		mode recovery.Mode
		body string
		set  func(g *rig, x *recovery.Exchange)
		want string
	}{
		{name: "a fallback", a: []step{busy}, b: []step{ok}, to: "ab", want: `
error_recovery_attempt a 1 server_error resend 500 waits
error_recovery_attempt a 2 server_error move 500
fallback_used b 3 move
error_recovery_success b 3 move
asked aab, did [resend move], extra 0, b used 10, beyond 0`},
		{name: "another of the same rank", a: []step{busy}, b: []step{ok}, to: "ab", set: func(_ *rig, x *recovery.Exchange) { x.Candidates[1].Rank = 0 }, want: `
error_recovery_attempt a 1 server_error resend 500 waits
error_recovery_attempt a 2 server_error move 500
error_recovery_success b 3 move
asked aab, did [resend move], extra 0, b used 10, beyond 0`},
		{name: "a failure of the connection", a: []step{reset}, to: "a", set: func(g *rig, _ *recovery.Exchange) { g.Config.Attempts, g.Config.Patience = 2, 0 }, want: `
error_recovery_attempt a 1 server_error resend connection reset by peer waits
error_recovery_failed a 2 server_error resend connection reset by peer
asked aa, did [resend], extra 0,  used 0, beyond 0, failed by a of attempt 2 with server_error 0, released 0`},
		{name: "an error before the connection fails", a: []step{busy, reset}, to: "a", set: func(g *rig, _ *recovery.Exchange) { g.Config.Attempts, g.Config.Patience = 2, 0 }, want: `
error_recovery_attempt a 1 server_error resend 500 waits
error_recovery_failed a 2 server_error resend 500
asked aa, did [resend], extra 0,  used 0, beyond 0, failed by a of attempt 1 with server_error 500, released 0`},
		{name: "observed", a: []step{limited}, b: []step{ok}, to: "ab", mode: recovery.ModeObserve, want: `
error_recovery_attempt a 1 rate_limit wait 429 waits observed
asked a, did [], extra 0,  used 0, beyond 0, failed by a of attempt 1 with rate_limit 429, released 0`},
		{name: "off", a: []step{limited}, b: []step{ok}, to: "ab", mode: recovery.ModeOff, want: `
asked a, did [], extra 0,  used 0, beyond 0, failed by a of attempt 1 with rate_limit 429, released 0`},
		{name: "fitted after an overflow", a: []step{overflow, ok}, to: "a", set: func(g *rig, _ *recovery.Exchange) { g.Stages = []recovery.Stage{small} }, want: `
trajectory_compressed a 1 context_length_exceeded [t]
error_recovery_attempt a 1 context_length_exceeded fit 400
error_recovery_success a 2 fit
asked aa, did [fit], extra 0, a used 10, beyond 0`},
		{name: "fitted before", a: []step{ok}, to: "a", set: func(g *rig, _ *recovery.Exchange) { g.Stages = []recovery.Stage{known} }, want: `
trajectory_compressed a 0 known [t]
asked a, did [fit], extra 0, a used 10, beyond 0`},
		{name: "fitting observed", a: []step{ok}, to: "a", mode: recovery.ModeObserve, set: func(g *rig, _ *recovery.Exchange) { g.Stages = []recovery.Stage{known} }, want: `
trajectory_compressed a 0 known observed [t]
asked a, did [], extra 0, a used 10, beyond 0`},
		{name: "fitted as before", a: []step{ok}, to: "a", set: func(g *rig, _ *recovery.Exchange) {
			g.Stages = []recovery.Stage{known, prepares(func(x *recovery.Exchange) { x.Fitted.Sticky = true })}
		}, want: `
asked a, did [fit], extra 0, a used 10, beyond 0`},
		{name: "a parallel start", a: []step{hang}, b: []step{ok}, to: "ab", want: `
error_recovery_attempt a 1 timeout parallel
fallback_used b 2 parallel
error_recovery_success b 2 parallel
asked ab, did [parallel], extra 1, b used 10, beyond 0`},
		{name: "continued", a: []step{after, ok}, to: "a", want: `
error_recovery_attempt a 1 stream_cut resume unexpected EOF waits cost 10
stream_resumed a 2 resume ask cost 10
error_recovery_success a 2 resume cost 10
asked aa, did [resume], extra 1, a used 10, beyond 10`},
		{name: "continued in vain", a: []step{after, cut(recovery.ReleasedText, text+" and more")}, to: "a", want: `
error_recovery_attempt a 1 stream_cut resume unexpected EOF waits cost 10
stream_resumed a 2 resume ask cost 10
error_recovery_attempt a 2 stream_cut resume unexpected EOF waits cost 20
stream_resumed a 3 resume ask cost 20
error_recovery_attempt a 3 stream_cut resume unexpected EOF waits cost 30
stream_resumed a 4 resume ask cost 30
error_recovery_attempt a 4 stream_cut resume unexpected EOF waits cost 40
stream_resumed a 5 resume ask cost 40
breaker_opened a 0 stream_cut
error_recovery_failed a 5 stream_cut resume unexpected EOF cost 50
asked aaaaa, did [resume], extra 4,  used 0, beyond 50, failed by a of attempt 1 with stream_cut 0, released 2`},
		{name: "a continuation that is refused costs nothing", a: []step{after, behind(text, busy)}, to: "a", want: `
error_recovery_attempt a 1 stream_cut resume unexpected EOF waits cost 10
error_recovery_attempt a 2 server_error resume 500 waits cost 10
error_recovery_attempt a 3 server_error resume 500 waits cost 10
error_recovery_attempt a 4 server_error resume 500 waits cost 10
breaker_opened a 0 server_error
error_recovery_attempt a 5 server_error resume 500 waits cost 10
error_recovery_failed a 6 stream_cut resume unexpected EOF cost 10
asked aaaaaa, did [resume], extra 0,  used 0, beyond 10, failed by a of attempt 1 with stream_cut 0, released 2`},
		{name: "continued after a pause", a: []step{stall(text, time.Hour)}, b: []step{ok}, to: "ab", want: `
error_recovery_attempt a 1 stream_cut resume context deadline exceeded
stream_resumed b 2 resume ask cost 10
fallback_used b 2 resume cost 10
error_recovery_success b 2 resume cost 10
asked ab, did [resume], extra 1, b used 10, beyond 10`},
		{name: "flawed for good", a: []step{flawed("")}, to: "a", body: agentBody, want: `
error_recovery_attempt a 1 model_output_invalid reask the model's answer cannot be used
recovery_degraded a 2 model_output_invalid delivered as the model wrote it cost 10
asked aa, did [reask], extra 1, a used 10, beyond 10`},
		{name: "flawed behind text", a: []step{flawed(text), ok}, to: "a", body: agentBody, want: `
error_recovery_attempt a 1 model_output_invalid reask the model's answer cannot be used
error_recovery_success a 2 reask
asked aa, did [reask], extra 1, a used 10, beyond 10`},
		{name: "explained", a: []step{odd, ok}, to: "a", body: agentBody, want: `
error_recovery_attempt a 1 invalid_request explain 400
error_recovery_success a 2 explain
asked aa, did [explain], extra 0, a used 10, beyond 0`},
		{name: "an explanation that is refused", a: []step{odd, busy}, to: "a", body: agentBody, set: func(g *rig, _ *recovery.Exchange) { g.Config.Attempts, g.Config.Patience = 2, 0 }, want: `
error_recovery_attempt a 1 invalid_request explain 400
error_recovery_failed a 2 invalid_request explain 400
asked aa, did [explain], extra 0,  used 0, beyond 0, failed by a of attempt 1 with invalid_request 400, released 0`},
		{name: "an answer of the gateway's own", a: []step{ok}, to: "a", set: func(g *rig, _ *recovery.Exchange) {
			g.Stages = []recovery.Stage{prepares(func(x *recovery.Exchange) { x.Reply = &recovery.Reply{Action: "stopped"} })}
		}, want: `
asked , did [stopped], extra 0,  used 0, beyond 0`},
		{name: "no credential is asked twice", a: []step{refuse(401, envelope("Incorrect API key provided"))}, b: []step{busy}, to: "ab", set: func(g *rig, _ *recovery.Exchange) { g.Config.Attempts, g.Config.Patience = 4, 0 }, want: `
error_recovery_attempt a 1 auth move 401
error_recovery_attempt b 2 server_error resend 500 waits
error_recovery_attempt b 3 server_error resend 500 waits
error_recovery_failed b 4 server_error resend 500
asked abbb, did [move resend], extra 0,  used 0, beyond 0, failed by b of attempt 4 with server_error 500, released 0`},
		{name: "a refusal of what was edited", a: []step{odd, refuse(400, envelope("Invalid value: another"))}, to: "a", set: func(g *rig, _ *recovery.Exchange) {
			g.Stages = []recovery.Stage{prepares(func(x *recovery.Exchange) { x.Guidance = "try b" })}
		}, want: `
error_recovery_attempt a 1 invalid_request original 400
error_recovery_failed a 2 invalid_request original 400
asked aa, did [guidance original], extra 0,  used 0, beyond 0, failed by a of attempt 2 with invalid_request 400, released 0`},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				g := newRig(map[string][]step{"a": c.a, "b": c.b})
				body := c.body
				if body == "" {
					body = plainBody
				}
				x := exchange(t, body, c.to)
				if c.mode != "" {
					x.Mode = c.mode
				}
				if c.set != nil {
					c.set(g, x)
				}
				f, _ := g.run(t, context.Background(), x)
				if got := told(g, x, f); got != strings.TrimSpace(c.want) {
					t.Errorf("told\n%s\nwant\n%s", got, c.want)
				}
			})
		})
	}
}
