package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"
)

const (
	// A primary that answers questions but fails operations is taken for away
	// after this many failures within window.
	strikes = 5
	window  = 10 * time.Second
	// A primary that goes soon after it was back is left alone for ever longer,
	// so that one which comes and goes neither costs time nor fills the log.
	restless  = 30 * time.Second
	firstHold = time.Second
	longHold  = 30 * time.Second
	// A question that finds the store busy is repeated soon, a few times.
	busyPause = 20 * time.Millisecond
	busyTries = 5
	// replayed is how many changes are repeated before operations go to the
	// primary again even if more are waiting.
	replayed = 2 * maxChanges
)

// watch is what the watcher remembers; only its goroutine touches it.
type watch struct {
	left, back  time.Time // when the primary was last lost and regained
	hold        time.Duration
	until       time.Time // no questions before
	failures    int
	firstStrike time.Time
	busy        int
}

// run watches the primary until stop.
func (s *Shared) run() {
	defer close(s.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-s.wake:
		case <-timer.C:
		}
		if next := s.look(); next > 0 {
			timer.Reset(next)
		} else {
			timer.Stop()
		}
	}
}

// look does what the state calls for and says when to look again; zero is when woken.
func (s *Shared) look() time.Duration {
	w := &s.watch
	state := s.state.Load()
	switch state {
	case up:
		if s.doubt.Swap(false) {
			if err := s.ask(); err != nil && !errors.Is(err, ErrBusy) {
				return s.lose(err)
			}
		}
		if s.waiting.Load() > 0 {
			if _, err := s.replay(state); err != nil {
				return s.pause()
			}
		}
		return 0
	case suspect:
		err := s.ask()
		switch {
		case errors.Is(err, ErrBusy) && w.busy < busyTries:
			w.busy++
			return busyPause
		case err != nil:
			return s.lose(err)
		case s.strike():
			w.hold = max(w.hold, firstHold)
			return s.lose(fmt.Errorf("operations fail though the server answers: %w", s.lastCause()))
		}
		w.busy = 0
		if _, err := s.replay(state); err != nil {
			return s.lose(err)
		}
		return 0
	}
	if wait := time.Until(w.until); wait > 0 {
		return wait
	}
	if s.ask() != nil {
		return s.pause()
	}
	n, err := s.replay(state)
	if err != nil {
		return s.pause()
	}
	s.mu.Lock()
	forgotten := s.journal.forgotten
	s.journal.forgotten = 0
	s.mu.Unlock()
	w.back, w.failures = time.Now(), 0
	s.log.LogAttrs(context.Background(), slog.LevelInfo, "store is back, state is shared again",
		slog.Int64("away_ms", w.back.Sub(w.left).Milliseconds()),
		slog.Int("repeated", n), slog.Int("forgotten", forgotten))
	return 0
}

// ask asks the primary whether it works.
func (s *Shared) ask() error {
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Timeout)
	defer cancel()
	return s.primary.Ping(ctx)
}

// strike counts a failure and tells whether they are too many.
func (s *Shared) strike() bool {
	w, now := &s.watch, time.Now()
	if w.failures == 0 || now.Sub(w.firstStrike) > window {
		w.failures, w.firstStrike = 0, now
	}
	w.failures++
	return w.failures >= strikes
}

func (s *Shared) lastCause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cause
}

// lose goes on without the primary.
func (s *Shared) lose(err error) time.Duration {
	w, now := &s.watch, time.Now()
	if !w.back.IsZero() && now.Sub(w.back) < restless {
		w.hold = min(max(2*w.hold, firstHold), longHold)
	} else if w.failures < strikes {
		w.hold = 0
	}
	w.left, w.until, w.busy, w.failures = now, now.Add(w.hold), 0, 0
	s.state.Store(away)
	s.log.LogAttrs(context.Background(), slog.LevelWarn, "store is away, going on with local state",
		slog.String("error", err.Error()))
	return s.pause()
}

// pause is the time to the next question.
func (s *Shared) pause() time.Duration {
	return s.cfg.Probe/2 + rand.N(s.cfg.Probe/2+1)
}

// replay repeats what the primary has missed and then sends operations there,
// unless the state has changed meanwhile: only an operation that fails does that.
func (s *Shared) replay(state int32) (n int, err error) {
	for {
		s.mu.Lock()
		c, more := s.journal.take()
		if !more || n >= replayed {
			if more {
				s.journal.restore(c)
				s.poke()
			}
			s.repeating = change{}
			s.count()
			// Under the lock: nobody notes a change now that no one then repeats.
			s.state.CompareAndSwap(state, up)
			s.mu.Unlock()
			return n, nil
		}
		s.repeating = c
		s.mu.Unlock()
		select {
		case <-s.stop:
			return n, ErrClosed
		default:
		}
		ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Timeout)
		err := c.apply(ctx, s.primary, time.Now())
		cancel()
		if err != nil && !errors.Is(err, ErrInvalid) {
			s.mu.Lock()
			s.journal.restore(c)
			s.repeating = change{}
			s.count()
			s.mu.Unlock()
			return n, err
		}
		n++
	}
}
