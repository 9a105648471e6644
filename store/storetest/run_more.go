package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/store"
)

func counters(t *testing.T, s store.Store) {
	for _, step := range []struct{ delta, want int64 }{
		{0, 0}, {3, 3}, {-5, -2}, {0, -2}, {1 << 60, 1<<60 - 2}, {1, 1<<60 - 1},
	} {
		got, err := s.Add(ctx, "c", step.delta, time.Hour)
		must(t, err)
		if got != step.want {
			t.Errorf("Add(%d) = %d, want %d", step.delta, got, step.want)
		}
	}
}

func counterLifetime(t *testing.T, s store.Store) {
	// Each Add asks for an hour more; the counter ends all the same.
	_, err := s.Add(ctx, "c", 100, 50*time.Millisecond)
	must(t, err)
	Eventually(t, "the counter starts anew", soon, func() bool {
		n, err := s.Add(ctx, "c", 1, time.Hour)
		must(t, err)
		return n == 1
	})
	time.Sleep(60 * time.Millisecond)
	if n, err := s.Add(ctx, "c", 1, time.Millisecond); err != nil || n != 2 {
		t.Errorf("Add = %d, %v; the new counter has the new lifetime, want 2", n, err)
	}
}

func counterOverflow(t *testing.T, s store.Store) {
	_, err := s.Add(ctx, "c", math.MaxInt64, time.Hour)
	must(t, err)
	if _, err := s.Add(ctx, "c", 1, time.Hour); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("beyond 64 bits: %v, want ErrInvalid", err)
	}
	if n, err := s.Add(ctx, "c", 0, time.Hour); err != nil || n != math.MaxInt64 {
		t.Errorf("Add(0) = %d, %v, want the old sum", n, err)
	}
}

func countersConcurrent(t *testing.T, s store.Store) {
	together(t, 8, func(int) error {
		for range 50 {
			if _, err := s.Add(ctx, "c", 1, time.Hour); err != nil {
				return err
			}
		}
		return nil
	})
	if n, err := s.Add(ctx, "c", 0, time.Hour); err != nil || n != 400 {
		t.Errorf("the sum is %d, %v, want 400", n, err)
	}
}

// Fields returns a board as a map.
func Fields(t testing.TB, s store.Store, board string) map[string]store.Field {
	t.Helper()
	list, err := s.Board(ctx, board)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]store.Field{}
	for _, f := range list {
		out[f.Name] = f
	}
	return out
}

func boards(t *testing.T, s store.Store) {
	if got := Fields(t, s, "b"); len(got) != 0 {
		t.Errorf("a new board has %v", got)
	}
	until := time.Now().Add(time.Hour)
	must(t, s.Post(ctx, "b", store.Field{Name: "x", Value: []byte("1"), Until: until}, false))
	must(t, s.Post(ctx, "b", store.Field{Name: "y", Until: until}, true))
	must(t, s.Post(ctx, "other", store.Field{Name: "z", Until: until}, true))
	got := Fields(t, s, "b")
	if d := until.Sub(got["x"].Until); len(got) != 2 || string(got["x"].Value) != "1" || d < 0 || d > time.Microsecond {
		t.Errorf("the board is %v", got)
	}
	must(t, s.Post(ctx, "b", store.Field{Name: "x", Value: []byte("2"), Until: until.Add(-time.Minute)}, false))
	if got := Fields(t, s, "b"); string(got["x"].Value) != "2" {
		t.Errorf("without max, the field is %q, want the newer", got["x"].Value)
	}
	must(t, s.Remove(ctx, "b", "x"))
	must(t, s.Remove(ctx, "b", "never"))
	must(t, s.Remove(ctx, "never", "x"))
	if got := Fields(t, s, "b"); len(got) != 1 {
		t.Errorf("after Remove the board is %v", got)
	}
}

func boardMax(t *testing.T, s store.Store) {
	now := time.Now()
	post := func(value string, minutes int, want string) {
		t.Helper()
		f := store.Field{Name: "x", Value: []byte(value), Until: now.Add(time.Duration(minutes) * time.Minute)}
		must(t, s.Post(ctx, "b", f, true))
		if got := Fields(t, s, "b")["x"]; string(got.Value) != want {
			t.Errorf("after posting %s until +%dm the field is %q, want %q", value, minutes, got.Value, want)
		}
	}
	post("a", 10, "a")
	post("b", 5, "a")
	post("c", 10, "c") // the same end: the newer
	post("d", 20, "d")
	post("e", -1, "d")
	must(t, s.Post(ctx, "b", store.Field{Name: "y", Value: []byte("short"), Until: now.Add(time.Millisecond)}, true))
	post("f", 30, "f")
}

func boardMaxConcurrent(t *testing.T, s store.Store) {
	now := time.Now()
	together(t, 8, func(n int) error {
		for i := range 20 {
			f := store.Field{Name: "x", Value: fmt.Append(nil, i), Until: now.Add(time.Duration(10+i*8+n) * time.Minute)}
			if err := s.Post(ctx, "b", f, true); err != nil {
				return err
			}
			if err := s.Post(ctx, "b", store.Field{Name: fmt.Sprint(n, i), Until: f.Until}, false); err != nil {
				return err
			}
		}
		return nil
	})
	got := Fields(t, s, "b")
	if want := now.Add((10 + 19*8 + 7) * time.Minute); want.Sub(got["x"].Until) > time.Microsecond || len(got) != 161 {
		t.Errorf("%d fields, x ends %v, want 161 and %v", len(got), got["x"].Until, want)
	}
}

func boardsExpire(t *testing.T, s store.Store) {
	now := time.Now()
	must(t, s.Post(ctx, "b", store.Field{Name: "short", Until: now.Add(50 * time.Millisecond)}, true))
	must(t, s.Post(ctx, "b", store.Field{Name: "long", Until: now.Add(time.Hour)}, true))
	must(t, s.Post(ctx, "b", store.Field{Name: "longest", Until: now.Add(100 * 365 * 24 * time.Hour)}, true))
	must(t, s.Post(ctx, "b", store.Field{Name: "past", Until: now.Add(-time.Hour)}, true))
	must(t, s.Post(ctx, "b", store.Field{Name: "ancient", Until: time.Unix(-1e9, 0)}, true))
	must(t, s.Post(ctx, "alone", store.Field{Name: "short", Until: now.Add(50 * time.Millisecond)}, true))
	Eventually(t, "the short fields end", soon, func() bool {
		return len(Fields(t, s, "b")) == 2 && len(Fields(t, s, "alone")) == 0
	})
	must(t, s.Post(ctx, "b", store.Field{Name: "short", Value: []byte("2"), Until: now.Add(time.Hour)}, true))
	if got := Fields(t, s, "b"); len(got) != 3 || string(got["short"].Value) != "2" {
		t.Errorf("the board is %v", got)
	}
	// An end that has passed removes the field, unless max protects it.
	must(t, s.Post(ctx, "b", store.Field{Name: "long", Until: now.Add(-time.Hour)}, true))
	must(t, s.Post(ctx, "b", store.Field{Name: "short", Until: now.Add(-time.Hour)}, false))
	if got := Fields(t, s, "b"); len(got) != 2 || got["long"].Name == "" {
		t.Errorf("the board is %v", got)
	}
}

func boardsBounded(t *testing.T, s store.Store) {
	now := time.Now()
	together(t, 4, func(n int) error {
		for i := range store.MaxFields/4 + 5 {
			f := store.Field{Name: fmt.Sprintf("%d-%d", n, i), Until: now.Add(time.Hour + time.Duration(i)*time.Second)}
			if err := s.Post(ctx, "b", f, true); err != nil {
				return err
			}
		}
		return nil
	})
	got := Fields(t, s, "b")
	if _, ok := got["0-0"]; ok || len(got) != store.MaxFields {
		t.Errorf("%d fields, want %d and not the one that ends first", len(got), store.MaxFields)
	}
}

func tail(t *testing.T, s store.Store, n int) string {
	t.Helper()
	got, err := s.Tail(ctx, "log", n)
	must(t, err)
	return string(bytes.Join(got, []byte(" ")))
}

func logs(t *testing.T, s store.Store) {
	if got := tail(t, s, 10); got != "" {
		t.Errorf("a new log has %q", got)
	}
	for i := range 20 {
		must(t, s.Append(ctx, "log", fmt.Append(nil, i), 10))
	}
	for n, want := range map[int]string{
		1: "19", 3: "17 18 19", 10: "10 11 12 13 14 15 16 17 18 19", 0: "", -1: "",
		math.MaxInt: "10 11 12 13 14 15 16 17 18 19",
	} {
		if got := tail(t, s, n); got != want {
			t.Errorf("Tail(%d) = %q, want %q", n, got, want)
		}
	}
	must(t, s.Append(ctx, "log", []byte("last"), 2))
	if got := tail(t, s, 9); got != "19 last" {
		t.Errorf("after Append with a smaller size: %q", got)
	}
}

func logsBounded(t *testing.T, s store.Store) {
	large := bytes.Repeat([]byte("x"), store.MaxEntry)
	for range store.MaxTail/store.MaxEntry + 20 {
		must(t, s.Append(ctx, "log", large, 1000))
	}
	got, err := s.Tail(ctx, "log", 1000)
	must(t, err)
	if size := len(got) * store.MaxEntry; size > store.MaxTail || size == 0 {
		t.Errorf("Tail returned %d bytes, the limit is %d", size, store.MaxTail)
	}
}

func logsConcurrent(t *testing.T, s store.Store) {
	together(t, 8, func(n int) error {
		for i := range 25 {
			if err := s.Append(ctx, "log", fmt.Append(nil, n, i), 150); err != nil {
				return err
			}
		}
		return nil
	})
	if got, err := s.Tail(ctx, "log", 1000); err != nil || len(got) != 150 {
		t.Errorf("%d entries, %v, want 150", len(got), err)
	}
}

func bounds(t *testing.T, s store.Store) {
	long := strings.Repeat("k", store.MaxKey+1)
	later := time.Now().Add(time.Hour)
	huge := make([]byte, store.MaxValue+1)
	many := make([]string, store.MaxKeys+1)
	for i := range many {
		many[i] = "k"
	}
	set := func(k string, v []byte, ttl time.Duration) error {
		return s.Set(ctx, store.Entry{Key: "fine", TTL: time.Hour}, store.Entry{Key: k, Value: v, TTL: ttl})
	}
	push := func(k, slot string, v []byte, size int, ttl time.Duration) error {
		_, err := s.Push(ctx, k, slot, v, size, ttl)
		return err
	}
	add := func(k string, ttl time.Duration) error { _, err := s.Add(ctx, k, 1, ttl); return err }
	read := func(keys ...string) error { _, err := s.Get(ctx, keys...); return err }
	for what, err := range map[string]error{
		"Get of an empty key":     read("k", ""),
		"Get of a long key":       read(long),
		"Get of many keys":        read(many...),
		"Delete of many keys":     s.Delete(ctx, many...),
		"Set of an empty key":     set("", nil, time.Hour),
		"Set of a large value":    set("k", huge, time.Hour),
		"Set without lifetime":    set("k", nil, 0),
		"Set with a past":         set("k", nil, -time.Second),
		"Set of many":             s.Set(ctx, make([]store.Entry, store.MaxKeys+1)...),
		"Delete of a long key":    s.Delete(ctx, long),
		"Add to a long key":       add(long, time.Hour),
		"Add without lifetime":    add("k", 0),
		"Push to a long slot":     push("k", long, nil, 1, time.Hour),
		"Push to no slot":         push("k", "", nil, 1, time.Hour),
		"Push of a large value":   push("k", "s", huge, 1, time.Hour),
		"Push to size 0":          push("k", "s", nil, 0, time.Hour),
		"Push to a large ring":    push("k", "s", nil, store.MaxRing+1, time.Hour),
		"Push without lifetime":   push("k", "s", nil, 1, 0),
		"Post of a large value":   s.Post(ctx, "b", store.Field{Name: "f", Value: huge[:store.MaxField+1], Until: later}, true),
		"Post of no name":         s.Post(ctx, "b", store.Field{Until: later}, true),
		"Post without end":        s.Post(ctx, "b", store.Field{Name: "f"}, true),
		"Post to a long board":    s.Post(ctx, long, store.Field{Name: "f", Until: later}, true),
		"Remove of a long field":  s.Remove(ctx, "b", long),
		"Append of a large entry": s.Append(ctx, "l", huge[:store.MaxEntry+1], 5),
		"Append to size 0":        s.Append(ctx, "l", nil, 0),
		"Append to a large log":   s.Append(ctx, "l", nil, store.MaxLog+1),
	} {
		if !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", what, err)
		}
	}
	if get(t, s, "fine") != nil {
		t.Error("a Set with an invalid entry has set another")
	}
}

// endedContexts: an operation whose context has ended returns at once. It may
// succeed; if not, the error says why.
func endedContexts(t *testing.T, s store.Store) {
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	late, cancel := context.WithDeadline(ctx, time.Now().Add(-time.Second))
	defer cancel()
	for _, c := range []context.Context{cancelled, late} {
		start := time.Now()
		_, getErr := s.Get(c, "k", "l")
		_, addErr := s.Add(c, "k", 1, time.Hour)
		_, boardErr := s.Board(c, "b")
		_, tailErr := s.Tail(c, "l", 1)
		for _, err := range []error{
			getErr, addErr, boardErr, tailErr,
			s.Set(c, store.Entry{Key: "k", TTL: time.Hour}),
			s.Post(c, "b", store.Field{Name: "f", Until: start.Add(time.Hour)}, true),
			s.Append(c, "l", nil, 1),
		} {
			if err != nil && !errors.Is(err, c.Err()) && !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("with an ended context: %v", err)
			}
		}
		if d := time.Since(start); d > time.Second {
			t.Errorf("with an ended context, seven operations took %v", d)
		}
	}
	must(t, s.Ping(ctx))
}

func closed(t *testing.T, s store.Store) {
	must(t, s.Close())
	must(t, s.Close())
	_, getErr := s.Get(ctx, "k")
	_, pushErr := s.Push(ctx, "k", "s", nil, 1, time.Hour)
	_, boardErr := s.Board(ctx, "b")
	for _, err := range []error{
		getErr, pushErr, boardErr, s.Ping(ctx),
		s.Set(ctx, store.Entry{Key: "k", TTL: time.Hour}), s.Append(ctx, "l", nil, 1),
	} {
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("after Close: %v, want ErrClosed", err)
		}
	}
}
