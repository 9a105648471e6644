package telemetry

import (
	"cmp"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
)

// The outcomes of a request for its client.
const (
	outcomeOK        = labelOK
	outcomeFallback  = "fallback"
	outcomeRecovered = "recovered"
	outcomeFailed    = "failed"
	outcomeRejected  = "rejected"
	outcomeCanceled  = labelGone
)

var outcomes = []string{outcomeOK, outcomeFallback, outcomeRecovered, outcomeFailed, outcomeRejected, outcomeCanceled}

// statusNames are indexed by the first digit of a status; 0 means that no status was sent.
var statusNames = [...]string{labelNone, "1xx", "2xx", "3xx", "4xx", "5xx"}

// usual are combinations that occur in every deployment; they have series from the start.
var usual = [...][2]string{
	{"2xx", outcomeOK}, {"2xx", outcomeFallback}, {"2xx", outcomeRecovered}, {"2xx", outcomeFailed},
	{"4xx", outcomeFailed}, {"4xx", outcomeRejected}, {"4xx", outcomeCanceled}, {"5xx", outcomeFailed},
}

// kinds is the number of token kinds in a usage. Input includes CacheRead if the upstream reports it
// so, as OpenAI does; output includes reasoning.
const kinds = 5

var kindNames = [kinds]string{"input", "output", "cache_read", "cache_write", "reasoning"}

func byKind(u *recovery.Usage) [kinds]int {
	return [kinds]int{u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Reasoning}
}

// each calls f for every kind with a count above zero.
func each(u *recovery.Usage, f func(kind string, tokens float64)) {
	for k, tokens := range byKind(u) {
		if tokens > 0 {
			f(kindNames[k], float64(min(tokens, saneTokens)))
		}
	}
}

// saneTokens limits what one report may add: the numbers come from upstreams, and a wrong value stays
// in a counter for good.
const saneTokens = 1 << 30

func sane(n int) float64 { return float64(min(max(n, 0), saneTokens)) }

// count updates the metrics for an event.
func (m *metrics) count(ev *recovery.Event) {
	n := m.names.Load()
	switch ev.Name {
	case recovery.EventRequestDone:
		m.done(n, ev)
	case recovery.EventRecoveryAttempt:
		m.recoveries.add(1, n.strategy(ev.Strategy), observed(ev, "attempted"))
	case recovery.EventRecoverySuccess, recovery.EventRecoveryFailed:
		m.recoveries.add(1, n.strategy(ev.Strategy), strings.TrimPrefix(string(ev.Name), "error_recovery_"))
	case recovery.EventFallbackUsed:
		m.fallbacks.add(1, m.label(ev.Model), n.upstream(ev.Target.Upstream))
	case recovery.EventTargetCooled:
		m.cooldowns.add(1, n.upstream(ev.Target.Upstream), n.upstreamKey(ev.Target), n.class(ev.Class))
	case recovery.EventBreakerOpened, recovery.EventBreakerClosed:
		if ev.Failure != nil {
			m.sessions.add(1, strings.TrimPrefix(string(ev.Name), "breaker_"))
		}
	case recovery.EventLateAnswer:
		m.aside(n, ev)
	case recovery.EventPlanMade:
		m.aside(n, ev)
		if p := ev.Plan; p != nil {
			m.plans.add(1, string(p.Strategy), string(p.Band), p.Source)
		}
	case recovery.EventApproval:
		m.approvals.add(1, ev.Cause)
	case recovery.EventCompressed:
		switch c := ev.Compressed; {
		case c == nil:
		case ev.Observed:
			m.compressions.add(1, "observed")
		default:
			reason := "known"
			if ev.Cause == string(recovery.ContextLengthExceeded) {
				reason = "overflow"
			}
			m.compressions.add(1, reason)
			m.compressed.add(sane(c.Before), "before")
			m.compressed.add(sane(c.After), "after")
		}
	case recovery.EventTruncated:
		m.truncated.add(1)
	case recovery.EventCallRepaired:
		for _, r := range ev.Repairs {
			m.repairs.add(1, clean(r.Rule, maxName))
		}
	case recovery.EventToolFailure:
		if ev.Failure != nil {
			m.failures.add(1, string(ev.Failure.Category))
		}
	case recovery.EventLoop:
		if ev.Loop != nil {
			m.loops.add(1, string(ev.Loop.Kind))
		}
	case recovery.EventGuidance:
		if ev.Advice != nil {
			m.guidance.add(1, about(ev.Advice), result(ev))
		}
	case recovery.EventGuidanceOutcome:
		if ev.Advice != nil && ev.Mode != recovery.ModeObserve { // in observe mode no model got a note
			arm := "guided"
			if ev.Advice.HeldOut {
				arm = "held_out"
			}
			m.outcomes.add(1, arm, ev.Cause)
		}
	case recovery.EventGuidanceJudged:
		arm := "none"
		if ev.Strategy != "" {
			arm = "note"
		}
		m.judged.add(1, arm, ev.Cause)
	}
}

func about(a *recovery.Advice) string {
	if a.Category != "" {
		return string(a.Category)
	}
	return "loop_" + string(a.Loop)
}

func result(ev *recovery.Event) string {
	switch {
	case ev.Advice.HeldOut:
		return "held_out"
	case ev.Advice.Withheld:
		return "withheld"
	}
	return observed(ev, "injected")
}

// observed returns "observed" if the event was only observed, or else done.
func observed(ev *recovery.Event, done string) string {
	if ev.Observed {
		return "observed"
	}
	return done
}

// done counts one request. It runs for every request.
func (m *metrics) done(n *names, ev *recovery.Event) {
	out, status := ended(ev), 0
	if ev.Status >= 100 && ev.Status < 600 {
		status = ev.Status / 100
	}
	if ev.Class == "" && ev.Status < 400 && ev.Attempt > 0 && m.label(ev.Model) == labelOther {
		m.meet(ev.Model)
	}
	model, upstream := m.label(ev.Model), n.upstream(ev.Target.Upstream)
	m.requests.add(1, model, cmp.Or(ev.Format, labelOther), statusNames[status], out)
	if out != outcomeRejected {
		m.duration.add(ev.Duration.Seconds(), model)
	}
	if ev.Streamed && ev.TTFB > 0 {
		m.ttfb.add(ev.TTFB.Seconds(), model)
	}
	for i := range ev.Attempts {
		a := &ev.Attempts[i]
		m.attempts.add(1, n.upstream(a.Target.Upstream), n.attempt(a.Class, out))
	}
	if len(ev.Attempts) == 0 && ev.Attempt > 0 {
		m.attempts.add(1, upstream, n.attempt(ev.Class, out))
	}
	each(&ev.Usage, func(kind string, tokens float64) { m.tokens.add(tokens, kind, upstream) })
	if billed := ev.Usage.Billed() + ev.Cost.Billed(); billed > 0 {
		m.billed.add(min(billed, saneTokens), upstream)
	}
	m.beyond(n, ev, ev.Extra)
	if n.keys[ev.Key] {
		m.keyRequests.add(1, ev.Key, out)
		if out == outcomeRejected && (strings.HasPrefix(ev.Rule, "key_") || strings.HasPrefix(ev.Rule, "total_") || strings.HasPrefix(ev.Rule, "no_")) {
			m.keyRefused.add(1, ev.Key, ev.Rule) // the gateway's own codes: a small set
		}
		used := ev.Usage.Add(ev.Cost)
		m.pay(ev, &used)
	}
}

// aside counts usage outside of a request's answer.
func (m *metrics) aside(n *names, ev *recovery.Event) {
	m.beyond(n, ev, ev.Spent)
	if n.keys[ev.Key] {
		m.pay(ev, &ev.Cost)
	}
}

// pay counts the usage of a gateway key.
func (m *metrics) pay(ev *recovery.Event, used *recovery.Usage) {
	each(used, func(kind string, tokens float64) { m.keyTokens.add(tokens, ev.Key, kind) })
	if ev.Spent > 0 {
		m.keySpent.add(min(ev.Spent, saneTokens), ev.Key)
	}
}

// beyond counts usage of recovery beyond an answer.
func (m *metrics) beyond(n *names, ev *recovery.Event, money float64) {
	each(&ev.Cost, func(kind string, tokens float64) { m.extra.add(tokens, kind) })
	tokens := ev.Cost.Input + ev.Cost.Output
	if tokens <= 0 && !(money > 0) {
		return
	}
	model, key := m.label(ev.Model), labelNone
	if n.keys[ev.Key] {
		key = ev.Key
	}
	money = min(max(money, 0), saneTokens)
	if money > 0 {
		m.recovery.add(money, model, key)
	}
	if spend := m.spend.Load(); spend != nil {
		(*spend)(model, key, min(max(tokens, 0), saneTokens), money)
	}
}

// ended returns the outcome of a request for its client.
func ended(ev *recovery.Event) string {
	switch {
	case ev.Status == statusClientGone:
		return outcomeCanceled
	case ev.Attempt == 0: // also the answer of a stopped session
		return outcomeRejected
	case ev.Class == "" && ev.Status < 400 && ev.Recovery == "" && ev.Fallback:
		return outcomeFallback
	case ev.Class == "" && ev.Status < 400 && ev.Recovery == "":
		return outcomeOK
	case ev.Class == "" && ev.Status < 400:
		return outcomeRecovered
	}
	return outcomeFailed
}

// statusClientGone is nginx's status for a client that disconnected before its answer was complete.
const statusClientGone = 499
