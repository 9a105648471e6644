package store

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
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
// Operations go to the primary and take at most the time-out. When one fails,
// this and all further operations are done on the local store at once, while
// one goroutine asks the primary until it answers; a failure that a first
// question refutes is not mentioned, otherwise one line is logged when the
// primary goes and one when it is back. Writes are done on the local store even
// while the primary is there, so that it knows what this process last knew.
//
// Writes that only the local store has seen are kept in a bounded journal and
// repeated, boards first, before operations go to the primary again. A repeated
// write wins over what others wrote to the same key meanwhile, except on a board
// with max. A Charge or Append that failed on its way is not repeated, as it may
// have been done.
//
// Errors are ErrInvalid and ErrClosed only. An operation whose context has ended
// is done on the local store.
type Shared struct {
	primary, local Store
	cfg            SharedConfig
	log            *slog.Logger

	state   atomic.Int32
	closed  atomic.Bool
	doubt   atomic.Bool  // somebody's own time ended in an operation
	waiting atomic.Int32 // changes that the primary has not seen
	// boards counts beginnings and ends of changes of boards.
	boards atomic.Uint64

	mu        sync.Mutex
	journal   journal
	repeating change // taken from the journal, not yet known to be done
	cause     error  // of the last failure

	watch watch
	wake  chan struct{}
	stop  chan struct{}
	done  chan struct{}
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
		wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	s.doubt.Store(true) // the first question opens a connection before a request needs it
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

// try does an operation on the primary. It reports false if the local store has
// to do, and whether the primary may have seen the operation.
func (s *Shared) try(ctx context.Context, op func(context.Context) error) (ok, sent bool, err error) {
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
		s.doubt.Store(true)
		s.poke()
	default:
		s.mu.Lock()
		s.cause = err
		s.mu.Unlock()
		if s.state.CompareAndSwap(up, suspect) {
			s.poke()
		}
	}
	return false, true, nil
}

// count updates waiting; s.mu is held.
func (s *Shared) count() {
	n := s.journal.len()
	if s.repeating.id.name != "" {
		n++
	}
	s.waiting.Store(int32(n))
}

// note records changes that the primary has not seen.
func (s *Shared) note(changes ...change) {
	s.mu.Lock()
	for _, c := range changes {
		s.journal.add(c)
	}
	s.count()
	now := s.state.Load()
	s.mu.Unlock()
	if now == up {
		s.poke() // nothing else would
	}
}

// behind reports whether an older change of the same waits to be repeated, or is
// just being repeated: it may reach the primary after what is done now.
func (s *Shared) behind(ids ...changeID) bool {
	if s.waiting.Load() == 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(ids, func(id changeID) bool { return id.affects(s.repeating.id) || s.journal.affects(id) })
}

// Get returns the values of keys in order.
func (s *Shared) Get(ctx context.Context, keys ...string) (out [][]byte, err error) {
	ok, _, err := s.try(ctx, func(ctx context.Context) (err error) {
		out, err = s.primary.Get(ctx, keys...)
		return err
	})
	if ok {
		return out, err
	}
	return s.local.Get(context.WithoutCancel(ctx), keys...)
}

// Set replaces values.
func (s *Shared) Set(ctx context.Context, entries ...Entry) error {
	if err := CheckEntries(entries...); err != nil {
		return err
	}
	ids := make([]changeID, 0, len(entries))
	for _, e := range entries {
		ids = append(ids, changeID{changedValue, e.Key, ""})
	}
	behind := s.behind(ids...)
	ok, _, err := s.try(ctx, func(ctx context.Context) error { return s.primary.Set(ctx, entries...) })
	if err != nil {
		return err
	}
	if !ok || behind {
		now := time.Now()
		changes := make([]change, 0, len(entries))
		for i, e := range entries {
			changes = append(changes, change{id: ids[i], entry: e, ends: now.Add(min(e.TTL, MaxTTL))})
		}
		s.note(changes...)
	}
	return s.local.Set(context.WithoutCancel(ctx), entries...)
}

// Delete removes the value and the ring of each key.
func (s *Shared) Delete(ctx context.Context, keys ...string) error {
	if err := CheckKeys(keys...); err != nil {
		return err
	}
	changes, ids := make([]change, 0, len(keys)), make([]changeID, 0, len(keys))
	for _, k := range keys {
		id := changeID{deleted, k, ""}
		changes, ids = append(changes, change{id: id}), append(ids, id)
	}
	behind := s.behind(ids...)
	ok, _, err := s.try(ctx, func(ctx context.Context) error { return s.primary.Delete(ctx, keys...) })
	if err != nil {
		return err
	}
	if !ok || behind {
		s.note(changes...)
	}
	return s.local.Delete(context.WithoutCancel(ctx), keys...)
}

// Charge charges all amounts or none. The local store counts what this process
// charged; alone, it goes by the charges' shares.
func (s *Shared) Charge(ctx context.Context, charges ...Charge) (done Charged, err error) {
	if err := CheckCharges(charges...); err != nil {
		return Charged{}, err
	}
	ok, sent, err := s.try(ctx, func(ctx context.Context) (err error) {
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
				s.note(change{id: changeID{changedMeter, c.Account, c.Meter}, charge: c, ends: now.Add(c.Window)})
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
	id := changeID{changedSlot, key, slot}
	behind := s.behind(id)
	ok, _, err := s.try(ctx, func(ctx context.Context) (err error) {
		ring, err = s.primary.Push(ctx, key, slot, value, size, ttl)
		return err
	})
	if err != nil {
		return nil, err
	}
	local, err := s.local.Push(context.WithoutCancel(ctx), key, slot, value, size, ttl)
	if err == nil && (!ok || behind) {
		s.note(change{
			id: id, entry: Entry{Value: value}, size: size,
			ends: time.Now().Add(min(ttl, MaxTTL)), last: len(local) > 0 && bytes.Equal(local[len(local)-1], value),
		})
	}
	if ok {
		return ring, nil
	}
	return local, err
}

// Post puts a field on a board.
func (s *Shared) Post(ctx context.Context, board string, f Field, max bool) error {
	if err := CheckField(board, f); err != nil {
		return err
	}
	s.boards.Add(1)
	defer s.boards.Add(1)
	err := s.changeField(ctx, board, fieldChange{field: f, max: max}, func(ctx context.Context) error { return s.primary.Post(ctx, board, f, max) })
	if err != nil {
		return err
	}
	return s.local.Post(context.WithoutCancel(ctx), board, f, max)
}

// Remove takes a field off a board.
func (s *Shared) Remove(ctx context.Context, board, field string) error {
	if err := CheckKeys(board, field); err != nil {
		return err
	}
	s.boards.Add(1)
	defer s.boards.Add(1)
	gone := fieldChange{field: Field{Name: field}, gone: true}
	err := s.changeField(ctx, board, gone, func(ctx context.Context) error { return s.primary.Remove(ctx, board, field) })
	if err != nil {
		return err
	}
	return s.local.Remove(context.WithoutCancel(ctx), board, field)
}

// changeField makes op's change of a field on the primary, now or later.
func (s *Shared) changeField(ctx context.Context, board string, f fieldChange, op func(context.Context) error) error {
	id := changeID{changedField, board, f.field.Name}
	behind := s.behind(id)
	ok, _, err := s.try(ctx, op)
	if err == nil && (!ok || behind) {
		s.note(change{id: id, field: f})
	}
	return err
}

// Board returns the living fields of a board. While the primary is away, these
// are the fields last seen there and those posted here since.
func (s *Shared) Board(ctx context.Context, board string) (fields []Field, err error) {
	before := s.boards.Load()
	missed := s.missed(board)
	ok, _, err := s.try(ctx, func(ctx context.Context) (err error) {
		fields, err = s.primary.Board(ctx, board)
		return err
	})
	if err != nil {
		return nil, err
	}
	ctx = context.WithoutCancel(ctx)
	if !ok {
		return s.local.Board(ctx, board)
	}
	if len(missed) > 0 {
		fields = overlay(fields, missed)
	}
	s.keepBoard(ctx, board, fields, before)
	return fields, nil
}

// missed returns the changes of a board that the primary has not seen.
func (s *Shared) missed(board string) []fieldChange {
	if s.waiting.Load() == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []fieldChange
	if id := s.repeating.id; id.kind == changedField && id.name == board {
		out = append(out, s.repeating.field)
	}
	for e := s.journal.boards.Front(); e != nil; e = e.Next() {
		if c := e.Value.(*change); c.id.name == board {
			out = append(out, c.field)
		}
	}
	return out
}

func overlay(fields []Field, changes []fieldChange) []Field {
	now := time.Now()
	m := make(map[string]Field, len(fields)+len(changes))
	for _, f := range fields {
		m[f.Name] = f
	}
	for _, c := range changes {
		c.onto(m, now)
	}
	return slices.Collect(maps.Values(m))
}

// keepBoard makes the local board the same as the primary's, for the time when
// that is away.
func (s *Shared) keepBoard(ctx context.Context, board string, fields []Field, before uint64) {
	local, err := s.local.Board(ctx, board)
	if err != nil {
		return
	}
	here := make(map[string]Field, len(local))
	for _, f := range local {
		here[f.Name] = f
	}
	for _, f := range fields {
		if !sameField(here[f.Name], f) {
			_ = s.local.Post(ctx, board, f, false)
		}
		delete(here, f.Name)
	}
	for name := range here {
		if s.boards.Load() == before { // else it may be one that was posted meanwhile
			_ = s.local.Remove(ctx, board, name)
		}
	}
}

// Append adds an entry to a log.
func (s *Shared) Append(ctx context.Context, log string, entry []byte, size int) error {
	if err := CheckAppend(log, entry, size); err != nil {
		return err
	}
	ok, sent, err := s.try(ctx, func(ctx context.Context) error { return s.primary.Append(ctx, log, entry, size) })
	if err != nil {
		return err
	}
	if !ok && !sent {
		s.note(change{
			id: changeID{appended, log, ""}, entry: Entry{Value: entry}, size: size, ends: time.Now().Add(LogTTL),
		})
	}
	return s.local.Append(context.WithoutCancel(ctx), log, entry, size)
}

// Tail returns the newest n entries of a log, oldest first.
func (s *Shared) Tail(ctx context.Context, log string, n int) (out [][]byte, err error) {
	ok, _, err := s.try(ctx, func(ctx context.Context) (err error) {
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

// Close stops watching and closes both stores.
func (s *Shared) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	close(s.stop)
	<-s.done
	return errors.Join(s.primary.Close(), s.local.Close())
}
