package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rebound-llm/rebound/recovery"
)

// agent counts what the gateway does about histories and about the agent's own
// failures. All labels come from fixed sets.
type agent struct {
	compressions *prometheus.CounterVec
	compressed   *prometheus.CounterVec
	truncated    prometheus.Counter
	repairs      *prometheus.CounterVec
	failures     *prometheus.CounterVec
	loops        *prometheus.CounterVec
	guidance     *prometheus.CounterVec
	outcomes     *prometheus.CounterVec
	judged       *prometheus.CounterVec
	breakers     *prometheus.CounterVec
	plans        *prometheus.CounterVec
	approvals    *prometheus.CounterVec
}

func newAgent(counter func(name, help string, labels ...string) *prometheus.CounterVec) *agent {
	a := &agent{
		compressions: counter("compressions_total",
			"Histories made smaller. Reason: known (before the first attempt), overflow (after a refusal), observed (would have been).", "reason"),
		compressed: counter("compressed_tokens_total", "Tokens of compressed requests, before and after.", "when"),
		truncated:  counter("context_truncated_total", "Answers whose reported prompt was far below what was sent.").WithLabelValues(),
		repairs:    counter("answer_repairs_total", "Repairs of models' answers, by step.", "rule"),
		failures:   counter("tool_failures_total", "Failures of the agents' tools, by category; none stands for other failures.", "category"),
		loops:      counter("loops_total", "Repetitions of agents, by kind.", "kind"),
		guidance: counter("guidance_total", "Notes to models. Result: injected, observed (would have been), "+
			"held_out (withheld to measure their effect), withheld (learned to be no help).", "about", "result"),
		outcomes: counter("guidance_outcomes_total",
			"What followed a tool's failure in the next turn, by arm (guided, held_out) and result (recovered, other, repeated).", "arm", "result"),
		judged: counter("guidance_judged_total",
			"What notes brought within two calls, by arm (note, none) and result (success, other_way, failure, censored).", "arm", "result"),
		breakers: counter("session_breakers_total", "Breakers of sessions.", "state"),
		plans: counter("plans_total",
			"Plans for agents that were stuck, by strategy, band (act, propose, escalate) and source (planner, learned where it need not be asked, heuristic where it was of no use).", "strategy", "band", "source"),
		approvals: counter("plan_approvals_total", "Plans that waited for a person: waiting, approved, refused, expired.", "result"),
	}
	for _, c := range recovery.Categories() {
		a.failures.WithLabelValues(string(c))
	}
	for _, arm := range [...]string{"guided", "held_out"} {
		for _, result := range [...]string{"recovered", "other", "repeated"} {
			a.outcomes.WithLabelValues(arm, result)
		}
	}
	for _, arm := range [...]string{"note", "none"} {
		for _, result := range [...]string{"success", "other_way", "failure", "censored"} {
			a.judged.WithLabelValues(arm, result)
		}
	}
	for _, reason := range [...]string{"known", "overflow", "observed"} {
		a.compressions.WithLabelValues(reason)
	}
	for _, state := range [...]string{"opened", "closed"} {
		a.breakers.WithLabelValues(state)
	}
	return a
}

// count updates the metrics that ev is about.
func (a *agent) count(ev *recovery.Event) {
	switch ev.Name {
	case recovery.EventCompressed:
		c := ev.Compressed
		if c == nil {
			return
		}
		switch {
		case ev.Observed:
			a.compressions.WithLabelValues("observed").Inc()
			return
		case ev.Cause == string(recovery.ContextLengthExceeded):
			a.compressions.WithLabelValues("overflow").Inc()
		default:
			a.compressions.WithLabelValues("known").Inc()
		}
		a.compressed.WithLabelValues("before").Add(float64(min(max(c.Before, 0), saneTokens)))
		a.compressed.WithLabelValues("after").Add(float64(min(max(c.After, 0), saneTokens)))
	case recovery.EventTruncated:
		a.truncated.Inc()
	case recovery.EventCallRepaired:
		for _, r := range ev.Repairs {
			a.repairs.WithLabelValues(clean(r.Rule, maxName)).Inc()
		}
	case recovery.EventToolFailure:
		if ev.Failure != nil {
			a.failures.WithLabelValues(string(ev.Failure.Category)).Inc()
		}
	case recovery.EventPlanMade:
		if p := ev.Plan; p != nil {
			a.plans.WithLabelValues(string(p.Strategy), string(p.Band), p.Source).Inc()
		}
	case recovery.EventApproval:
		a.approvals.WithLabelValues(ev.Cause).Inc()
	case recovery.EventLoop:
		if ev.Loop != nil {
			a.loops.WithLabelValues(string(ev.Loop.Kind)).Inc()
		}
	case recovery.EventGuidance:
		if ev.Advice != nil {
			a.guidance.WithLabelValues(about(ev.Advice), result(ev)).Inc()
		}
	case recovery.EventGuidanceOutcome:
		if ev.Advice != nil && ev.Mode != recovery.ModeObserve { // there nobody was told anything
			arm := "guided"
			if ev.Advice.HeldOut {
				arm = "held_out"
			}
			a.outcomes.WithLabelValues(arm, ev.Cause).Inc()
		}
	case recovery.EventGuidanceJudged:
		arm := "none"
		if ev.Strategy != "" {
			arm = "note"
		}
		a.judged.WithLabelValues(arm, ev.Cause).Inc()
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
	case ev.Observed:
		return "observed"
	}
	return "injected"
}
