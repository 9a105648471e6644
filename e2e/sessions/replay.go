package main

import (
	"context"
	"fmt"
	"time"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/annotate"
	"github.com/rebound-llm/rebound/recovery/breaker"
	"github.com/rebound-llm/rebound/recovery/inspect"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
	"github.com/rebound-llm/rebound/store/memory"
)

// step is one turn of a session: the call, what it brought, and what the model would
// have been told of it.
type step struct {
	at      int // message that follows
	call    string
	result  string
	failed  bool
	note    string
	advice  recovery.Advice
	stopped string // what the person would have read
	firm    bool   // told not to repeat it, or stopped
}

// replayer has the stages of the gateway.
type replayer struct {
	rules *inspect.Rules
	prefs *inspect.Preferences
	notes func(recovery.Observer) (*annotate.Stage, error)
}

func newReplayer() (*replayer, error) {
	chains, err := configs.Chains()
	if err != nil {
		return nil, err
	}
	cfg := annotate.Defaults()
	cfg.Holdout = 0
	return &replayer{rules: inspect.NewRules(configs.ToolRules), prefs: inspect.NewPreferences(configs.PreferenceRules),
		notes: func(o recovery.Observer) (*annotate.Stage, error) { return annotate.New(cfg, chains, o) }}, nil
}

// advised keeps the advice of the last note.
type advised struct{ last recovery.Advice }

// Observe implements recovery.Observer.
func (a *advised) Observe(ev recovery.Event) {
	if ev.Advice != nil && ev.Name == recovery.EventGuidance {
		a.last = *ev.Advice
	}
}

// replay plays a session.
func (r *replayer) replay(s *session) (steps []step, err error) {
	told := &advised{}
	notes, err := r.notes(told)
	if err != nil {
		return nil, err
	}
	st := memory.New(memory.Defaults())
	defer func() { _ = st.Close() }()
	seen := inspect.NewStage(inspect.Defaults(), r.rules, told)
	seen.Preferences = r.prefs
	stages := []recovery.Stage{seen, breaker.NewSessions(breaker.Defaults(), st, recoverytest.NewBoard(), told, notes.Ask), notes}
	list, format := s.history()
	for i := 1; i <= len(list); i++ {
		if i < len(list) && !byModel(list[i]) || byModel(list[i-1]) {
			continue
		}
		b, err := transcript.Parse(s.body(i), format, transcript.Limits{})
		if err != nil {
			return nil, fmt.Errorf("session %s, message %d: %w", s.ID, i, err)
		}
		x := &recovery.Exchange{Request: recovery.Request{ID: s.ID, Mode: recovery.ModeAct, Body: b, Started: time.Now()},
			Conversation: recovery.Conversation{Session: s.ID},
			Caller:       recovery.Caller{Trusted: true}}
		told.last = recovery.Advice{}
		for _, stage := range stages {
			if err := stage.Prepare(context.Background(), x); err != nil {
				return nil, fmt.Errorf("session %s, message %d: %w", s.ID, i, err)
			}
		}
		steps = append(steps, stepOf(x, i, told.last))
	}
	return steps, nil
}

// stepOf is what an exchange came to.
func stepOf(x *recovery.Exchange, at int, advice recovery.Advice) step {
	st := step{at: at, note: x.Guidance, advice: advice}
	for _, res := range trajectory.Results(x.Body) {
		c := trajectory.Call{Tool: res.Tool, Arguments: res.Arguments}
		line := c.Line()
		if line == "" {
			line = res.Tool + " " + res.Arguments
		}
		st.call += line + "\n"
		st.result += res.Content + "\n"
	}
	for i := range x.Results {
		st.failed = st.failed || x.Results[i].Failed
	}
	if x.Reply != nil {
		st.stopped = x.Reply.Text
	}
	st.firm = st.stopped != "" || st.note != "" && advice.Count >= 3 && advice.Loop != ""
	return st
}
