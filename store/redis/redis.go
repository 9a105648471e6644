package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/rebound-llm/rebound/store"
)

// Store is a store.Store on a server. It is safe for concurrent use.
type Store struct {
	client  goredis.UniversalClient
	prefix  string
	timeout time.Duration
	closed  atomic.Bool
}

var _ store.Store = (*Store)(nil)

const (
	// valueMark starts every value: it tells an empty value from a missing one, for
	// which GETRANGE returns the same, and from what others wrote.
	valueMark = "="
	// grace is how long ended fields stay, so that a replica with a fast clock
	// does not remove fields that have not ended for others.
	grace = time.Minute
)

// Open returns a store; zero tunables mean the defaults. It does not connect: if
// the server is away, operations return ErrUnavailable, and Open no error.
func Open(cfg Config) (*Store, error) {
	def := Defaults()
	if cfg.Prefix == "" {
		cfg.Prefix = def.Prefix
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = def.Timeout
	}
	if cfg.PoolSize == 0 {
		cfg.PoolSize = def.PoolSize
	}
	if cfg.URL == "" && len(cfg.Addresses) == 0 {
		return nil, errors.New("opening the store: no server is configured")
	}
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("opening the store: %w", err)
	}
	client, err := connect(cfg)
	if err != nil {
		return nil, fmt.Errorf("opening the store: %w", err)
	}
	return &Store{client: client, prefix: cfg.Prefix, timeout: cfg.Timeout}, nil
}

// withTimeout limits an operation to the store's time-out.
func (s *Store) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if end, ok := ctx.Deadline(); ok && time.Until(end) <= s.timeout {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, s.timeout)
}

// wrap turns an error of go-redis or of the server into one of package store.
func (s *Store) wrap(err error) error {
	switch {
	case err == nil:
		return nil
	case s.closed.Load() || errors.Is(err, goredis.ErrClosed):
		return store.ErrClosed
	case errors.Is(err, goredis.ErrPoolTimeout), errors.Is(err, goredis.ErrPoolExhausted):
		return fmt.Errorf("%w: %w", store.ErrBusy, err)
	}
	return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
}

// isWrongType reports whether an error says that a key has another type than ours.
// It searches the text, as servers before version 7 wrap the error of a script.
func isWrongType(err error) bool {
	return err != nil && strings.Contains(err.Error(), "WRONGTYPE")
}

// runRead runs a script that only reads. A key of another type counts as missing.
func (s *Store) runRead(ctx context.Context, script *goredis.Script, key string, args ...any) ([][]byte, error) {
	ctx, cancel := s.withTimeout(ctx)
	defer cancel()
	out, err := script.Run(ctx, s.client, []string{key}, args...).Result()
	if isWrongType(err) {
		return nil, nil
	}
	return byteStrings(out), s.wrap(err)
}

// runWrite runs a script that writes its keys. If one has another type, it removes all of them and runs the script again.
func (s *Store) runWrite(ctx context.Context, script *goredis.Script, keys []string, args ...any) (any, error) {
	ctx, cancel := s.withTimeout(ctx)
	defer cancel()
	out, err := script.Run(ctx, s.client, keys, args...).Result()
	if isWrongType(err) {
		if err = s.client.Unlink(ctx, keys...).Err(); err == nil {
			out, err = script.Run(ctx, s.client, keys, args...).Result()
		}
	}
	return out, s.wrap(err)
}

// byteStrings returns the strings of a script's reply and skips other elements.
func byteStrings(v any) [][]byte {
	list, _ := v.([]any)
	out := make([][]byte, 0, len(list))
	for _, e := range list {
		if t, ok := e.(string); ok {
			out = append(out, []byte(t))
		}
	}
	return out
}

// Get returns the values of keys in order.
func (s *Store) Get(ctx context.Context, keys ...string) ([][]byte, error) {
	if err := store.CheckKeys(keys...); err != nil {
		return nil, err
	}
	if len(keys) == 0 {
		return nil, nil
	}
	ctx, cancel := s.withTimeout(ctx)
	defer cancel()
	out := make([][]byte, len(keys))
	// One byte more than the largest value is enough to see that a value is too large.
	const last = int64(len(valueMark) + store.MaxValue)
	if len(keys) == 1 {
		got, err := s.client.GetRange(ctx, s.prefix+"v:"+keys[0], 0, last).Result()
		if err != nil && !isWrongType(err) {
			return nil, s.wrap(err)
		}
		out[0] = parseValue(got)
		return out, nil
	}
	cmds := make([]*goredis.StringCmd, len(keys))
	_, err := s.client.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for i, k := range keys {
			cmds[i] = p.GetRange(ctx, s.prefix+"v:"+k, 0, last)
		}
		return nil
	})
	if err != nil && !isWrongType(err) {
		return nil, s.wrap(err)
	}
	for i, c := range cmds {
		got, err := c.Result()
		if err != nil && !isWrongType(err) {
			return nil, s.wrap(err)
		}
		out[i] = parseValue(got)
	}
	return out, nil
}

// parseValue returns the value, or nil for a missing, foreign or too large one.
func parseValue(got string) []byte {
	v, ok := strings.CutPrefix(got, valueMark)
	if !ok || len(v) > store.MaxValue {
		return nil
	}
	return []byte(v)
}

// Set replaces values.
func (s *Store) Set(ctx context.Context, entries ...store.Entry) error {
	if err := store.CheckEntries(entries...); err != nil {
		return err
	}
	if len(entries) == 0 {
		return nil
	}
	ctx, cancel := s.withTimeout(ctx)
	defer cancel()
	_, err := s.client.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for _, e := range entries {
			ttl, _ := store.Lifetime(e.TTL)
			key, value := s.prefix+"v:"+e.Key, append([]byte(valueMark), e.Value...)
			if e.Once {
				p.SetNX(ctx, key, value, wholeMillis(ttl))
			} else {
				p.Set(ctx, key, value, wholeMillis(ttl))
			}
		}
		return nil
	})
	return s.wrap(err)
}

// Flush returns at once: values are on the server when Set returns.
func (s *Store) Flush(context.Context, ...string) {}

// wholeMillis rounds up to milliseconds, the unit of lifetimes on the server.
func wholeMillis(d time.Duration) time.Duration {
	return (d + time.Millisecond - 1).Truncate(time.Millisecond)
}

func millis(d time.Duration) int64 { return wholeMillis(d).Milliseconds() }

// Delete removes the value and the ring of each key.
func (s *Store) Delete(ctx context.Context, keys ...string) error {
	if err := store.CheckKeys(keys...); err != nil {
		return err
	}
	if len(keys) == 0 {
		return nil
	}
	ctx, cancel := s.withTimeout(ctx)
	defer cancel()
	_, err := s.client.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for _, k := range keys {
			for _, kind := range [...]string{"v:", "r:"} {
				p.Unlink(ctx, s.prefix+kind+k)
			}
		}
		return nil
	})
	return s.wrap(err)
}

// Push puts value into a ring and returns the ring.
func (s *Store) Push(ctx context.Context, key, slot string, value []byte, size int, ttl time.Duration) ([][]byte, error) {
	if err := store.CheckPush(key, slot, value, size); err != nil {
		return nil, err
	}
	ttl, err := store.Lifetime(ttl)
	if err != nil {
		return nil, err
	}
	out, err := s.runWrite(ctx, pushScript, []string{s.prefix + "r:" + key},
		strconv.Itoa(len(slot))+":"+slot, value, size, millis(ttl), store.MaxValue+store.MaxKey+8)
	if err != nil {
		return nil, err
	}
	elements := byteStrings(out)
	ring := make([][]byte, 0, len(elements))
	for _, e := range elements {
		if v, ok := parseSlot(e); ok {
			ring = append(ring, v)
		}
	}
	return ring, nil
}

// parseSlot returns the value of an element of a ring, "LEN:SLOT" and the value.
func parseSlot(e []byte) ([]byte, bool) {
	at := slices.Index(e[:min(len(e), 8)], ':')
	if at < 0 {
		return nil, false
	}
	n, err := strconv.Atoi(string(e[:at]))
	start := at + 1 + n
	if err != nil || n < 1 || n > store.MaxKey || start > len(e) || len(e)-start > store.MaxValue {
		return nil, false
	}
	return e[start:], true
}

// Post puts a field on a board.
func (s *Store) Post(ctx context.Context, board string, f store.Field, max bool) error {
	if err := store.CheckField(board, f); err != nil {
		return err
	}
	now := time.Now()
	flag := "0"
	if max {
		flag = "1"
	}
	_, err := s.runWrite(ctx, postScript, []string{s.prefix + "b:" + board},
		f.Name, micros(store.End(f.Until, now)), f.Value, flag, micros(now),
		grace.Microseconds(), store.MaxTTL.Microseconds(), store.MaxFields)
	return err
}

// micros is never negative, as the scripts accept only digits.
func micros(t time.Time) int64 { return max(t.UnixMicro(), 0) }

// Remove removes a field from a board.
func (s *Store) Remove(ctx context.Context, board, field string) error {
	if err := store.CheckKeys(board, field); err != nil {
		return err
	}
	ctx, cancel := s.withTimeout(ctx)
	defer cancel()
	err := s.client.HDel(ctx, s.prefix+"b:"+board, field).Err()
	if isWrongType(err) {
		return nil
	}
	return s.wrap(err)
}

// Board returns the fields of a board that have not ended.
func (s *Store) Board(ctx context.Context, board string) ([]store.Field, error) {
	if err := store.CheckKeys(board); err != nil {
		return nil, err
	}
	flat, err := s.runRead(ctx, boardScript, s.prefix+"b:"+board, store.MaxFields, store.MaxKey, store.MaxField+24)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	fields := make([]store.Field, 0, len(flat)/2)
	for i := 0; i+1 < len(flat); i += 2 {
		f, ok := parseField(flat[i], flat[i+1], now)
		if ok && f.Alive(now) {
			fields = append(fields, f)
		}
	}
	return fields, nil
}

// parseField parses "UNTIL:" and a value.
func parseField(name, v []byte, now time.Time) (store.Field, bool) {
	at := slices.Index(v[:min(len(v), 24)], ':')
	if at < 0 {
		return store.Field{}, false
	}
	us, err := strconv.ParseInt(string(v[:at]), 10, 64)
	f := store.Field{Name: string(name), Value: v[at+1:], Until: time.UnixMicro(us)}
	if err != nil || f.Until.After(now.Add(store.MaxTTL+grace)) || store.CheckField("-", f) != nil {
		return store.Field{}, false
	}
	return f, true
}

// Append adds an entry to a log.
func (s *Store) Append(ctx context.Context, log string, entry []byte, size int) error {
	if err := store.CheckAppend(log, entry, size); err != nil {
		return err
	}
	_, err := s.runWrite(ctx, appendScript, []string{s.prefix + "l:" + log}, entry, size, millis(store.LogTTL))
	return err
}

// Tail returns the newest n entries of a log, oldest first.
func (s *Store) Tail(ctx context.Context, log string, n int) ([][]byte, error) {
	if err := store.CheckKeys(log); err != nil {
		return nil, err
	}
	if n <= 0 {
		return nil, nil
	}
	entries, err := s.runRead(ctx, tailScript, s.prefix+"l:"+log, min(n, store.MaxLog), store.MaxEntry, store.MaxTail)
	if err != nil {
		return nil, err
	}
	slices.Reverse(entries)
	return entries, nil
}

// Ping reports whether the server accepts a write: a replica, and a server out
// of disk or memory, would answer PING all the same. In a Cluster every master
// must answer PING too.
func (s *Store) Ping(ctx context.Context) error {
	ctx, cancel := s.withTimeout(ctx)
	defer cancel()
	if cluster, ok := s.client.(*goredis.ClusterClient); ok {
		err := cluster.ForEachMaster(ctx, func(ctx context.Context, c *goredis.Client) error { return c.Ping(ctx).Err() })
		if err != nil {
			return s.wrap(err)
		}
	}
	return s.wrap(s.client.Set(ctx, s.prefix+"ping", "1", time.Second).Err())
}

// Close closes the connections.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	if err := s.client.Close(); err != nil {
		return fmt.Errorf("closing the store: %w", err)
	}
	return nil
}
