package storetest

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/store"
)

func get(t *testing.T, s store.Store, key string) []byte {
	t.Helper()
	got, err := s.Get(ctx, key)
	must(t, err)
	if len(got) != 1 {
		t.Fatalf("Get of one key returned %d values", len(got))
	}
	return got[0]
}

func values(t *testing.T, s store.Store) {
	if v := get(t, s, "k"); v != nil {
		t.Errorf("a missing value is %q, want nil", v)
	}
	must(t, s.Set(ctx, store.Entry{Key: "k", Value: []byte("one"), TTL: time.Hour}))
	must(t, s.Set(ctx, store.Entry{Key: "k", Value: []byte("two"), TTL: time.Hour}))
	if v := get(t, s, "k"); string(v) != "two" {
		t.Errorf("Get = %q, want two", v)
	}
	for _, v := range [][]byte{{}, nil} {
		must(t, s.Set(ctx, store.Entry{Key: "k", Value: v, TTL: time.Hour}))
		if v := get(t, s, "k"); v == nil || len(v) != 0 {
			t.Errorf("an empty value is %#v, want empty and not nil", v)
		}
	}
	must(t, s.Delete(ctx, "k", "missing"))
	if v := get(t, s, "k"); v != nil {
		t.Errorf("a deleted value is %q", v)
	}
	must(t, s.Ping(ctx))
}

func manyValues(t *testing.T, s store.Store) {
	var entries []store.Entry
	var keys []string
	for i := range 200 {
		key := fmt.Sprintf("key-%d", i)
		keys = append(keys, key, "missing-"+key)
		entries = append(entries, store.Entry{Key: key, Value: []byte(key), TTL: time.Hour})
	}
	must(t, s.Set(ctx, entries...))
	got, err := s.Get(ctx, keys...)
	must(t, err)
	for i, k := range keys {
		if want := !strings.HasPrefix(k, "missing-"); (got[i] != nil) != want || (want && string(got[i]) != k) {
			t.Fatalf("value %d, of %s, is %q", i, k, got[i])
		}
	}
	must(t, s.Delete(ctx, keys...))
	got, err = s.Get(ctx, append(keys, keys[0])...)
	must(t, err)
	if slices.ContainsFunc(got, func(b []byte) bool { return b != nil }) {
		t.Error("values are left after Delete")
	}
	// Without keys or entries there is no error.
	must(t, s.Set(ctx))
	must(t, s.Delete(ctx))
	if got, err := s.Get(ctx); err != nil || len(got) != 0 {
		t.Errorf("Get of nothing = %v, %v", got, err)
	}
}

func valuesOnce(t *testing.T, s store.Store) {
	once := func(key, value string) store.Entry {
		return store.Entry{Key: key, Value: []byte(value), TTL: time.Hour, Once: true}
	}
	must(t, s.Set(ctx, once("new", "first"), store.Entry{Key: "old", Value: []byte("first"), TTL: time.Hour}))
	must(t, s.Set(ctx, once("new", "second"), once("old", "second"), once("third", "third")))
	for key, want := range map[string]string{"new": "first", "old": "first", "third": "third"} {
		if got := string(get(t, s, key)); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	must(t, s.Delete(ctx, "new"))
	must(t, s.Set(ctx, once("new", "again")))
	if got := string(get(t, s, "new")); got != "again" {
		t.Errorf("after Delete the value is %q", got)
	}
}

func valuesExpire(t *testing.T, s store.Store) {
	must(t, s.Set(ctx,
		store.Entry{Key: "short", Value: []byte("x"), TTL: 30 * time.Millisecond},
		store.Entry{Key: "shortest", Value: []byte("x"), TTL: time.Nanosecond},
		store.Entry{Key: "long", Value: []byte("x"), TTL: time.Hour},
		store.Entry{Key: "longest", Value: []byte("x"), TTL: math.MaxInt64},
		store.Entry{Key: "again", Value: []byte("x"), TTL: 30 * time.Millisecond}))
	must(t, s.Set(ctx, store.Entry{Key: "again", Value: []byte("y"), TTL: time.Hour}))
	Eventually(t, "the short values end", soon, func() bool {
		return get(t, s, "short") == nil && get(t, s, "shortest") == nil
	})
	for _, k := range []string{"long", "longest", "again"} {
		if get(t, s, k) == nil {
			t.Errorf("%s ended early", k)
		}
	}
}

// hostileNames returns names and values that a careless store would misread.
func hostileNames() (names []string, texts [][]byte) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	return []string{
		"a b", "{x}", "{}", "}{", "\x00", "\xff\xfe", "k\r\nDEL k", "ünï", "*", "a:b:c", "%s%d",
		"}{rebound:", strings.Repeat("k", store.MaxKey),
	}, [][]byte{all, []byte("="), []byte("1:"), []byte("3:abc"), []byte("nil"), []byte("\r\n$-1\r\n")}
}

func hostile(t *testing.T, s store.Store) {
	names, texts := hostileNames()
	for _, n := range names {
		for _, v := range texts {
			must(t, s.Set(ctx, store.Entry{Key: n, Value: v, TTL: time.Hour}))
			if got := get(t, s, n); !bytes.Equal(got, v) {
				t.Errorf("value of %q = %q, want %q", n, got, v)
			}
			ring, err := s.Push(ctx, n, n, v, 2, time.Hour)
			must(t, err)
			if len(ring) != 1 || !bytes.Equal(ring[0], v) {
				t.Errorf("ring of %q = %q, want %q", n, ring, v)
			}
			must(t, s.Append(ctx, n, v, 1))
			tail, err := s.Tail(ctx, n, 1)
			must(t, err)
			if len(tail) != 1 || !bytes.Equal(tail[0], v) {
				t.Errorf("log of %q = %q, want %q", n, tail, v)
			}
		}
	}
	large := bytes.Repeat([]byte{0, 255}, store.MaxValue/2)
	must(t, s.Set(ctx, store.Entry{Key: "large", Value: large, TTL: time.Hour}))
	if !bytes.Equal(get(t, s, "large"), large) {
		t.Error("the largest value came back changed")
	}
	ring, err := s.Push(ctx, "large", strings.Repeat("s", store.MaxKey), large, 1, time.Hour)
	must(t, err)
	if len(ring) != 1 || !bytes.Equal(ring[0], large) {
		t.Error("the largest slot came back changed")
	}
}

func separateNames(t *testing.T, s store.Store) {
	must(t, s.Set(ctx, store.Entry{Key: "k", Value: []byte("v"), TTL: time.Hour}))
	sum, err := Count(s, "k", 5)
	must(t, err)
	ring, err := s.Push(ctx, "k", "s", []byte("r"), 3, time.Hour)
	must(t, err)
	must(t, s.Append(ctx, "k", []byte("l"), 3))
	if sum != 5 || len(ring) != 1 || string(get(t, s, "k")) != "v" {
		t.Errorf("kinds of the same name disturb each other: %d, %q", sum, ring)
	}
	must(t, s.Delete(ctx, "k"))
	sum, err = Count(s, "k", 1)
	must(t, err)
	ring, err = s.Push(ctx, "k", "t", []byte("r"), 3, time.Hour)
	must(t, err)
	if sum != 6 || len(ring) != 1 || get(t, s, "k") != nil {
		t.Errorf("Delete left something, or removed an account: %d, %q", sum, ring)
	}
	tail, err := s.Tail(ctx, "k", 9)
	must(t, err)
	if len(tail) != 1 {
		t.Errorf("Delete removed a log: %q", tail)
	}
}

func rings(t *testing.T, s store.Store) {
	push := func(slot, value string, want ...string) {
		t.Helper()
		got, err := s.Push(ctx, "ring", slot, []byte(value), 3, time.Hour)
		must(t, err)
		if !slices.EqualFunc(got, want, func(b []byte, s string) bool { return string(b) == s }) {
			t.Errorf("Push(%s, %s) = %q, want %q", slot, value, got, want)
		}
	}
	push("a", "1", "1")
	push("b", "", "1", "")
	push("a", "1", "1", "") // pushing twice is once
	push("a", "2", "2", "")
	push("aa", "3", "2", "", "3") // a is a prefix, and another slot
	push("c", "4", "", "3", "4")
	push("b", "5", "5", "3", "4") // in place: still the oldest
	push("d", "6", "3", "4", "6")
	push("b", "7", "4", "6", "7") // it was no longer in the ring
	push("bb", "8", "6", "7", "8")
	push("b", "9", "6", "9", "8") // not bb, of which it is a prefix
	got, err := s.Push(ctx, "ring", "b", []byte("8"), 1, time.Hour)
	must(t, err)
	if len(got) != 1 {
		t.Errorf("a smaller ring is %q, want one slot", got)
	}
	for _, slot := range []string{"xx", "x", "xxx"} { // longer names first
		got, err = s.Push(ctx, "other", slot, []byte(slot), 3, time.Hour)
		must(t, err)
	}
	if len(got) != 3 {
		t.Errorf("slots whose names begin alike are one: %q", got)
	}
}

func ringsExpire(t *testing.T, s store.Store) {
	_, err := s.Push(ctx, "ring", "a", []byte("1"), 5, 50*time.Millisecond)
	must(t, err)
	_, err = s.Push(ctx, "ring", "b", []byte("2"), 5, time.Hour)
	must(t, err)
	_, err = s.Push(ctx, "gone", "a", []byte("1"), 5, 50*time.Millisecond)
	must(t, err)
	time.Sleep(100 * time.Millisecond)
	kept, err := s.Push(ctx, "ring", "c", []byte("3"), 5, time.Hour)
	must(t, err)
	gone, err := s.Push(ctx, "gone", "c", []byte("3"), 5, time.Hour)
	must(t, err)
	if len(gone) != 1 || len(kept) == 0 || string(kept[len(kept)-2]) != "2" {
		t.Errorf("after the lifetime: %q; prolonged: %q", gone, kept)
	}
}

func ringsConcurrent(t *testing.T, s store.Store) {
	concurrently(t, 8, func(n int) error {
		for i := range 10 {
			got, err := s.Push(ctx, "ring", fmt.Sprintf("%d-%d", n, i), []byte("x"), 40, time.Hour)
			if err != nil || len(got) > 40 {
				return fmt.Errorf("%d slots, %w", len(got), err)
			}
		}
		return nil
	})
	got, err := s.Push(ctx, "ring", "0-0", []byte("x"), 64, time.Hour)
	must(t, err)
	if len(got) < 40 || len(got) > 41 {
		t.Errorf("after 80 pushes, the ring of 40 has %d slots", len(got))
	}
}
