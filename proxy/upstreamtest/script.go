package upstreamtest

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// maxRuns bounds the remembered positions in scripts. Beyond it all positions
// are forgotten and every script starts anew.
const maxRuns = 1 << 16

// scripts holds the scripts of models and how far each has come. It is safe
// for concurrent use.
type scripts struct {
	mu   sync.Mutex
	set  map[string][]step // given by Script
	runs map[string]*run
}

// run is the position in one script.
type run struct {
	steps   []step
	started time.Time
	at      int // index of the current step
	used    int // requests that the current step has had
}

// nameOf returns the part of a model's name before its script.
func nameOf(model string) string {
	name, _, _ := strings.Cut(model, "@")
	return name
}

// assign gives a model a script and starts it; an empty script takes it away.
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
	for key := range s.runs {
		if m, _, _ := strings.Cut(key, "\x00"); m == model {
			delete(s.runs, key)
		}
	}
	if steps == nil {
		delete(s.set, model)
		return nil
	}
	if s.set == nil {
		s.set = make(map[string][]step)
	}
	s.set[model] = steps
	return nil
}

// restart sets every script back to its first step.
func (s *scripts) restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.runs)
}

// next returns the step for the next request of a model. mockKey separates the
// positions of callers that share a model.
func (s *scripts) next(model, mockKey, credential string, now time.Time) (*step, error) {
	_, src, inName := strings.Cut(model, "@")
	s.mu.Lock()
	defer s.mu.Unlock()
	steps := s.set[model]
	if steps == nil && !inName {
		return okStep, nil
	}
	key := model
	if mockKey != "" {
		key += "\x00" + mockKey
	}
	r := s.runs[key]
	if r == nil {
		if steps == nil {
			var err error
			if steps, err = parseSteps(src); err != nil {
				return nil, err
			}
		}
		if s.runs == nil || len(s.runs) >= maxRuns {
			s.runs = make(map[string]*run)
		}
		r = &run{steps: steps, started: now}
		s.runs[key] = r
	}
	st := r.next(now)
	if st.onlyKey != "" && st.onlyKey != credential {
		return okStep, nil
	}
	return st, nil
}

func (r *run) next(now time.Time) *step {
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
