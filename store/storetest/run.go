package storetest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/store"
)

// Run tests the contract of store.Store. Each test opens its own store, which
// must be empty; Run closes it.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	RunWithoutBoards(t, open)
	run(t, open, []test{
		{"boards", boards}, {"board max", boardMax}, {"board max is atomic", boardMaxConcurrent},
		{"boards expire", boardsExpire}, {"boards are bounded", boardsBounded},
		{"hostile boards", hostileBoards}, {"separate names of boards", separateBoards},
	})
}

// RunWithoutBoards is Run for a store whose boards are unavailable.
func RunWithoutBoards(t *testing.T, open func(t *testing.T) store.Store) {
	run(t, open, []test{
		{"values", values}, {"many values at once", manyValues}, {"values that stay", valuesOnce}, {"values expire", valuesExpire},
		{"hostile names and values", hostile}, {"separate names", separateNames},
		{"charges", charges}, {"sliding windows", slidingWindows}, {"calendar windows", calendarWindows},
		{"charges are given back", givenBack}, {"least amounts", leastAmounts},
		{"holders", holders}, {"holders end", holdersEnd}, {"charges are atomic", chargesConcurrent},
		{"rings", rings}, {"rings expire", ringsExpire}, {"rings are atomic", ringsConcurrent},
		{"logs", logs}, {"log answers are bounded", logsBounded}, {"logs are atomic", logsConcurrent},
		{"bounds", bounds}, {"ended contexts", endedContexts}, {"closed", closed},
	})
}

// test is one test of Run.
type test struct {
	name string
	fn   func(t *testing.T, s store.Store)
}

func run(t *testing.T, open func(t *testing.T) store.Store, tests []test) {
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := open(t)
			defer s.Close()
			tt.fn(t, s)
		})
	}
}

var ctx = context.Background()

// soon limits what happens at once on an idle machine.
const soon = 10 * time.Second

// Eventually waits until ok returns true. The test fails if that takes longer than within.
func Eventually(t testing.TB, what string, within time.Duration, ok func() bool) {
	t.Helper()
	end := time.Now().Add(within)
	for !ok() {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", within, what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// concurrently runs a function in n goroutines; an error fails the test.
func concurrently(t *testing.T, n int, fn func(n int) error) {
	t.Helper()
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() { errs[i] = fn(i) })
	}
	wg.Wait()
	must(t, errors.Join(errs...))
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
	charge := func(c store.Charge) error { _, err := s.Charge(ctx, c); return err }
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
		"Charge of nothing":       func() error { _, err := s.Charge(ctx); return err }(),
		"Charge of a long key":    charge(store.Charge{Account: long, Meter: "m", Window: time.Hour}),
		"Charge of a long meter":  charge(store.Charge{Account: "k", Meter: long, Window: time.Hour}),
		"Charge of a long holder": charge(store.Charge{Account: "k", Meter: "m", Holder: long, Window: time.Hour}),
		"Charge without window":   charge(store.Charge{Account: "k", Meter: "m"}),
		"Charge of too much":      charge(store.Charge{Account: "k", Meter: "m", Window: time.Hour, Amount: store.MaxAmount + 1}),
		"Charge of less than 0":   charge(store.Charge{Account: "k", Meter: "m", Holder: "h", Window: time.Hour, Amount: -1}),
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
		_, addErr := s.Charge(c, store.Charge{Account: "k", Meter: "m", Window: time.Hour})
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
