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
	maxFailures   = 5
	failureWindow = 10 * time.Second
	// A primary that goes soon after it was back is left alone for ever longer,
	// so that one which comes and goes neither costs time nor fills the log.
	flapWindow = 30 * time.Second
	minHold    = time.Second
	maxHold    = 30 * time.Second
	// A question that finds the store busy is repeated soon, a few times.
	busyPause = 20 * time.Millisecond
	busyTries = 5
	// maxCopied is how many changes are copied before operations go to the
	// primary again even if more are waiting.
	maxCopied = 2 * maxChanges
)

// watch is what the watcher remembers; only its goroutine touches it.
type watch struct {
	lostAt, backAt time.Time // when the primary was last lost and regained
	hold           time.Duration
	until          time.Time // no questions before
	failures       int
	firstFailure   time.Time
	busy           int
}

// run watches the primary, and copies the journal to it, until stop.
func (s *Shared) run() {
	defer close(s.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-s.working.Done():
			if state := s.state.Load(); state != away {
				ctx, cancel := context.WithTimeout(context.Background(), lastFlush)
				_, _ = s.copyJournal(ctx, state) // what a server does not take in this time is lost
				cancel()
			}
			return
		case <-s.wake:
		case <-timer.C:
		}
		if next := s.step(); next > 0 {
			timer.Reset(next)
		} else {
			timer.Stop()
		}
	}
}

// step does what the state calls for and says when to step again; zero is when woken.
func (s *Shared) step() time.Duration {
	w := &s.watch
	state := s.state.Load()
	switch state {
	case up:
		if s.pingFirst.Swap(false) {
			if err := s.pingPrimary(); err != nil && !errors.Is(err, ErrBusy) {
				return s.goAway(err)
			}
		}
		if s.waiting.Load() > 0 {
			if _, err := s.copyJournal(s.working, state); errors.Is(err, ErrBusy) {
				return s.probeDelay()
			} else if err != nil && s.working.Err() == nil {
				s.suspect(err)
			}
		}
		return 0
	case suspect:
		err := s.pingPrimary()
		switch {
		case errors.Is(err, ErrBusy) && w.busy < busyTries:
			w.busy++
			return busyPause
		case err != nil:
			return s.goAway(err)
		case s.failsTooOften():
			w.hold = max(w.hold, minHold)
			return s.goAway(fmt.Errorf("operations fail though the server answers: %w", s.lastCause()))
		}
		w.busy = 0
		if _, err := s.copyJournal(s.working, state); err != nil {
			return busyPause // the next question decides, and counts it
		}
		return 0
	}
	if wait := time.Until(w.until); wait > 0 {
		return wait
	}
	if s.pingPrimary() != nil {
		return s.probeDelay()
	}
	n, err := s.copyJournal(s.working, state)
	if err != nil {
		return s.probeDelay()
	}
	s.mu.Lock()
	dropped := s.journal.dropped
	s.journal.dropped = 0
	s.mu.Unlock()
	w.backAt, w.failures = time.Now(), 0
	s.log.LogAttrs(context.Background(), slog.LevelInfo, "store is back, state is shared again",
		slog.Int64("away_ms", w.backAt.Sub(w.lostAt).Milliseconds()),
		slog.Int("repeated", n), slog.Int("forgotten", dropped))
	return 0
}

// pingPrimary asks the primary whether it works.
func (s *Shared) pingPrimary() error {
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Timeout)
	defer cancel()
	return s.primary.Ping(ctx)
}

// failsTooOften counts a failure and tells whether they are too many.
func (s *Shared) failsTooOften() bool {
	w, now := &s.watch, time.Now()
	if w.failures == 0 || now.Sub(w.firstFailure) > failureWindow {
		w.failures, w.firstFailure = 0, now
	}
	w.failures++
	return w.failures >= maxFailures
}

func (s *Shared) lastCause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cause
}

// goAway goes on without the primary.
func (s *Shared) goAway(err error) time.Duration {
	w, now := &s.watch, time.Now()
	if !w.backAt.IsZero() && now.Sub(w.backAt) < flapWindow {
		w.hold = min(max(2*w.hold, minHold), maxHold)
	} else if w.failures < maxFailures {
		w.hold = 0
	}
	w.lostAt, w.until, w.busy, w.failures = now, now.Add(w.hold), 0, 0
	s.mu.Lock()
	s.state.Store(away)
	s.wakeWaiters()
	s.mu.Unlock()
	s.log.LogAttrs(context.Background(), slog.LevelWarn, "store is away, going on with local state",
		slog.String("error", err.Error()))
	return s.probeDelay()
}

// probeDelay is the time to the next question.
func (s *Shared) probeDelay() time.Duration {
	return s.cfg.Probe/2 + rand.N(s.cfg.Probe/2+1)
}

// copyJournal copies the journal to the primary and then sends operations there, unless the state has changed meanwhile: only
// an operation that fails does that.
func (s *Shared) copyJournal(ctx context.Context, state int32) (n int, err error) {
	for {
		s.mu.Lock()
		batch := s.journal.nextBatch()
		if len(batch) == 0 || n >= maxCopied {
			if len(batch) > 0 {
				s.poke()
			}
			// Under the lock: nobody notes a change now that no one then copies.
			s.state.CompareAndSwap(state, up)
			s.mu.Unlock()
			return n, nil
		}
		s.mu.Unlock()
		bound, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
		made, err := apply(bound, s.primary, batch, time.Now())
		cancel()
		batch = batch[:made]
		if errors.Is(err, ErrInvalid) {
			err = nil // it never will be copied
		}
		s.mu.Lock()
		if err == nil || batch[0].id.kind == appended && !errors.Is(err, ErrBusy) { // it may have been done: not twice
			for _, c := range batch {
				s.journal.done(c)
			}
		}
		if err != nil {
			s.failures++
		}
		s.waiting.Store(int32(s.journal.len()))
		s.wakeWaiters()
		s.mu.Unlock()
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return n, err
		}
		n += len(batch)
	}
}
