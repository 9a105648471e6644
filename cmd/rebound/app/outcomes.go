package app

import (
	"context"
	"errors"
	"sync"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/annotate"
	"github.com/rebound-llm/rebound/recovery/learn"
)

// configureOutcomes creates or reconfigures the learner of outcomes, and makes it choose the notes.
func (a *App) configureOutcomes(mode string, notes *annotate.Stage) {
	if a.outcomes == nil {
		a.outcomes = learn.NewOutcomes(mode, notes.Priors(), learn.Parts{Store: a.store, Vocabulary: vocabulary, Observer: a.hub})
	} else {
		a.outcomes.Reconfigure(mode, notes.Priors())
	}
	notes.Chooser = a.outcomes
}

// vocabulary returns the words of the built-in rules, which are collected once in a process. Tests ensure that those
// parse.
var vocabulary = sync.OnceValue(func() learn.Vocabulary {
	tools, _ := configs.ToolRules()
	upstream, _ := configs.UpstreamRules()
	return learn.NewVocabulary(tools, upstream)
})

// noteObserver passes the events of notes to the learner, too.
type noteObserver struct{ *App }

// Observe implements recovery.Observer.
func (t noteObserver) Observe(ev recovery.Event) {
	t.hub.Observe(ev)
	t.outcomes.Observe(ev)
}

// wishRecorder remembers what users rule out, for credentials that an upstream has accepted.
type wishRecorder struct{ *App }

// Add implements inspect.Wishes.
func (w wishRecorder) Add(x *recovery.Exchange, said recovery.Deeds) recovery.Deeds {
	client := x.Learner()
	if w.sessions.Accepted(x) {
		w.wishes.Keep(client, said)
	}
	return w.wishes.Of(client)
}

// learnedAdmin implements admin.Learning with outcomes and wishes.
type learnedAdmin struct {
	*learn.Outcomes
	wishes *learn.Wishes
}

// Report implements admin.Learning.
func (l learnedAdmin) Report(ctx context.Context) (recovery.Learned, error) {
	out, err := l.Outcomes.Report(ctx)
	out.Wishes = l.wishes.List()
	return out, err
}

// Reset implements admin.Learning.
func (l learnedAdmin) Reset(ctx context.Context) error {
	l.wishes.Clear()
	err := l.Outcomes.Reset(ctx)
	if errors.Is(err, learn.ErrOff) && l.wishes.On() {
		return nil
	}
	return err
}
