package storetest

import (
	"bytes"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/store"
)

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
	concurrently(t, 8, func(n int) error {
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
	// A post whose end has passed removes the field, unless max protects it.
	must(t, s.Post(ctx, "b", store.Field{Name: "long", Until: now.Add(-time.Hour)}, true))
	must(t, s.Post(ctx, "b", store.Field{Name: "short", Until: now.Add(-time.Hour)}, false))
	if got := Fields(t, s, "b"); len(got) != 2 || got["long"].Name == "" {
		t.Errorf("the board is %v", got)
	}
}

func boardsBounded(t *testing.T, s store.Store) {
	now := time.Now()
	concurrently(t, 4, func(n int) error {
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

func hostileBoards(t *testing.T, s store.Store) {
	names, texts := hostileNames()
	for _, n := range names {
		for _, v := range texts {
			must(t, s.Post(ctx, n, store.Field{Name: n, Value: v, Until: time.Now().Add(time.Hour)}, false))
			fields, err := s.Board(ctx, n)
			must(t, err)
			if len(fields) != 1 || fields[0].Name != n || !bytes.Equal(fields[0].Value, v) {
				t.Errorf("board of %q = %v, want %q", n, fields, v)
			}
		}
	}
}

func separateBoards(t *testing.T, s store.Store) {
	must(t, s.Set(ctx, store.Entry{Key: "k", Value: []byte("v"), TTL: time.Hour}))
	must(t, s.Post(ctx, "k", store.Field{Name: "f", Until: time.Now().Add(time.Hour)}, true))
	if string(get(t, s, "k")) != "v" {
		t.Error("a board disturbs a value of the same name")
	}
	must(t, s.Delete(ctx, "k"))
	if fields := Fields(t, s, "k"); len(fields) != 1 {
		t.Errorf("Delete removed a board: %v", fields)
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
	concurrently(t, 8, func(n int) error {
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
