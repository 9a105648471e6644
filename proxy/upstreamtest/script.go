package upstreamtest

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// maxRuns limits the stored positions in scripts. At the limit all are dropped and
// every script restarts.
const maxRuns = 1 << 16

// scripts holds the scripts of models and the position in each. It is safe for
// concurrent use.
type scripts struct {
	mu        sync.Mutex
	assigned  map[string][]step // set by Script
	positions map[string]*position
}

// position is the current position in one script.
type position struct {
	steps   []step
	started time.Time
	at      int // index of the current step
	used    int // requests that the current step has answered
}

// nameOf returns the part of a model's name before its script.
func nameOf(model string) string {
	name, _, _ := strings.Cut(model, "@")
	return name
}

// assign sets and starts a model's script; an empty one removes it.
func (s *scripts) assign(model, src string) error {
	var steps []step
	if src != "" {
		var err error
		if steps, err = parseSteps(src); err != nil {
			return fmt.Errorf("script of %q: %w", model, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.positions {
		if m, _, _ := strings.Cut(key, "\x00"); m == model {
			delete(s.positions, key)
		}
	}
	if steps == nil {
		delete(s.assigned, model)
		return nil
	}
	if s.assigned == nil {
		s.assigned = make(map[string][]step)
	}
	s.assigned[model] = steps
	return nil
}

// restart restarts every script at its first step.
func (s *scripts) restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.positions)
}

// next returns the step for the next request of a model. mockKey separates the
// positions of callers that share a model.
func (s *scripts) next(model, mockKey, credential string, now time.Time) (*step, error) {
	_, src, inName := strings.Cut(model, "@")
	s.mu.Lock()
	defer s.mu.Unlock()
	steps := s.assigned[model]
	if steps == nil && !inName {
		return okStep, nil
	}
	key := model
	if mockKey != "" {
		key += "\x00" + mockKey
	}
	r := s.positions[key]
	if r == nil {
		if steps == nil {
			var err error
			if steps, err = parseSteps(src); err != nil {
				return nil, err
			}
		}
		if s.positions == nil || len(s.positions) >= maxRuns {
			s.positions = make(map[string]*position)
		}
		r = &position{steps: steps, started: now}
		s.positions[key] = r
	}
	st := r.next(now)
	if st.onlyKey != "" && st.onlyKey != credential {
		return okStep, nil
	}
	return st, nil
}

func (r *position) next(now time.Time) *step {
	for r.at < len(r.steps)-1 {
		st := &r.steps[r.at]
		if st.window > 0 {
			if now.Sub(r.started) < st.until {
				break
			}
		} else if r.used < st.repeat {
			break
		}
		r.at, r.used = r.at+1, 0
	}
	r.used++
	return &r.steps[r.at]
}
