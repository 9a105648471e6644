package store_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebound-llm/rebound/store"
	"github.com/rebound-llm/rebound/store/memory"
	"github.com/rebound-llm/rebound/store/storetest"
)

// After an outage the server has the changes of this process, in their order.
func TestSharedRepeats(t *testing.T) {
	bubble(t, func(t *testing.T, srv *server, s *gateway, log *lines) {
		for _, k := range []string{"set", "gone", "again", "kept"} {
			set(t, s, k, "old")
		}
		_, err := s.Push(ctx, "ring", "a", []byte("1"), 3, time.Hour)
		must(t, err)
		_, err = s.Push(ctx, "gone", "a", []byte("1"), 3, time.Hour)
		must(t, err)
		_, err = storetest.Count(s, "n", 5)
		must(t, err)
		for _, f := range []string{"removed", "longer", "shorter", "reset"} {
			post(t, s, "b", f, 10, true)
		}
		srv.set(errDown, nil, 0)
		value(t, s, "k")
		synctest.Wait()

		set(t, s, "set", "newer")
		set(t, s, "set", "newest")
		must(t, s.Set(ctx, store.Entry{Key: "short", Value: []byte("x"), TTL: time.Second}))
		must(t, s.Delete(ctx, "gone", "again"))
		set(t, s, "again", "new")
		for _, v := range []string{"b", "c", "d", "c"} {
			_, err = s.Push(ctx, "ring", v, []byte(v), 3, time.Hour)
			must(t, err)
		}
		for range 3 {
			_, err = storetest.Count(s, "n", 1)
			must(t, err)
		}
		must(t, s.Remove(ctx, "b", "removed"))
		must(t, s.Remove(ctx, "b", "never"))
		post(t, s, "b", "longer", 20, true)
		post(t, s, "b", "shorter", 5, true)
		must(t, s.Remove(ctx, "b", "reset"))
		post(t, s, "b", "reset", 5, true)
		post(t, s, "b", "overwritten", 30, true)
		post(t, s, "b", "overwritten", 5, false)
		must(t, s.Append(ctx, "log", []byte("1"), 5))
		must(t, s.Append(ctx, "log", []byte("2"), 5))
		// Other replicas still reach the server.
		post(t, srv.Store, "b", "theirs", 10, true)
		post(t, srv.Store, "b", "longer", 30, true)

		before := time.Now()
		time.Sleep(2 * time.Second)
		srv.set(nil, nil, 0)
		time.Sleep(time.Second)
		synctest.Wait()
		log.expect(t, 1, 1)
		for k, want := range map[string]string{"set": "newest", "gone": "", "again": "new", "kept": "old", "short": ""} {
			if got := value(t, srv.Store, k); got != want {
				t.Errorf("%s is %q, want %q", k, got, want)
			}
		}
		ring, err := srv.Store.Push(ctx, "ring", "d", []byte("d"), 3, time.Hour)
		must(t, err)
		if got := fmt.Sprintf("%s", ring); got != "[b c d]" {
			t.Errorf("the ring is %s", got)
		}
		if n, _ := storetest.Count(srv.Store, "n", 0); n != 8 {
			t.Errorf("the counter is %d, want 8", n)
		}
		if got, _ := srv.Store.Tail(ctx, "log", 9); fmt.Sprintf("%s", got) != "[1 2]" {
			t.Errorf("the log is %s", got)
		}
		got := map[string]int{}
		for name, f := range storetest.Fields(t, srv.Store, "b") {
			got[name] = int(f.Until.Sub(before).Minutes())
		}
		want := map[string]int{"longer": 30, "shorter": 10, "reset": 5, "overwritten": 5, "theirs": 10}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("the board is %v, want %v", got, want)
		}
	})
}

// A Charge that failed after it was sent may have been done, so it is not repeated.
func TestSharedChargeOnce(t *testing.T) {
	bubble(t, func(t *testing.T, srv *server, s *gateway, _ *lines) {
		srv.set(errDown, nil, 0)
		n, err := storetest.Count(s, "n", 1)
		if n != 1 || err != nil {
			t.Errorf("Charge = %d, %v", n, err)
		}
		srv.set(nil, nil, 0)
		time.Sleep(time.Second)
		if n, _ := storetest.Count(srv.Store, "n", 0); n != 0 {
			t.Errorf("the counter is %d", n)
		}
	})
}

// The journal is bounded by the number of changes, whatever the size of their values: the oldest are dropped.
func TestSharedLongOutage(t *testing.T) {
	bubble(t, func(t *testing.T, srv *server, s *gateway, log *lines) {
		srv.set(errDown, nil, 0)
		value(t, s, "k")
		synctest.Wait()
		post(t, s, "b", "cool-down", 60, true)
		for i := range 20_000 {
			set(t, s, fmt.Sprint(i), "x")
		}
		large := strings.Repeat("x", store.MaxValue)
		for i := range 40 {
			set(t, s, fmt.Sprint("large", i), large)
		}
		srv.set(nil, nil, 0)
		time.Sleep(time.Second)
		if value(t, srv.Store, "large39") == "" || value(t, srv.Store, "large0") == "" || value(t, srv.Store, "0") != "" {
			t.Error("want the newest repeated and the oldest forgotten")
		}
		if got := storetest.Fields(t, srv.Store, "b"); len(got) != 1 {
			t.Errorf("the board is %v", got)
		}
		if line := log.all()[1]; !strings.Contains(line, "repeated=8192 forgotten=11848") {
			t.Errorf("the line is %s", line)
		}
	})
}

// Of a long outage with many events, log entries are dropped first and charges after them, those that were not added to
// for the longest time first.
func TestSharedLongOutageKeepsCharges(t *testing.T) {
	bubble(t, func(t *testing.T, srv *server, s *gateway, _ *lines) {
		srv.set(errDown, nil, 0)
		value(t, s, "k")
		synctest.Wait()
		count := func(meter string) {
			t.Helper()
			_, err := storetest.Count(s, meter, 1)
			must(t, err)
		}
		count("key")
		_, err := s.Push(ctx, "ring", "a", []byte("1"), 3, time.Hour)
		must(t, err)
		for i := range 10_000 {
			must(t, s.Append(ctx, "log", []byte(fmt.Sprint(i)), 5))
		}
		for i := range 5000 {
			count(fmt.Sprint("session", i))
			count("key")
			must(t, s.Append(ctx, "log", []byte("later"), 5))
		}
		srv.set(nil, nil, 0)
		time.Sleep(time.Second)
		if n, _ := storetest.Count(srv.Store, "key", 0); n != 5001 {
			t.Errorf("the meter has %d, want 5001", n)
		}
		if n, _ := storetest.Count(srv.Store, "session0", 0); n != 1 {
			t.Errorf("another meter has %d, want 1", n)
		}
		if ring, _ := srv.Store.Push(ctx, "ring", "b", []byte("2"), 3, time.Hour); len(ring) != 2 {
			t.Errorf("the ring is %s", ring)
		}
		if log, _ := srv.Store.Tail(ctx, "log", 1); fmt.Sprintf("%s", log) != "[later]" {
			t.Errorf("the log ends with %s", log)
		}
		// So many meters that not all have room.
		srv.set(errDown, nil, 0)
		value(t, s, "k")
		synctest.Wait()
		count("key")
		for i := range 9000 {
			count(fmt.Sprint("other", i))
			count("key")
		}
		srv.set(nil, nil, 0)
		time.Sleep(time.Minute)
		if n, _ := storetest.Count(srv.Store, "key", 0); n != 5001+9001 {
			t.Errorf("the meter has %d, want %d", n, 5001+9001)
		}
	})
}

// A write that waits in the journal does not overwrite a later one.
func TestSharedLaterWins(t *testing.T) {
	bubble(t, func(t *testing.T, srv *server, s *gateway, _ *lines) {
		old := func() {
			set(t, s, "k", "old")
			set(t, s, "deleted", "old")
			post(t, s, "b", "f", 10, false)
			post(t, s, "b", "removed", 10, false)
			_, err := s.Push(ctx, "ring", "a", []byte("old"), 3, time.Hour)
			must(t, err)
		}
		srv.set(nil, store.ErrBusy, 0)
		old()
		srv.set(nil, nil, 0)
		set(t, s, "k", "new")
		must(t, s.Delete(ctx, "deleted"))
		post(t, s, "b", "f", 5, false)
		must(t, s.Remove(ctx, "b", "removed"))
		ring, err := s.Push(ctx, "ring", "a", []byte("new"), 3, time.Hour)
		must(t, err)
		time.Sleep(time.Second)
		synctest.Wait()
		fields := storetest.Fields(t, srv.Store, "b")
		if value(t, srv.Store, "k") != "new" || value(t, srv.Store, "deleted") != "" || fmt.Sprintf("%s", ring) != "[new]" ||
			len(fields) != 1 || time.Until(fields["f"].Until) > 5*time.Minute {
			t.Errorf("the server has %q, %q, %s and %v", value(t, srv.Store, "k"), value(t, srv.Store, "deleted"), ring, fields)
		}
	})
}

// Nor does one that is being copied when the later one is made.
func TestSharedLaterWinsOnTheWay(t *testing.T) {
	push := func(v string) func(*testing.T, store.Store) {
		return func(t *testing.T, s store.Store) {
			_, err := s.Push(ctx, "ring", "a", []byte(v), 3, time.Hour)
			must(t, err)
		}
	}
	old := func(t *testing.T, s store.Store) { set(t, s, "k", "old") }
	posted := func(t *testing.T, s store.Store) { post(t, s, "b", "f", 10, false) }
	for name, c := range map[string]struct{ earlier, later func(*testing.T, store.Store) }{
		"value":                 {old, func(t *testing.T, s store.Store) { set(t, s, "k", "new") }},
		"deletion":              {old, func(t *testing.T, s store.Store) { must(t, s.Delete(ctx, "k")) }},
		"value after deletion":  {func(t *testing.T, s store.Store) { must(t, s.Delete(ctx, "k")) }, old},
		"values after deletion": {old, func(t *testing.T, s store.Store) { must(t, s.Delete(ctx, "k")); set(t, s, "k", "new") }},
		"slot":                  {push("old"), push("new")},
		"field":                 {posted, func(t *testing.T, s store.Store) { post(t, s, "b", "f", 5, false) }},
		"removal":               {posted, func(t *testing.T, s store.Store) { must(t, s.Remove(ctx, "b", "f")) }},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *server, s *gateway, _ *lines) {
				srv.set(nil, store.ErrBusy, 0)
				c.earlier(t, s)
				synctest.Wait()
				srv.set(nil, nil, 20*time.Millisecond)
				for before := srv.calls.Load(); srv.calls.Load() == before; {
					time.Sleep(5 * time.Millisecond) // until the earlier change is on its way
				}
				srv.set(nil, nil, 0)
				c.later(t, s)
				time.Sleep(time.Second)
				synctest.Wait()
				oracle := memory.New(memory.Config{})
				defer oracle.Close()
				c.earlier(t, oracle)
				c.later(t, oracle)
				state := func(st store.Store) string {
					ring, err := st.Push(ctx, "ring", "end", nil, 3, time.Hour)
					must(t, err)
					fields := storetest.Fields(t, st, "b")
					return fmt.Sprintf("%q %s %d %v", value(t, st, "k"), ring, len(fields), time.Until(fields["f"].Until) > 6*time.Minute)
				}
				if got, want := state(srv.Store), state(oracle); got != want {
					t.Errorf("the server has %s, want %s", got, want)
				}
			})
		})
	}
}

// Property: whatever happens while the server is away, afterwards it has the same
// data as a server that was there.
func TestSharedRepeatsAnything(t *testing.T) {
	for seed := range uint64(300) {
		bubble(t, func(t *testing.T, srv *server, s *gateway, _ *lines) {
			r := rand.New(rand.NewPCG(seed, 1))
			oracle := memory.New(memory.Config{})
			var history []string
			pick := func(n int) string { return string(rune('a' + r.IntN(n))) }
			step := func() {
				k, sub, v := pick(2), pick(5), []byte(fmt.Sprint(r.IntN(1000)))
				f := store.Field{Name: sub, Value: v, Until: time.Now().Add(time.Duration(1+r.IntN(50)) * time.Minute)}
				max, delta := r.IntN(2) == 0, int64(r.IntN(9))
				kind := r.IntN(7)
				history = append(history, fmt.Sprint(kind, k, sub, string(v), max, delta, f.Until.Minute()))
				for _, st := range []store.Store{s, oracle} {
					var err error
					switch kind {
					case 0:
						err = st.Set(ctx, store.Entry{Key: k, Value: v, TTL: time.Hour})
					case 1:
						err = st.Delete(ctx, k)
					case 2:
						_, err = storetest.Count(st, k, delta)
					case 3, 4:
						_, err = st.Push(ctx, k, sub, v, 3, time.Hour)
					case 5:
						err = st.Post(ctx, k, f, max)
					case 6:
						err = st.Remove(ctx, k, sub)
					}
					must(t, err)
				}
			}
			for range 20 {
				step()
			}
			srv.set(errDown, nil, 0)
			value(t, s, "k")
			synctest.Wait()
			for range r.IntN(150) {
				step()
			}
			srv.set(nil, nil, 0)
			time.Sleep(time.Second)
			synctest.Wait()
			for _, k := range []string{"a", "b"} {
				state := func(st store.Store) string {
					n, _ := storetest.Count(st, k, 0)
					ring, _ := st.Push(ctx, k, "z", nil, 4, time.Hour)
					return fmt.Sprintf("%s %d %s %v", value(t, st, k), n, ring, storetest.Fields(t, st, k))
				}
				if got, want := state(srv.Store), state(oracle); got != want {
					t.Fatalf("seed %d, key %s: the server has\n%s, want\n%s after %q", seed, k, got, want, history)
				}
			}
		})
	}
}

// A value that is set once replaces no other process's value, however late it is copied; a later plain Set does.
func TestSharedOnce(t *testing.T) {
	bubble(t, func(t *testing.T, srv *server, s *gateway, _ *lines) {
		srv.set(errDown, nil, 0)
		value(t, s, "k")
		synctest.Wait()
		for _, key := range []string{"theirs", "mine", "replaced"} {
			must(t, s.Set(ctx, store.Entry{Key: key, Value: []byte("mine"), TTL: time.Hour, Once: true}))
		}
		set(t, s, "replaced", "mine")
		set(t, srv.Store, "theirs", "theirs")
		set(t, srv.Store, "replaced", "theirs")
		srv.set(nil, nil, 0)
		time.Sleep(time.Second)
		for key, want := range map[string]string{"theirs": "theirs", "mine": "mine", "replaced": "mine"} {
			if got := value(t, srv.Store, key); got != want || value(t, s, key) != want {
				t.Errorf("%s is %q, here %q, want %q", key, got, value(t, s, key), want)
			}
		}
	})
}

// Values of an outage that are together larger than one round trip can carry are copied in several.
func TestSharedCopiesLargeValues(t *testing.T) {
	bubble(t, func(t *testing.T, srv *server, s *gateway, _ *lines) {
		srv.set(errDown, nil, 0)
		value(t, s, "k")
		synctest.Wait()
		large := strings.Repeat("x", store.MaxValue/4)
		for i := range 40 {
			set(t, s, fmt.Sprint(i), large)
		}
		set(t, s, "largest", strings.Repeat("x", store.MaxValue))
		srv.mu.Lock()
		srv.most = store.MaxValue
		srv.mu.Unlock()
		srv.set(nil, nil, 0)
		time.Sleep(time.Second)
		if !s.Up() || value(t, srv.Store, "39") != large || value(t, srv.Store, "largest") == "" {
			t.Errorf("up: %v, %d values of 41 were copied", s.Up(), srv.entries)
		}
	})
}

// After an outage that outlasts a window, the server gets the charges whose window has not ended.
func TestSharedCopiesCharges(t *testing.T) {
	for name, c := range map[string]struct {
		calendar bool
		charges  map[int]int64 // by the second of the outage; it ends at 95
		want     int64
	}{
		"sliding":                 {false, map[int]int64{0: 5, 50: 5, 70: 3, 80: 4}, 7},
		"calendar":                {true, map[int]int64{0: 5, 59: 5, 61: 3, 80: 4}, 7},
		"calendar, all has ended": {true, map[int]int64{50: 5, 59: 5}, 0},
		"given back twice":        {true, map[int]int64{70: -store.MaxAmount, 80: -store.MaxAmount}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *server, s *gateway, _ *lines) {
				charge := func(st store.Store, n int64) int64 {
					t.Helper()
					done, err := st.Charge(ctx, store.Charge{Account: "a", Meter: "m", Amount: n, Window: time.Minute, Calendar: c.calendar})
					must(t, err)
					return done.Used[0]
				}
				time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)))
				srv.set(errDown, nil, 0)
				value(t, s, "k")
				synctest.Wait()
				for second := range 95 {
					if n := c.charges[second]; n != 0 {
						charge(s, n)
					}
					if second == 65 && strings.HasPrefix(name, "given back") {
						charge(srv.Store, 20) // another replica's
					}
					time.Sleep(time.Second)
				}
				srv.set(nil, nil, 0)
				time.Sleep(time.Second)
				if got := charge(srv.Store, 0); got != c.want {
					t.Errorf("the server has %d, want %d", got, c.want)
				}
			})
		})
	}
}
