package annotate

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Stage writes notes. It stores nothing about a session and is safe for concurrent use.
type Stage struct {
	// Chooser orders strategies by what was learned; nil keeps the order of scores. Set it before the first Prepare.
	Chooser Chooser

	cfg      Config
	chains   Chains
	observer recovery.Observer
}

var _ recovery.Stage = (*Stage)(nil)

// New returns a stage with the chains and cfg's changes to them. It returns the errors of [Chains.With].
func New(cfg Config, chains Chains, observer recovery.Observer) (*Stage, error) {
	changed, err := chains.With(cfg)
	if err != nil {
		return nil, fmt.Errorf("changing recovery chains: %w", err)
	}
	return &Stage{cfg: cfg, chains: changed, observer: observer}, nil
}

// Prepare sets the exchange's guidance if a note is due, and emits an event. It keeps guidance that an earlier
// stage set. A held-out session, a withheld note and observe mode get the event only; but the firm note before a
// possible stop is never held out or withheld.
func (st *Stage) Prepare(_ context.Context, x *recovery.Exchange) error {
	if x.Mode == recovery.ModeOff || x.Guidance != "" || x.Reply != nil {
		return nil
	}
	loop := x.Repetition()
	nothing := x.Ladder.Failure == nil && loop == nil && x.Plan == nil && x.Turn.Waited == 0
	if nothing || loop == nil && x.PersonSpokeLast() || x.Side != nil && x.Side() {
		return nil
	}
	text, advice := st.Note(x)
	if text == "" {
		return nil
	}
	firm := mayStop(x, loop)
	advice.HeldOut, advice.Withheld = st.HeldOut(x.Session) && !firm, advice.Withheld && !firm
	observed := x.Mode == recovery.ModeObserve
	if !observed && !advice.HeldOut && !advice.Withheld {
		x.Guidance, x.Force = text, st.forced(x)
	}
	ev := x.Event(recovery.EventGuidance)
	progress := x.Progress
	ev.Observed, ev.Advice, ev.Progress = observed, &advice, &progress
	st.observer.Observe(ev)
	return nil
}

// mayStop reports whether the session may be stopped after this turn. That never happens without a firm note
// before, not even in held-out sessions.
func mayStop(x *recovery.Exchange, loop *recovery.Loop) bool {
	return x.Turn.Waited > 0 || x.Turn.Failure != nil && loop != nil && firmly(loop)
}

// HeldOut reports whether the session belongs to the share without notes. It is a pure function of the session
// and Config.Holdout; a request without a session is never held out.
func (st *Stage) HeldOut(session string) bool {
	if session == "" || st.cfg.Holdout <= 0 {
		return false
	}
	sum := sha256.Sum256([]byte("holdout/" + session))
	return float64(binary.BigEndian.Uint64(sum[:])>>11)/(1<<53) < st.cfg.Holdout
}

// Ask words what a user can do about failures of a category, with a full stop; "" for a category without a
// chain.
func (st *Stage) Ask(category recovery.Category) string {
	return fullStop(plain(st.ask(string(category))))
}

// Note returns the note for an exchange whose results, loops, turn and ladder are set, and its description for
// the event; "" if no note is due. It is pure, and ignores the mode and the hold-out.
func (st *Stage) Note(x *recovery.Exchange) (string, recovery.Advice) {
	l, loop := &x.Ladder, x.Repetition()
	switch {
	case x.Body == nil || x.Body.ToolChoice().Choice == transcript.ChoiceNone:
		return "", recovery.Advice{}
	case x.Turn.Waits:
		if x.Turn.Waited == 0 {
			return "", recovery.Advice{}
		}
		return waitNote(x)
	case x.Turn.Until && x.Turn.Failure != nil:
		return untilNote(x)
	case st.notesPlan(x):
		return st.planNote(x, loop)
	case l.Failure == nil || x.Refused():
		return st.loopNote(x, loop)
	case x.Failing != nil && l.Kind == 1 && (loop == nil || !firmly(loop)):
		return st.environmentNote(x, l)
	}
	return st.failureNote(x, l, loop)
}
