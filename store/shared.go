package store

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// SharedConfig tunes a Shared.
type SharedConfig struct {
	// Timeout limits every operation; one that takes longer counts as a failure of the server.
	Timeout time.Duration `yaml:"timeout"`
	// Probe is the longest time between two pings of a server that is away; each wait is
	// random, between half of it and all of it.
	Probe time.Duration `yaml:"probe"`
}

// SharedDefaults returns the configuration that applies when none is given.
func SharedDefaults() SharedConfig {
	return SharedConfig{Timeout: 50 * time.Millisecond, Probe: 500 * time.Millisecond}
}

// Validate reports everything that is wrong, as one joined error; each message begins with the key.
func (c SharedConfig) Validate() error {
	var errs []error
	if c.Timeout <= 0 {
		errs = append(errs, errors.New("timeout: must be positive"))
	}
	if c.Probe <= 0 {
		errs = append(errs, errors.New("probe: must be positive"))
	}
	return errors.Join(errs...)
}

// Shared is a store on a server, the primary, that keeps working while the server is away. It is safe for concurrent
// use.
//
// Set and Append write to the local store, and one goroutine, the writer, copies the changes to the primary; Flush waits
// for it. Get, Push, Charge and Tail need the state of all processes: they ask the primary and take at most the
// time-out. When an operation fails, it and all later ones use the local store, while the writer pings the primary until
// it answers. If the first ping succeeds, the failure is not logged; otherwise one line says that the primary is away,
// and one that it is back.
//
// The journal holds the changes that the primary has not seen: the keys of values to copy, and what was charged, pushed
// or appended. It is bounded, and it is copied before operations go to the primary again. A late copy replaces what
// other processes wrote to the same key meanwhile. A Charge that failed after it was sent is not repeated, nor is the
// copy of a log entry: the primary may have done it.
//
// Boards are on the primary only; Mirror keeps their local copy and the changes that the primary has not seen. Without
// the primary, operations on boards return ErrUnavailable. All others return ErrInvalid and ErrClosed only. An operation
// whose context has ended uses the local store.
type Shared struct {
	primary, local Store
	cfg            SharedConfig
	log            *slog.Logger

	state     atomic.Int32
	closed    atomic.Bool
	pingFirst atomic.Bool  // ping before copying: a caller's context ended during an operation
	waiting   atomic.Int32 // number of changes in the journal

	mu       sync.Mutex
	journal  journal
	progress chan struct{} // closed and replaced after each attempt to copy
	failures uint64        // number of attempts to copy that failed
	cause    error         // of the last failure

	watch   watch
	wake    chan struct{}
	working context.Context // ends with stop
	stop    context.CancelFunc
	done    chan struct{}
}

var _ Store = (*Shared)(nil)

// The states of the primary. In the state suspect an operation has failed, and the next ping decides.
const (
	up int32 = iota
	suspect
	away
)

// NewShared returns a store on primary that falls back to local, and starts the goroutine that watches primary. Close
// closes both stores. A nil logger logs nothing.
func NewShared(primary, local Store, cfg SharedConfig, log *slog.Logger) *Shared {
	if cfg.Timeout <= 0 {
		cfg.Timeout = SharedDefaults().Timeout
	}
	if cfg.Probe <= 0 {
		cfg.Probe = SharedDefaults().Probe
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Shared{
		primary: primary, local: local, cfg: cfg, log: log,
		progress: make(chan struct{}), wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	s.working, s.stop = context.WithCancel(context.Background())
	s.pingFirst.Store(true) // the ping opens a connection before a request needs one
	s.poke()
	go s.run()
	return s
}

// Up reports whether operations go to the primary.
func (s *Shared) Up() bool { return s.state.Load() == up }

// poke wakes the writer.
func (s *Shared) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// tryPrimary runs an operation on the primary. ok is false if the caller must use the local store instead, and sent tells
// whether the primary may have seen the operation. err is nil, ErrInvalid or ErrClosed.
func (s *Shared) tryPrimary(ctx context.Context, op func(context.Context) error) (ok, sent bool, err error) {
	switch {
	case s.closed.Load():
		return true, false, ErrClosed
	case s.state.Load() != up || ctx.Err() != nil:
		return false, false, nil
	}
	bound, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	err = op(bound)
	cancel()
	switch {
	case err == nil || errors.Is(err, ErrInvalid):
		return true, true, err
	case s.closed.Load():
		return true, true, ErrClosed
	case errors.Is(err, ErrBusy):
		return false, false, nil
	case ctx.Err() != nil:
		// The caller's context ended before our time-out: that does not prove that the server is away, so ping it.
		s.pingFirst.Store(true)
		s.poke()
	default:
		s.suspect(err)
	}
	return false, true, nil
}

// suspect makes the writer ping the primary after a failure; until it answers, operations use the local store.
func (s *Shared) suspect(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cause = err
	if s.state.CompareAndSwap(up, suspect) {
		s.wakeWaiters()
		s.poke()
	}
}

// wakeWaiters wakes the operations that wait for the writer. The lock is held.
func (s *Shared) wakeWaiters() {
	close(s.progress)
	s.progress = make(chan struct{})
}

// record adds changes to the journal.
func (s *Shared) record(changes ...change) {
	s.mu.Lock()
	for _, c := range changes {
		s.journal.add(c)
	}
	s.waiting.Store(int32(s.journal.len()))
	now := s.state.Load()
	s.mu.Unlock()
	if now == up {
		s.poke()
	}
}

// WriteBehind schedules the copy of a value that the caller keeps. The copy, and Get until then, take the value from
// current; false means that there is none. current must not do I/O or use the store.
func (s *Shared) WriteBehind(key string, current func() (Entry, bool)) {
	if CheckKeys(key) == nil && !s.closed.Load() {
		s.record(change{id: changeID{changedValue, key, ""}, current: current})
	}
}

// Flush waits until the primary has the values of the keys. It stops when ctx ends, a copy fails or the primary is away.
func (s *Shared) Flush(ctx context.Context, keys ...string) {
	s.await(ctx, func() bool {
		return slices.ContainsFunc(keys, func(k string) bool { return s.journal.byID[changeID{changedValue, k, ""}] != nil })
	})
}

// await waits for the writer as long as waits, called with the lock held, reports true.
func (s *Shared) await(ctx context.Context, waits func() bool) {
	if s.waiting.Load() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for failed := s.failures; s.state.Load() == up && s.failures == failed && waits(); {
		copied := s.progress
		s.mu.Unlock()
		select {
		case <-copied:
		case <-ctx.Done():
		}
		s.mu.Lock()
		if ctx.Err() != nil {
			return
		}
	}
}

// Get returns the values of keys in order. Values that the journal holds are newer than the primary's, so it does not
// ask for those.
func (s *Shared) Get(ctx context.Context, keys ...string) ([][]byte, error) {
	own := s.pendingValues(keys)
	asked := keys
	if len(own) > 0 {
		asked = slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return own[k] != nil })
	}
	var out [][]byte
	ok, _, err := s.tryPrimary(ctx, func(ctx context.Context) (err error) {
		if len(asked) > 0 {
			out, err = s.primary.Get(ctx, asked...)
		}
		return err
	})
	if !ok {
		out, err = s.local.Get(context.WithoutCancel(ctx), asked...)
	}
	if err != nil || len(own) == 0 {
		return out, err
	}
	all := make([][]byte, len(keys))
	for i, k := range keys {
		if current := own[k]; current == nil {
			all[i], out = out[0], out[1:]
		} else if e, ok := current(); ok {
			all[i] = append([]byte{}, e.Value...)
		}
	}
	return all, nil
}

// pendingValues returns the values of keys that are still to be copied, by key.
func (s *Shared) pendingValues(keys []string) (own map[string]func() (Entry, bool)) {
	if s.waiting.Load() == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range keys {
		if e := s.journal.byID[changeID{changedValue, k, ""}]; e != nil {
			if own == nil {
				own = map[string]func() (Entry, bool){}
			}
			own[k] = e.Value.(*change).current
		}
	}
	return own
}

// Set replaces values. It does not wait until the primary has them; Flush does.
func (s *Shared) Set(ctx context.Context, entries ...Entry) error {
	if err := s.local.Set(context.WithoutCancel(ctx), entries...); err != nil {
		return err
	}
	now := time.Now()
	changes := make([]change, len(entries))
	for i, e := range entries {
		changes[i] = s.valueChange(e.Key, now.Add(min(e.TTL, MaxTTL)), e.Once)
	}
	s.record(changes...)
	return nil
}

// valueChange returns the change of a value that the local store keeps until ends.
func (s *Shared) valueChange(key string, ends time.Time, once bool) change {
	return change{id: changeID{changedValue, key, ""}, once: once, current: func() (Entry, bool) {
		values, err := s.local.Get(context.Background(), key)
		e := Entry{Key: key, TTL: time.Until(ends)}
		if err != nil || values[0] == nil || e.TTL <= 0 {
			return e, false
		}
		e.Value = values[0]
		return e, true
	}}
}

// Delete removes the value and the ring of each key. It waits for the primary, at most the time-out.
func (s *Shared) Delete(ctx context.Context, keys ...string) error {
	if err := s.local.Delete(context.WithoutCancel(ctx), keys...); err != nil {
		return err
	}
	changes := make([]change, len(keys))
	for i, k := range keys {
		changes[i] = s.valueChange(k, time.Time{}, false)
		changes[i].erase = true
	}
	s.record(changes...)
	bound, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	s.Flush(bound, keys...)
	return nil
}

// Charge charges all amounts or none. The local store counts what this process charges; without the primary, that
// count and Alone or Share of each charge decide.
func (s *Shared) Charge(ctx context.Context, charges ...Charge) (done Charged, err error) {
	if err := CheckCharges(charges...); err != nil {
		return Charged{}, err
	}
	ok, sent, err := s.tryPrimary(ctx, func(ctx context.Context) (err error) {
		done, err = s.primary.Charge(ctx, charges...)
		return err
	})
	if err != nil || ok && done.Refused >= 0 {
		return done, err
	}
	own := slices.Clone(charges)
	for i := range own {
		switch c := &own[i]; {
		case !ok && c.Alone != 0:
			amount, fits := Charge{Amount: c.Amount, Least: c.Least, Limit: max(c.Alone, 0)}.Fits(0)
			if c.Alone < 0 || !fits {
				n := len(charges)
				return Charged{Refused: i, Used: make([]int64, n), Amounts: make([]int64, n), Alone: true}, nil
			}
			c.Amount, c.Limit = amount, 0
		case ok:
			c.Amount, c.Limit = done.Amounts[i], 0
		case c.Share > 0:
			c.Limit = c.Share
		}
	}
	local, err := s.local.Charge(context.WithoutCancel(ctx), own...)
	if ok {
		return done, nil
	}
	local.Alone = true
	if err == nil && !sent && local.Refused < 0 {
		now := time.Now()
		for i, c := range charges {
			if c.Amount = local.Amounts[i]; c.Holder == "" && c.Amount != 0 {
				c.Limit = 0
				s.record(change{id: changeID{changedMeter, c.Account, c.Meter}, charge: c, ends: c.ends(now)})
			}
		}
	}
	return local, err
}

// Push puts value into a ring and returns the ring.
func (s *Shared) Push(ctx context.Context, key, slot string, value []byte, size int, ttl time.Duration) (ring [][]byte, err error) {
	if err := CheckPush(key, slot, value, size); err != nil {
		return nil, err
	}
	behind := s.hasOlderChange(key)
	ok, _, err := s.tryPrimary(ctx, func(ctx context.Context) (err error) {
		ring, err = s.primary.Push(ctx, key, slot, value, size, ttl)
		return err
	})
	if err != nil {
		return nil, err
	}
	local, err := s.local.Push(context.WithoutCancel(ctx), key, slot, value, size, ttl)
	if err == nil && (!ok || behind) {
		s.record(change{
			id: changeID{changedSlot, key, slot}, value: value, size: size,
			ends: time.Now().Add(min(ttl, MaxTTL)), last: len(local) > 0 && bytes.Equal(local[len(local)-1], value),
		})
	}
	if ok {
		return ring, nil
	}
	return local, err
}

// hasOlderChange reports whether an older change of the key is still to be copied. It will reach the primary after an
// operation of now.
func (s *Shared) hasOlderChange(key string) bool {
	if s.waiting.Load() == 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.journal.byID[changeID{changedValue, key, ""}] != nil || s.journal.has(changedSlot, key)
}

// Post puts a field on a board of the primary.
func (s *Shared) Post(ctx context.Context, board string, f Field, max bool) error {
	if err := CheckField(board, f); err != nil {
		return err
	}
	return s.primaryOnly(ctx, func(ctx context.Context) error { return s.primary.Post(ctx, board, f, max) })
}

// Remove takes a field off a board of the primary.
func (s *Shared) Remove(ctx context.Context, board, field string) error {
	if err := CheckKeys(board, field); err != nil {
		return err
	}
	return s.primaryOnly(ctx, func(ctx context.Context) error { return s.primary.Remove(ctx, board, field) })
}

// Board returns the living fields of a board of the primary.
func (s *Shared) Board(ctx context.Context, board string) (fields []Field, err error) {
	err = s.primaryOnly(ctx, func(ctx context.Context) (err error) {
		fields, err = s.primary.Board(ctx, board)
		return err
	})
	return fields, err
}

// primaryOnly runs an operation on the primary. Without it, the operation is ErrUnavailable.
func (s *Shared) primaryOnly(ctx context.Context, op func(context.Context) error) error {
	if ok, _, err := s.tryPrimary(ctx, op); ok {
		return err
	}
	return ErrUnavailable
}

// Append adds an entry to a log. It does not wait until the primary has it; Tail does.
func (s *Shared) Append(ctx context.Context, log string, entry []byte, size int) error {
	if err := s.local.Append(context.WithoutCancel(ctx), log, entry, size); err != nil {
		return err
	}
	s.record(change{id: changeID{appended, log, ""}, value: entry, size: size, ends: time.Now().Add(LogTTL)})
	return nil
}

// Tail returns the newest n entries of a log, oldest first. It waits until this process's own entries are copied, at
// most the time-out.
func (s *Shared) Tail(ctx context.Context, log string, n int) (out [][]byte, err error) {
	bound, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	s.await(bound, func() bool { return s.journal.has(appended, log) })
	cancel()
	ok, _, err := s.tryPrimary(ctx, func(ctx context.Context) (err error) {
		out, err = s.primary.Tail(ctx, log, n)
		return err
	})
	if ok {
		return out, err
	}
	return s.local.Tail(context.WithoutCancel(ctx), log, n)
}

// Ping reports whether operations work, with or without the primary. Up reports whether they go to the primary.
func (s *Shared) Ping(ctx context.Context) error {
	if s.closed.Load() {
		return ErrClosed
	}
	return s.local.Ping(context.WithoutCancel(ctx))
}

// Close copies what the journal holds, for at most a quarter of a second, and closes both stores.
func (s *Shared) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.stop()
	<-s.done
	return errors.Join(s.primary.Close(), s.local.Close())
}
