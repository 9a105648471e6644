package telemetry

import (
	"maps"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rebound-llm/rebound/recovery"
)

// outcome is how a request ended for its client.
type outcome uint8

const (
	outcomeOK outcome = iota
	outcomeFallback
	outcomeRecovered
	outcomeFailed
	outcomeRejected
	outcomeCanceled
	outcomes
)

var outcomeNames = [outcomes]string{"ok", "fallback", "recovered", "failed", "rejected", "canceled"}

// statusClasses are the first digits of a status, 0 when nothing was written.
const statusClasses = 6

var statusNames = [statusClasses]string{labelNone, "1xx", "2xx", "3xx", "4xx", "5xx"}

// usual are the combinations that occur in every deployment. Their series
// exist from the start, so that the first failure is an increase and not a new
// series, which rate() does not see.
var usual = [...]struct {
	status  int
	outcome outcome
}{
	{2, outcomeOK}, {2, outcomeFallback}, {2, outcomeRecovered}, {2, outcomeFailed}, {4, outcomeFailed}, {4, outcomeRejected}, {4, outcomeCanceled}, {5, outcomeFailed},
}

// kinds are the parts of a usage. Input includes CacheRead where the upstream
// reports it so, as OpenAI does; output includes reasoning.
const kinds = 5

var kindNames = [kinds]string{"input", "output", "cache_read", "cache_write", "reasoning"}

func byKind(u *recovery.Usage) [kinds]int {
	return [kinds]int{u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Reasoning}
}

// saneTokens bounds what one report may add: numbers come from upstreams, and
// a counter that was once absurd stays so.
const saneTokens = 1 << 30

func addTokens(to *[kinds]prometheus.Counter, u *recovery.Usage) {
	for k, n := range byKind(u) {
		if n > 0 { // a counter panics on less
			to[k].Add(float64(min(n, saneTokens)))
		}
	}
}

// table holds the series that exist for a set of names. It is immutable.
type table struct {
	models     map[string]*modelSeries
	upstreams  map[string]*upstreamSeries
	strategies map[string]bool
	other      *modelSeries
	elsewhere  *upstreamSeries
}

type modelSeries struct {
	label    string
	requests [statusClasses][outcomes]prometheus.Counter // nil: made when it occurs
	duration prometheus.Observer
	ttfb     prometheus.Observer
}

type upstreamSeries struct {
	label    string
	ok, gone prometheus.Counter
	failed   map[recovery.Class]prometheus.Counter
	odd      prometheus.Counter // a class without a row
	tokens   [kinds]prometheus.Counter
	billed   prometheus.Counter
	keys     map[string]bool
}

// setLabels makes the series for l and removes those of names that are gone.
func (m *metrics) setLabels(l Labels) {
	m.naming.Lock()
	defer m.naming.Unlock()
	t := &table{models: map[string]*modelSeries{}, upstreams: map[string]*upstreamSeries{}, strategies: map[string]bool{}}
	known := map[recovery.Target]bool{}
	t.other = m.model(labelOther)
	t.elsewhere = m.upstream(labelOther, nil, l.Specs)
	for name, targets := range l.Models {
		t.models[name] = m.model(name)
		for i, target := range targets {
			target.Key = ""
			known[target] = true
			if i > 0 {
				m.fallbacks.WithLabelValues(name, target.Upstream)
			}
		}
	}
	for name, keys := range l.Upstreams {
		t.upstreams[name] = m.upstream(name, keys, l.Specs)
		known[recovery.Target{Upstream: name, Model: labelOther}] = true
	}
	for _, name := range l.strategies() {
		t.strategies[name] = true
		for _, result := range [...]string{"attempted", "success", "failed"} {
			m.recoveries.WithLabelValues(name, result)
		}
	}
	m.breakers.known.Store(&known)
	m.keys.name(l.Keys)
	if old := m.table.Swap(t); old != nil {
		m.forget(old, t)
	}
}

func (m *metrics) model(label string) *modelSeries {
	s := &modelSeries{label: label, duration: m.duration.WithLabelValues(label), ttfb: m.ttfb.WithLabelValues(label)}
	for _, u := range usual {
		s.requests[u.status][u.outcome] = m.requests.WithLabelValues(label, statusNames[u.status], outcomeNames[u.outcome])
	}
	return s
}

func (m *metrics) upstream(label string, keys []string, specs []*recovery.Spec) *upstreamSeries {
	s := &upstreamSeries{
		label: label, failed: map[recovery.Class]prometheus.Counter{}, keys: map[string]bool{},
		ok: m.attempts.WithLabelValues(label, labelOK), gone: m.attempts.WithLabelValues(label, labelGone),
		odd: m.attempts.WithLabelValues(label, labelOther), billed: m.billed.WithLabelValues(label),
	}
	for _, spec := range specs {
		s.failed[spec.Class] = m.attempts.WithLabelValues(label, string(spec.Class))
	}
	for k, kind := range kindNames {
		s.tokens[k] = m.tokens.WithLabelValues(kind, label)
	}
	for _, k := range keys {
		s.keys[k] = true
	}
	shown := maps.Clone(s.keys)
	shown[labelClient] = len(keys) == 0
	for k, show := range shown {
		for _, spec := range specs {
			if show && spec.Cools {
				m.cooldowns.WithLabelValues(label, k, string(spec.Class))
			}
		}
	}
	return s
}

// forget removes the series of names that a reload took out.
func (m *metrics) forget(old, now *table) {
	for name := range old.models {
		if now.models[name] == nil && name != labelOther {
			l := prometheus.Labels{"model": name}
			m.requests.DeletePartialMatch(l)
			m.duration.DeletePartialMatch(l)
			m.ttfb.DeletePartialMatch(l)
			m.fallbacks.DeletePartialMatch(l)
		}
	}
	for name := range old.upstreams {
		if now.upstreams[name] == nil && name != labelOther {
			l := prometheus.Labels{"upstream": name}
			m.attempts.DeletePartialMatch(l)
			m.tokens.DeletePartialMatch(l)
			m.billed.DeletePartialMatch(l)
			m.cooldowns.DeletePartialMatch(l)
			m.fallbacks.DeletePartialMatch(l)
		}
	}
}

// maxMet bounds how many models get a label without being configured, and
// maxModelName the length of their names in bytes.
const (
	maxMet       = 20
	maxModelName = 100
)

// seriesOf finds the series of a model.
func (m *metrics) seriesOf(t *table, name string) *modelSeries {
	if s := t.models[name]; s != nil {
		return s
	}
	if s := (*m.met.Load())[name]; s != nil {
		return s
	}
	return t.other
}

// label is the model's, one of a bounded set.
func (m *metrics) label(model string) string { return m.seriesOf(m.table.Load(), model).label }

// meet gives a model that answered a label of its own, while there are few.
// Upstreams have answered for these names: a client cannot make them up.
func (m *metrics) meet(name string) {
	if len(*m.met.Load()) >= maxMet || name == labelOther || len(name) > maxModelName || !word(name) {
		return
	}
	m.naming.Lock()
	defer m.naming.Unlock()
	met := maps.Clone(*m.met.Load())
	if met[name] == nil && len(met) < maxMet {
		met[name] = m.model(name)
		m.met.Store(&met)
	}
}

// word reports whether a name is one word of visible ASCII characters.
func word(name string) bool {
	for i := range len(name) {
		if name[i] <= ' ' || name[i] > '~' {
			return false
		}
	}
	return name != ""
}

func (t *table) upstream(name string) *upstreamSeries {
	if s := t.upstreams[name]; s != nil {
		return s
	}
	return t.elsewhere
}

func (t *table) strategy(name string) string {
	switch {
	case name == "":
		return labelNone
	case t.strategies[name]:
		return name
	}
	return labelOther
}

// attempt counts one attempt.
func (s *upstreamSeries) attempt(c recovery.Class, gone bool) {
	switch {
	case c != "":
		if n := s.failed[c]; n != nil {
			n.Inc()
		} else {
			s.odd.Inc()
		}
	case gone:
		s.gone.Inc()
	default:
		s.ok.Inc()
	}
}

// count updates the metrics that ev is about.
func (m *metrics) count(ev *recovery.Event) {
	t := m.table.Load()
	switch ev.Name {
	case recovery.EventRequestDone:
		m.done(t, ev)
	case recovery.EventRecoveryAttempt:
		result := "attempted"
		if ev.Observed {
			result = "observed"
		}
		m.recoveries.WithLabelValues(t.strategy(ev.Strategy), result).Inc()
	case recovery.EventRecoverySuccess:
		m.recoveries.WithLabelValues(t.strategy(ev.Strategy), "success").Inc()
	case recovery.EventRecoveryFailed:
		m.recoveries.WithLabelValues(t.strategy(ev.Strategy), "failed").Inc()
	case recovery.EventFallbackUsed:
		m.fallbacks.WithLabelValues(m.seriesOf(t, ev.Model).label, t.upstream(ev.Target.Upstream).label).Inc()
	case recovery.EventTargetCooled:
		u := t.upstream(ev.Target.Upstream)
		key, class := ev.Target.Key, string(ev.Class)
		switch {
		case key == "":
			key = labelNone
		case !u.keys[key]:
			key = labelClient
		}
		if u.failed[ev.Class] == nil {
			class = labelOther
		}
		m.cooldowns.WithLabelValues(u.label, key, class).Inc()
	case recovery.EventBreakerOpened:
		if ev.Failure != nil {
			m.agent.breakers.WithLabelValues("opened").Inc()
		}
	case recovery.EventBreakerClosed:
		if ev.Failure != nil {
			m.agent.breakers.WithLabelValues("closed").Inc()
		}
	case recovery.EventLateAnswer:
		addTokens(&m.extra, &ev.Cost)
		m.cost(ev, ev.Spent)
		m.keys.plan(ev)
	case recovery.EventPlanMade:
		addTokens(&m.extra, &ev.Cost)
		m.cost(ev, ev.Spent)
		m.keys.plan(ev)
		m.agent.count(ev)
	default:
		m.agent.count(ev)
	}
}

// done counts one request: this is the path of every healthy request.
func (m *metrics) done(t *table, ev *recovery.Event) {
	out, status := ended(ev), 0
	if ev.Status >= 100 && ev.Status < 600 {
		status = ev.Status / 100
	}
	s := m.seriesOf(t, ev.Model)
	if s == t.other && out <= outcomeRecovered && ev.Attempt > 0 {
		m.meet(ev.Model)
		s = m.seriesOf(t, ev.Model)
	}
	if c := s.requests[status][out]; c != nil {
		c.Inc()
	} else {
		m.requests.WithLabelValues(s.label, statusNames[status], outcomeNames[out]).Inc()
	}
	m.keys.count(ev, out)
	if out != outcomeRejected {
		s.duration.Observe(ev.Duration.Seconds())
	}
	if ev.Streamed && ev.TTFB > 0 {
		s.ttfb.Observe(ev.TTFB.Seconds())
	}
	u := t.upstream(ev.Target.Upstream)
	if len(ev.Attempts) > 0 {
		for i := range ev.Attempts {
			a, by := &ev.Attempts[i], u
			if a.Target.Upstream != ev.Target.Upstream {
				by = t.upstream(a.Target.Upstream)
			}
			by.attempt(a.Class, out == outcomeCanceled)
		}
	} else if ev.Attempt > 0 {
		u.attempt(ev.Class, out == outcomeCanceled)
	}
	addTokens(&u.tokens, &ev.Usage)
	addTokens(&m.extra, &ev.Cost)
	m.cost(ev, ev.Extra)
	if n := ev.Usage.Billed() + ev.Cost.Billed(); n > 0 {
		u.billed.Add(min(n, saneTokens))
	}
}

// cost counts what recovery has used beyond an answer.
func (m *metrics) cost(ev *recovery.Event, money float64) {
	tokens := ev.Cost.Input + ev.Cost.Output
	if tokens <= 0 && !(money > 0) {
		return
	}
	model, key := m.label(ev.Model), labelNone
	if (*m.keys.series.Load())[ev.Key] != nil {
		key = ev.Key
	}
	money = min(max(money, 0), saneTokens)
	if money > 0 {
		m.recovery.WithLabelValues(model, key).Add(money)
	}
	if spend := m.spend.Load(); spend != nil {
		(*spend)(model, key, min(max(tokens, 0), saneTokens), money)
	}
}

// ended says how a request ended for its client.
func ended(ev *recovery.Event) outcome {
	switch {
	case ev.Status == statusClientGone:
		return outcomeCanceled
	case ev.Class == "" && ev.Status < 400 && ev.Recovery == "" && ev.Fallback:
		return outcomeFallback
	case ev.Class == "" && ev.Status < 400 && ev.Recovery == "":
		return outcomeOK
	case ev.Class == "" && ev.Status < 400:
		return outcomeRecovered
	case ev.Attempt == 0:
		return outcomeRejected
	}
	return outcomeFailed
}

// statusClientGone is nginx's status for a client that left before its answer was complete.
const statusClientGone = 499
