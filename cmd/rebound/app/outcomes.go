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

// learnFrom makes the part that learns from outcomes, or tells it of another
// configuration, and lets it choose for the notes.
func (a *App) learnFrom(mode string, notes *annotate.Stage) {
	if a.outcomes == nil {
		a.outcomes = learn.NewOutcomes(mode, notes.Priors(), learn.Parts{Store: a.store, Vocabulary: sync.OnceValue(vocabulary), Observer: a.hub})
	} else {
		a.outcomes.Reconfigure(mode, notes.Priors())
	}
	notes.Chooser = a.outcomes
}

// vocabulary is the words of the program's own rules. They can be read: tests do.
func vocabulary() learn.Vocabulary {
	tools, _ := configs.ToolRules()
	upstream, _ := configs.UpstreamRules()
	return learn.NewVocabulary(tools, upstream)
}

// told is told of notes.
type told struct{ *App }

// Observe implements recovery.Observer.
func (t told) Observe(ev recovery.Event) {
	t.hub.Observe(ev)
	t.outcomes.Observe(ev)
}

// wishes keep what persons rule out, of credentials that an upstream has accepted.
type wishes struct{ *App }

// Add implements inspect.Wishes.
func (w wishes) Add(x *recovery.Exchange, said recovery.Deeds) recovery.Deeds {
	client := x.Learner()
	if w.sessions.Accepted(x) {
		w.wishes.Keep(client, said)
	}
	return w.wishes.Of(client)
}

// learned is what admin shows of all that is remembered of clients.
type learned struct {
	*learn.Outcomes
	wishes *learn.Wishes
}

// Report implements admin.Learning.
func (l learned) Report(ctx context.Context) (recovery.Learned, error) {
	out, err := l.Outcomes.Report(ctx)
	out.Wishes = l.wishes.List()
	return out, err
}

// Reset implements admin.Learning.
func (l learned) Reset(ctx context.Context) error {
	l.wishes.Clear()
	err := l.Outcomes.Reset(ctx)
	if errors.Is(err, learn.ErrOff) && l.wishes.On() {
		return nil
	}
	return err
}
