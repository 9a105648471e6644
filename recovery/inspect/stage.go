package inspect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/rule"
	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Config tunes what is read out of an agent's history.
type Config struct {
	Enabled bool `yaml:"enabled"` // off: no failures, no loops, no session breaker, no guidance
	// NoProgress is the number of steps without a new call or result that is a loop; 0 is never.
	NoProgress int `yaml:"no_progress"`
	// MinConfidence is the confidence from which a tool's failure is told, 0 to 1.
	MinConfidence float64 `yaml:"confidence"`
	// Rules come before those of the program, so they decide first. Rules.Check runs their examples.
	Rules []rule.Rule `yaml:"rules"`
}

// minNoProgress is the lowest NoProgress: a few searches without a hit are work.
const minNoProgress = 6

// Defaults returns the configuration that applies when none is given.
func Defaults() Config {
	return Config{Enabled: true, NoProgress: defaultNoProgress, MinConfidence: Threshold}
}

// Validate reports everything that is wrong, as one joined error; each message begins with the key.
func (c Config) Validate() error {
	var errs []error
	if c.NoProgress != 0 && (c.NoProgress < minNoProgress || c.NoProgress > lookBack) {
		errs = append(errs, fmt.Errorf("no_progress: must be 0 (never) or between %d and %d", minNoProgress, lookBack))
	}
	if !(c.MinConfidence >= 0 && c.MinConfidence <= 1) {
		errs = append(errs, errors.New("confidence: must be between 0 and 1"))
	}
	return errors.Join(errs...)
}

// What followed a turn's failure, as the cause of guidance_outcome.
const (
	OutcomeRecovered = "recovered" // a success
	OutcomeRepeated  = "repeated"  // the same failure
	OutcomeOther     = "other"     // other failures
)

// Stage reads what the tools answered and where the history stands. It is
// immutable once in use, and safe for concurrent use.
type Stage struct {
	cfg      Config
	rules    *Rules
	observer recovery.Observer
	// HeldOut tells whether a session is part of the hold-out share, whose models
	// get no guidance; nil is no session. Set it before the first Prepare.
	HeldOut func(session string) bool
	// Preferences finds what persons rule out; nil finds nothing. Set it before the first Prepare.
	Preferences *Preferences
	// Outcomes are told what followed failures; nil is nobody. Set it before the first Prepare.
	Outcomes Outcomes

	histories sync.Pool // of *history, for one request after the other
}

var _ recovery.Stage = (*Stage)(nil)

// NewStage returns a stage that judges by rules. cfg must be valid.
func NewStage(cfg Config, rules *Rules, observer recovery.Observer) *Stage {
	return &Stage{cfg: cfg, rules: rules, observer: observer}
}

// Prepare sets the exchange's Results, Loops and Turn, and tells of failures,
// loops, and what followed the previous turn's failure. It does nothing without
// new results, but for an agent that only talks, and leaves side requests alone:
// whether a request is one is only asked where something is wrong. It never
// returns an error.
func (s *Stage) Prepare(_ context.Context, x *recovery.Exchange) error {
	if !s.cfg.Enabled || x.Mode == recovery.ModeOff || x.Body == nil {
		return nil
	}
	if !s.news(x.Body) {
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
	h.rules = l
	h.begin(x.Body)
	t := h.last()
	if t == nil {
		return nil
	}
	if len(t.steps) == 0 {
		if loops := h.monologue(); loops != nil && (h.agent() || h.reminded()) && !side(x) {
			x.Loops = loops
			s.look(x, h)
			s.tellLoops(x)
		}
		return nil
	}
	results := t.verdicts()
	failing := slices.ContainsFunc(results, func(f recovery.ToolFailure) bool { return f.Failed })
	if failing && side(x) {
		return nil
	}
	position, loops, before := h.position(), h.loops(s.cfg.NoProgress), s.failureBefore(h)
	awaited := s.Outcomes != nil && x.Session != "" && (before != nil || s.Outcomes.Open(x.Session))
	if (loops != nil || before != nil || awaited) && side(x) {
		return nil
	}
	x.Results, x.Turn, x.Loops = results, position, loops
	if failing || loops != nil {
		s.look(x, h)
	}
	if failing {
		x.Failing = h.environment(s.cfg.MinConfidence)
	}

	for i := range x.Results {
		if f := &x.Results[i]; f.Failed && f.Confidence >= s.cfg.MinConfidence {
			ev := x.Event(recovery.EventToolFailure)
			ev.Failure, ev.Progress = bare(f), progressOf(x)
			s.observer.Observe(ev)
		}
	}
	s.tellLoops(x)
	if before != nil {
		s.tellOutcome(x, before)
	}
	if awaited {
		s.tellAfter(x, h)
	}
	return nil
}

// look finds out what only matters where something is wrong: whether the agent gets
// on, and what is ruled out.
func (s *Stage) look(x *recovery.Exchange, h *history) {
	x.Progress = h.getsOn()
	if s.Preferences != nil {
		x.Barred = s.Preferences.barred(h)
	}
}

// progressOf is a copy for events, which outlive the exchange.
func progressOf(x *recovery.Exchange) *recovery.Progress { p := x.Progress; return &p }

func side(x *recovery.Exchange) bool { return x.Side != nil && x.Side() }

// news reports cheaply whether the history may end with results, or with an
// agent that repeats itself. Most requests that are no agent's need no rules for it.
func (s *Stage) news(b *transcript.Body) bool {
	list := b.Messages()
	last := len(list) - 1
	for last >= 0 && list[last].Role != transcript.RoleAssistant {
		if list[last].Role == transcript.RoleTool {
			return true
		}
		last--
	}
	if last < 0 || last == len(list)-1 || list[last+1].Role != transcript.RoleUser {
		return false
	}
	if observable(b, last) {
		return true
	}
	first := last
	for first > 0 && list[first-1].Role == transcript.RoleAssistant {
		first--
	}
	// A monologue is at least text, a message to go on, text, such a message.
	end := list[len(list)-1]
	if first < 2 || list[first-2].Role != transcript.RoleAssistant || list[first-1].Role != transcript.RoleUser || end.End-end.Start >= 2*maxNudge {
		return false
	}
	l, _ := s.rules.get()
	return l.prompts(end.Text())
}

// actionSigns are in every text that makes a call, as it stands in a body.
var actionSigns = []string{"```", "<", `\u003c`, `\u003C`, "ction:"}

// observable reports cheaply whether the message after the assistant's message i
// may be an observation of a text protocol.
func observable(b *transcript.Body, i int) bool {
	list := b.Messages()
	raw := list[i].Raw()
	if !slices.ContainsFunc(actionSigns, func(sign string) bool { return bytes.Contains(raw, []byte(sign)) }) || len(b.Tools()) > 0 {
		return false
	}
	return trajectory.IsObservation(b, i+1)
}

// agent reports whether the conversation has tools, or had results.
func (h *history) agent() bool {
	if len(h.Body.Tools()) > 0 || h.Fenced() {
		return true
	}
	for k := range h.turns {
		if len(h.load(k).steps) > 0 {
			return true
		}
	}
	return false
}

func (s *Stage) tellLoops(x *recovery.Exchange) {
	for i := range x.Loops {
		ev := x.Event(recovery.EventLoop)
		loop := x.Loops[i]
		ev.Loop, ev.Progress = &loop, progressOf(x)
		s.observer.Observe(ev)
	}
}

// failureBefore is the previous turn's failure that the model may have been told
// of, nil without one and where a person spoke since.
func (s *Stage) failureBefore(h *history) *recovery.ToolFailure {
	k := len(h.turns) - 2
	if k < 0 || h.spoken(k) {
		return nil
	}
	before := h.load(k)
	for i := range before.steps {
		if f := before.steps[i].judge(); f.Failed && f.Category != recovery.CategoryNone && f.Confidence >= s.cfg.MinConfidence {
			return f
		}
	}
	return nil
}

// tellOutcome tells what the model did after the previous turn's failure.
func (s *Stage) tellOutcome(x *recovery.Exchange, failure *recovery.ToolFailure) {
	outcome := OutcomeOther
	for i := range x.Results {
		if f := &x.Results[i]; !f.Failed {
			outcome = OutcomeRecovered
			break
		} else if f.Fingerprint == failure.Fingerprint {
			outcome = OutcomeRepeated
		}
	}
	ev := x.Event(recovery.EventGuidanceOutcome)
	ev.Cause, ev.Failure = outcome, bare(failure)
	ev.Advice = &recovery.Advice{Category: failure.Category, HeldOut: s.HeldOut != nil && x.Session != "" && s.HeldOut(x.Session)}
	s.observer.Observe(ev)
}

// bare is a failure for an event: without what the model or the tool wrote.
func bare(f *recovery.ToolFailure) *recovery.ToolFailure {
	out := *f
	out.Arguments, out.Line = "", ""
	return &out
}
