package route

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/store"
)

// BoardSwitches is the board of the switches that an operator has set at run time. The field is what the switch applies to
// (Of and Name), the value the switch as JSON.
const BoardSwitches = "switches"

// Board is the part of the shared state that switches need; see [store.Mirror].
type Board interface {
	Any(board string) bool
	Each(board string, fn func(store.Field) bool)
	Post(board string, f store.Field, max bool)
	Remove(board, field string)
}

// Switches is the stage that applies an operator's switches, from the configuration and from run time. A request that only
// one upstream can serve, because it stores the conversation, goes there even if that upstream is disabled. The zero value
// has no switches. Safe for concurrent use.
type Switches struct {
	Board Board             // nil: no switches at run time
	Fixed []recovery.Switch // from the configuration
}

var _ recovery.Stage = (*Switches)(nil)

// switchedFor is how long a switch from run time stays valid.
const switchedFor = 365 * 24 * time.Hour

// Set sets a switch for all replicas. s must have passed Check.
func (w *Switches) Set(s recovery.Switch) error {
	s.Since = time.Now().UTC()
	raw, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encoding switch: %w", err)
	}
	w.Board.Post(BoardSwitches, store.Field{Name: s.Of + ":" + s.Name, Value: raw, Until: s.Since.Add(switchedFor)}, false)
	return nil
}

// Clear removes a switch that was set at run time; it returns false if there is none.
func (w *Switches) Clear(of, name string) bool {
	found := slices.ContainsFunc(w.List(), func(s recovery.Switch) bool { return s.Of == of && s.Name == name && !s.Since.IsZero() })
	if found {
		w.Board.Remove(BoardSwitches, of+":"+name)
	}
	return found
}

// List returns all switches.
func (w *Switches) List() []recovery.Switch {
	list := slices.Clone(w.Fixed)
	if w.Board == nil || !w.Board.Any(BoardSwitches) {
		return list
	}
	w.Board.Each(BoardSwitches, func(f store.Field) bool {
		var s recovery.Switch
		if json.Unmarshal(f.Value, &s) == nil && s.Check() == nil && f.Name == s.Of+":"+s.Name && !s.Since.IsZero() {
			list = append(list, s)
		}
		return true
	})
	return list
}

// Marks returns the switches as marks, for listings.
func (w *Switches) Marks() (marks []recovery.Mark) {
	for _, s := range w.List() {
		m := recovery.Mark{Target: s.Name, Kind: recovery.MarkSwitched, Item: s.Of, Detail: "mode " + string(s.Mode), Evidence: "an operator's command", Since: s.Since}
		if s.Mode == recovery.ModeDisabled {
			m.Kind, m.Detail = recovery.MarkDisabled, "not asked"
		}
		if s.Since.IsZero() {
			m.Evidence = "the configuration"
		}
		marks = append(marks, m)
	}
	return marks
}

// Prepare removes disabled candidates and lowers the exchange's mode. It returns recovery.ErrDisabled if no candidate is
// left.
func (w *Switches) Prepare(_ context.Context, x *recovery.Exchange) error {
	if len(w.Fixed) == 0 && (w.Board == nil || !w.Board.Any(BoardSwitches)) || len(x.Candidates) == 0 {
		return nil
	}
	list := w.List()
	disabled := func(c recovery.Choice) bool {
		return c.Upstream != x.Home.Upstream && slices.ContainsFunc(list, func(s recovery.Switch) bool {
			return s.Mode == recovery.ModeDisabled && (s.Of == "upstream" && s.Name == c.Upstream || s.Of == "target" && s.Name == c.Upstream+"/"+c.Model)
		})
	}
	if x.Candidates = slices.DeleteFunc(x.Candidates, disabled); len(x.Candidates) == 0 {
		return recovery.ErrDisabled
	}
	first := x.Candidates[0]
	for _, s := range list {
		applies := s.Of == "model" && s.Name == x.Model || s.Of == "key" && s.Name == x.Key && x.Key != "" ||
			s.Of == "upstream" && s.Name == first.Upstream || s.Of == "target" && s.Name == first.Upstream+"/"+first.Model
		if applies && rank(s.Mode) > rank(x.Mode) {
			x.Mode = s.Mode
		}
	}
	return nil
}

// rank orders modes from most to least.
func rank(m recovery.Mode) int {
	return slices.Index([]recovery.Mode{recovery.ModeAct, recovery.ModeAnnotate, recovery.ModeObserve, recovery.ModeOff}, m)
}
