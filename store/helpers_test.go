package store_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rebound-llm/rebound/store"
	"github.com/rebound-llm/rebound/store/memory"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

var (
	ctx     = context.Background()
	errDown = fmt.Errorf("%w: connection refused", store.ErrUnavailable)
)

// server is a store whose failures a test scripts.
type server struct {
	store.Store
	mu    sync.Mutex
	err   error         // of every operation
	opErr error         // of every operation but Ping
	delay time.Duration // of every operation
	calls atomic.Int64  // number of operations but Ping
	pings atomic.Int64

	entries int    // number of entries that were set
	most    int    // bytes of values that one Set can carry; 0 is no limit
	onBoard func() // is called once, after a board was read
}

func newServer() *server { return &server{Store: memory.New(memory.Config{})} }

func (s *server) set(err, opErr error, delay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err, s.opErr, s.delay = err, opErr, delay
}

func (s *server) enter(ctx context.Context, ping bool) error {
	s.mu.Lock()
	err, opErr, delay := s.err, s.opErr, s.delay
	s.mu.Unlock()
	if ping {
		s.pings.Add(1)
	} else {
		s.calls.Add(1)
		err = errors.Join(err, opErr)
	}
	if delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", store.ErrUnavailable, ctx.Err())
		case <-timer.C:
		}
	}
	return err
}

func (s *server) Ping(ctx context.Context) error { return s.enter(ctx, true) }

func (s *server) Get(ctx context.Context, keys ...string) ([][]byte, error) {
	if err := s.enter(ctx, false); err != nil {
		return nil, err
	}
	return s.Store.Get(ctx, keys...)
}

func (s *server) Set(ctx context.Context, entries ...store.Entry) error {
	if err := s.enter(ctx, false); err != nil {
		return err
	}
	bytes := 0
	for _, e := range entries {
		bytes += len(e.Value)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.most > 0 && bytes > s.most {
		return errDown
	}
	err := s.Store.Set(ctx, entries...)
	if err == nil {
		s.entries += len(entries)
	}
	return err
}

func (s *server) Delete(ctx context.Context, keys ...string) error {
	if err := s.enter(ctx, false); err != nil {
		return err
	}
	return s.Store.Delete(ctx, keys...)
}

func (s *server) Charge(ctx context.Context, charges ...store.Charge) (store.Charged, error) {
	if err := s.enter(ctx, false); err != nil {
		return store.Charged{}, err
	}
	return s.Store.Charge(ctx, charges...)
}

func (s *server) Push(ctx context.Context, key, slot string, v []byte, size int, ttl time.Duration) ([][]byte, error) {
	if err := s.enter(ctx, false); err != nil {
		return nil, err
	}
	return s.Store.Push(ctx, key, slot, v, size, ttl)
}

func (s *server) Post(ctx context.Context, board string, f store.Field, max bool) error {
	if err := s.enter(ctx, false); err != nil {
		return err
	}
	return s.Store.Post(ctx, board, f, max)
}

func (s *server) Remove(ctx context.Context, board, field string) error {
	if err := s.enter(ctx, false); err != nil {
		return err
	}
	return s.Store.Remove(ctx, board, field)
}

func (s *server) Board(ctx context.Context, board string) ([]store.Field, error) {
	if err := s.enter(ctx, false); err != nil {
		return nil, err
	}
	defer func() {
		s.mu.Lock()
		f := s.onBoard
		s.onBoard = nil
		if s.mu.Unlock(); f != nil {
			f()
		}
	}()
	return s.Store.Board(ctx, board)
}

func (s *server) Append(ctx context.Context, log string, entry []byte, size int) error {
	if err := s.enter(ctx, false); err != nil {
		return err
	}
	return s.Store.Append(ctx, log, entry, size)
}

func (s *server) Tail(ctx context.Context, log string, n int) ([][]byte, error) {
	if err := s.enter(ctx, false); err != nil {
		return nil, err
	}
	return s.Store.Tail(ctx, log, n)
}

// lines is a slog.Handler that collects the logged lines.
type lines struct {
	mu   sync.Mutex
	text []string
}

func (l *lines) Enabled(context.Context, slog.Level) bool { return true }
func (l *lines) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *lines) WithGroup(string) slog.Handler            { return l }

func (l *lines) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
	l.text = append(l.text, text)
	return nil
}

func (l *lines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.text)
}

// count returns the numbers of lines that say that the server is away, and that it is back.
func (l *lines) count() (gone, back int) {
	for _, line := range l.all() {
		switch line[:4] {
		case "WARN":
			gone++
		case "INFO":
			back++
		}
	}
	return gone, back
}

// expect checks the numbers of lines that say that the server is away, and that it is back.
func (l *lines) expect(t *testing.T, gone, back int) {
	t.Helper()
	if g, b := l.count(); g != gone || b != back {
		t.Errorf("%d lines say away and %d back, want %d and %d: %q", g, b, gone, back, l.all())
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func value(t testing.TB, s store.Store, key string) string {
	t.Helper()
	got, err := s.Get(ctx, key)
	must(t, err)
	return string(got[0])
}

func set(t testing.TB, s store.Store, key, value string) {
	t.Helper()
	must(t, s.Set(ctx, store.Entry{Key: key, Value: []byte(value), TTL: time.Hour}))
	s.Flush(ctx, key)
}

func post(t testing.TB, s store.Store, board, field string, minutes int, max bool) {
	t.Helper()
	must(t, s.Post(ctx, board, store.Field{Name: field, Until: time.Now().Add(time.Duration(minutes) * time.Minute)}, max))
}
