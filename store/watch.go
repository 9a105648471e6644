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
	// A primary that answers pings but fails operations counts as away after
	// maxFailures within failureWindow.
	maxFailures   = 5
	failureWindow = 10 * time.Second
	// If the primary is lost again within flapWindow, the wait before the next
	// ping doubles, from minHold to maxHold: a flapping server must neither
	// delay requests nor fill the log.
	flapWindow = 30 * time.Second
	minHold    = time.Second
	maxHold    = 30 * time.Second
	// A ping that finds the store busy is repeated after busyPause, at most
	// busyTries times.
	busyPause = 20 * time.Millisecond
	busyTries = 5
	// maxCopied is the number of copied changes after which operations go to the
	// primary again even if the journal holds more.
	maxCopied = 2 * maxChanges
)

// watch is the state of run; only its goroutine uses it.
type watch struct {
	lostAt, backAt time.Time // when the primary last went away and came back
	hold           time.Duration
	until          time.Time // no ping before
	failures       int
	firstFailure   time.Time
	busy           int
}

// run watches the primary and copies the journal to it, until stop.
func (s *Shared) run() {
	defer close(s.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-s.working.Done():
			if state := s.state.Load(); state != away {
				ctx, cancel := context.WithTimeout(context.Background(), lastFlush)
				_, _ = s.copyJournal(ctx, state) // what is not copied in this time is lost
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

// step does what the state needs and returns the time until the next step; zero means that only wake starts it.
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
		if _, err := s.copyJournal(s.working, state); errors.Is(err, ErrBusy) {
			w.failures-- // too many operations at once are no failure of the server
			return busyPause
		} else if err != nil {
			return busyPause // the next step pings again and counts this failure
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

// pingPrimary pings the primary within the time-out.
func (s *Shared) pingPrimary() error {
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Timeout)
	defer cancel()
	return s.primary.Ping(ctx)
}

// failsTooOften counts a failure and reports whether there were maxFailures in the window.
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

// goAway marks the primary as away, logs why, and returns the time to the next ping.
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

// probeDelay returns the time to the next ping.
func (s *Shared) probeDelay() time.Duration {
	return s.cfg.Probe/2 + rand.N(s.cfg.Probe/2+1)
}

// copyJournal copies the journal to the primary and returns the number of changes. Then it sets the state up, unless a
// failed operation has changed the state meanwhile.
func (s *Shared) copyJournal(ctx context.Context, state int32) (n int, err error) {
	for {
		s.mu.Lock()
		batch := s.journal.nextBatch()
		if len(batch) == 0 || n >= maxCopied {
			if len(batch) > 0 {
				s.poke()
			}
			// Under the lock: otherwise a change that is recorded now could find nobody to copy it.
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
			err = nil // trying again would not help: drop it
		}
		s.mu.Lock()
		if err == nil || batch[0].id.kind == appended && !errors.Is(err, ErrBusy) { // the entry may be in the log: not twice
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
