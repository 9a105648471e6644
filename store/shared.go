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
	// Timeout bounds every operation; what takes longer is a failure of the server.
	Timeout time.Duration `yaml:"timeout"`
	// Probe is how often a server that is away is asked, at most; jittered to
	// between half of it and all of it.
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

// Shared is a store on a server that outlives the loss of the server. It is
// safe for concurrent use.
//
// State is local first: values and logs are written to the local store, and one goroutine copies them to the primary
// behind; Flush waits until it has. What needs an answer of all processes goes to the
// primary at once and takes at most the time-out: Get, Push, Charge, Tail. When an operation fails, this and all
// further ones are done on the local store at once, while the same goroutine asks the primary until it answers; a
// failure that a first question refutes is not mentioned, otherwise one line is logged when the primary goes and one
// when it is back.
//
// The journal is what the primary has not seen: the keys that are still to be copied, and what was charged, pushed and
// appended alone. It is bounded, and copied before operations go to the primary again. What is copied late wins over
// what others wrote to the same key meanwhile. A Charge or Append that failed on its way is not repeated, as it may have
// been done.
//
// Boards are on the primary alone: their copy, and what waits for the primary, is the Mirror's. Without the primary
// their operations are ErrUnavailable; of all others errors are ErrInvalid and ErrClosed only. An operation whose
// context has ended is done on the local store.
type Shared struct {
	primary, local Store
	cfg            SharedConfig
	log            *slog.Logger

	state     atomic.Int32
	closed    atomic.Bool
	pingFirst atomic.Bool  // somebody's own time ended in an operation
	waiting   atomic.Int32 // changes in the journal

	mu       sync.Mutex
	journal  journal
	progress chan struct{} // closed, and made anew, when the writer copied something or could not
	failures uint64        // how often it could not
	cause    error         // of the last failure

	watch   watch
	wake    chan struct{}
	working context.Context // until stop
	stop    context.CancelFunc
	done    chan struct{}
}

var _ Store = (*Shared)(nil)

// The states: of a suspect, the next question decides.
const (
	up int32 = iota
	suspect
	away
)

// NewShared returns a store on primary, falling back to local, and begins to
// watch primary. It owns both: Close closes them. A nil logger is silent.
func NewShared(primary, local Store, cfg SharedConfig, log *slog.Logger) *Shared {
	if def := SharedDefaults(); cfg.Timeout <= 0 || cfg.Probe <= 0 {
		if cfg.Timeout <= 0 {
			cfg.Timeout = def.Timeout
		}
		if cfg.Probe <= 0 {
			cfg.Probe = def.Probe
		}
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Shared{
		primary: primary, local: local, cfg: cfg, log: log,
		progress: make(chan struct{}), wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	s.working, s.stop = context.WithCancel(context.Background())
	s.pingFirst.Store(true) // the first question opens a connection before a request needs it
	s.poke()
	go s.run()
	return s
}

// Up tells whether operations go to the primary.
func (s *Shared) Up() bool { return s.state.Load() == up }

// poke makes the watcher look.
func (s *Shared) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// tryPrimary does an operation on the primary. It reports false if the local store has
// to do, and whether the primary may have seen the operation.
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
		// The caller's time has ended, not ours. That is no proof, so ask.
		s.pingFirst.Store(true)
		s.poke()
	default:
		s.suspect(err)
	}
	return false, true, nil
}

// suspect makes the watcher ask whether the primary works.
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

// WriteBehind schedules the copy of a value that its owner keeps. current returns the value when it is copied, and until then
// for Get; false means that there is none. It must not do I/O or use the store.
func (s *Shared) WriteBehind(key string, current func() (Entry, bool)) {
	if CheckKeys(key) == nil && !s.closed.Load() {
		s.record(change{id: changeID{changedValue, key, ""}, current: current})
	}
}

// Flush waits until the primary has the values of the keys. It stops when ctx ends or the primary is away.
func (s *Shared) Flush(ctx context.Context, keys ...string) {
	s.await(ctx, func() bool {
		return slices.ContainsFunc(keys, func(k string) bool { return s.journal.byID[changeID{changedValue, k, ""}] != nil })
	})
}

// await waits for the writer while something waits in the journal.
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

// Get returns the values of keys in order. What is still to be copied is newer than what the primary has.
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

// pendingValues returns the keys whose values are still to be copied.
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

// Set replaces values. It does not wait for the primary; Flush does.
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

// valueChange is the change of a value that the local store has, and that ends then.
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

// Delete removes the value and the ring of each key, and waits for the primary.
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

// Charge charges all amounts or none. The local store counts what this process
// charged; alone, it goes by the charges' shares.
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

// hasOlderChange reports whether an older change of the key is still to be copied: it reaches the primary after what is done
// there now.
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

// primaryOnly runs an operation on the primary, and never on the local store.
func (s *Shared) primaryOnly(ctx context.Context, op func(context.Context) error) error {
	if ok, _, err := s.tryPrimary(ctx, op); ok {
		return err
	}
	return ErrUnavailable
}

// Append adds an entry to a log. It does not wait for the primary; Tail does.
func (s *Shared) Append(ctx context.Context, log string, entry []byte, size int) error {
	if err := s.local.Append(context.WithoutCancel(ctx), log, entry, size); err != nil {
		return err
	}
	s.record(change{id: changeID{appended, log, ""}, value: entry, size: size, ends: time.Now().Add(LogTTL)})
	return nil
}

// Tail returns the newest n entries of a log, oldest first.
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

// Ping reports whether operations work, which they do with or without the
// primary; whether it is there, Up tells.
func (s *Shared) Ping(ctx context.Context) error {
	if s.closed.Load() {
		return ErrClosed
	}
	return s.local.Ping(context.WithoutCancel(ctx))
}

// Close copies what is still to be copied, for a moment, and closes both stores.
func (s *Shared) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.stop()
	<-s.done
	return errors.Join(s.primary.Close(), s.local.Close())
}
