package inspect

import (
	"context"
	"slices"
	"sync"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/rule"
)

// Config tunes the inspection of an agent's history.
type Config struct {
	Enabled bool `yaml:"enabled"` // false disables failures, loops, the session breaker and guidance
	// NoProgress is the number of steps without a new call or result that counts as a loop; 0 disables it.
	NoProgress int `yaml:"no_progress"`
	// MinConfidence is the minimum confidence, 0 to 1, for reporting a tool's failure.
	MinConfidence float64 `yaml:"confidence"`
	// Rules are tried before the built-in ones. Rules.Check tests their examples.
	Rules []rule.Rule `yaml:"rules"`
}

// minNoProgress is the lowest NoProgress: a few searches without a hit are normal work.
const minNoProgress = 6

// Defaults returns the configuration that applies when none is given.
func Defaults() Config {
	return Config{Enabled: true, NoProgress: defaultNoProgress, MinConfidence: Threshold}
}

// Validate reports every problem as one joined error; each message begins with the key.
func (c Config) Validate() error {
	var problems recovery.Problems
	problems.Check(c.NoProgress != 0 && (c.NoProgress < minNoProgress || c.NoProgress > lookBack), "no_progress: must be 0 (never) or between %d and %d", minNoProgress, lookBack)
	problems.Check(!(c.MinConfidence >= 0 && c.MinConfidence <= 1), "confidence: must be between 0 and 1")
	return problems.Err()
}

// Stage inspects tool results and the position of the history. It is immutable once in use, and safe for
// concurrent use.
type Stage struct {
	cfg      Config
	rules    *Rules
	observer recovery.Observer
	// HeldOut reports whether a session belongs to the hold-out share, which gets no guidance; nil means none does. Set it
	// before the first Prepare.
	HeldOut func(session string) bool
	// Preferences finds what users forbid; nil finds nothing. Set it before the first Prepare.
	Preferences *Preferences
	// Wishes stores what users forbid for later sessions; nil stores nothing. Set it before the first Prepare.
	Wishes Wishes
	// Outcomes receives what followed failures; may be nil. Set it before the first Prepare.
	Outcomes Outcomes

	histories sync.Pool // of *history, reused for later requests
}

// Wishes stores what the users of a client forbid. It is safe for concurrent use and does no I/O.
type Wishes interface {
	// Add stores what was said in an exchange, and returns all that is known of its client.
	Add(x *recovery.Exchange, said recovery.Deeds) (known recovery.Deeds)
}

var _ recovery.Stage = (*Stage)(nil)

// NewStage returns a stage that judges with the rules. cfg must be valid.
func NewStage(cfg Config, rules *Rules, observer recovery.Observer) *Stage {
	return &Stage{cfg: cfg, rules: rules, observer: observer}
}

// Prepare sets the exchange's Results, Loops and Turn, and reports failures, loops, and what followed the
// previous turn's failure. It does nothing without new results, except for an agent that only talks, and ignores
// side requests; it determines whether a request is one only if something is wrong. It never returns an error.
func (s *Stage) Prepare(_ context.Context, x *recovery.Exchange) error {
	if !s.cfg.Enabled || x.Mode == recovery.ModeOff || x.Body == nil || !s.hasNewResults(x.Body) {
		return nil
	}
	l, _ := s.rules.get()
	h, _ := s.histories.Get().(*history)
	if h == nil {
		h = new(history)
	}
	defer func() {
		h.forget()
		s.histories.Put(h)
	}()
	h.begin(x.Body, l)
	switch t := h.last(); {
	case t == nil:
	case len(t.steps) > 0:
		s.prepareResults(x, h)
	default:
		if loops := h.monologue(); loops != nil && h.isAgent() && !side(x) {
			x.Loops = loops
			s.assess(x, h)
			x.Ladder = h.ladder(x, s.cfg.MinConfidence)
			s.reportLoops(x)
		}
	}
	return nil
}

// prepareResults prepares an exchange whose history ends with tool results.
func (s *Stage) prepareResults(x *recovery.Exchange, h *history) {
	steps := h.last().steps
	results := make([]recovery.ToolFailure, len(steps))
	for i := range steps {
		results[i] = *steps[i].judge()
	}
	position, loops, before := h.position(), h.loops(s.cfg.NoProgress), s.failureBefore(h)
	failing := slices.ContainsFunc(results, func(f recovery.ToolFailure) bool { return f.Failed })
	awaited := s.Outcomes != nil && x.Session != "" && (before != nil || s.Outcomes.Open(x.Session))
	if (failing || loops != nil || before != nil || awaited) && side(x) {
		return
	}
	x.Results, x.Turn, x.Loops = results, position, loops
	if failing || loops != nil {
		s.assess(x, h)
		x.Ladder = h.ladder(x, s.cfg.MinConfidence)
	} else if s.Wishes != nil && !side(x) {
		s.findPreferences(x, h)
	}
	if failing {
		x.Failing = h.environment(s.cfg.MinConfidence)
	}
	for i := range x.Results {
		if f := &x.Results[i]; f.Failed && f.Confidence >= s.cfg.MinConfidence {
			ev := x.Event(recovery.EventToolFailure)
			ev.Failure, ev.Progress = withoutText(f), progressOf(x)
			s.observer.Observe(ev)
		}
	}
	s.reportLoops(x)
	if before != nil {
		s.reportOutcome(x, before)
	}
	if awaited {
		s.reportAfter(x, h)
	}
}

// assess sets what matters only if something is wrong: the agent's progress, and what is forbidden.
func (s *Stage) assess(x *recovery.Exchange, h *history) {
	x.Progress = h.progress()
	s.findPreferences(x, h)
}

// findPreferences sets what users forbid, in this session and, if Wishes is set, in earlier ones.
func (s *Stage) findPreferences(x *recovery.Exchange, h *history) {
	if s.Preferences == nil {
		return
	}
	var said recovery.Deeds
	if x.Barred, said = s.Preferences.barred(h); s.Wishes != nil {
		x.Barred |= s.Wishes.Add(x, said)
	}
}

// progressOf returns a copy for events, which outlive the exchange.
func progressOf(x *recovery.Exchange) *recovery.Progress { p := x.Progress; return &p }

func side(x *recovery.Exchange) bool { return x.Side != nil && x.Side() }

func (s *Stage) reportLoops(x *recovery.Exchange) {
	for i := range x.Loops {
		ev := x.Event(recovery.EventLoop)
		loop := x.Loops[i]
		ev.Loop, ev.Progress = &loop, progressOf(x)
		s.observer.Observe(ev)
	}
}

// withoutText copies a failure for an event, without the text of the model or the tool.
func withoutText(f *recovery.ToolFailure) *recovery.ToolFailure {
	out := *f
	out.Arguments, out.Line = "", ""
	return &out
}
