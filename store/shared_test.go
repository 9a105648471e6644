package store_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebound-llm/rebound/store"
	"github.com/rebound-llm/rebound/store/memory"
	"github.com/rebound-llm/rebound/store/storetest"
)

// bubble runs a test of a Shared over a scripted server, in virtual time.
func bubble(t *testing.T, fn func(t *testing.T, srv *server, s *store.Shared, log *lines)) {
	synctest.Test(t, func(t *testing.T) {
		srv, log := newServer(), &lines{}
		s := store.NewShared(srv, memory.New(memory.Config{}), store.SharedConfig{}, slog.New(log))
		synctest.Wait()
		fn(t, srv, s, log)
		must(t, s.Close())
	})
}

func TestSharedConformance(t *testing.T) {
	slow := store.SharedConfig{Timeout: 10 * time.Second}
	t.Run("primary there", func(t *testing.T) {
		storetest.Run(t, func(*testing.T) store.Store {
			return store.NewShared(memory.New(memory.Config{}), memory.New(memory.Config{}), slow, nil)
		})
	})
	t.Run("primary away", func(t *testing.T) {
		storetest.Run(t, func(*testing.T) store.Store {
			srv := newServer()
			srv.set(errDown, nil, 0)
			return store.NewShared(srv, memory.New(memory.Config{}), slow, nil)
		})
	})
}

func TestSharedGoesAndComesBack(t *testing.T) {
	bubble(t, func(t *testing.T, srv *server, s *store.Shared, log *lines) {
		set(t, s, "before", "1")
		post(t, s, "b", "mine", 60, true)
		post(t, srv.Store, "b", "theirs", 60, true)
		storetest.Fields(t, s, "b")

		srv.set(errDown, nil, 0)
		set(t, s, "k", "during") // fails, and is done locally
		synctest.Wait()
		if s.Up() {
			t.Error("the store does not know that its server is away")
		}
		calls := srv.calls.Load()
		start := time.Now()
		for i := range 100 {
			set(t, s, fmt.Sprint("k", i), "during")
			if value(t, s, fmt.Sprint("k", i)) != "during" {
				t.Fatal("a value that was just written is not there")
			}
		}
		if n := srv.calls.Load() - calls; n != 0 || time.Since(start) != 0 {
			t.Errorf("while the server is away, %d operations went there and took %v", n, time.Since(start))
		}
		if value(t, s, "before") != "1" {
			t.Error("what this process wrote before is not known")
		}
		if got := storetest.Fields(t, s, "b"); len(got) != 2 {
			t.Errorf("the board is %v, want what was last seen", got)
		}
		time.Sleep(time.Hour / 2)
		if n := srv.pings.Load(); n < 30*60*2 || n > 30*60*4 {
			t.Errorf("in half an hour the server was asked %d times", n)
		}
		log.expect(t, 1, 0)

		post(t, s, "b", "during", 60, true)
		srv.set(nil, nil, 0)
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		if !s.Up() {
			t.Fatal("the store has not come back")
		}
		log.expect(t, 1, 1)
		for _, k := range []string{"before", "k", "k0", "k99"} {
			if value(t, srv.Store, k) == "" {
				t.Errorf("%s is not shared", k)
			}
		}
		if got := storetest.Fields(t, srv.Store, "b"); len(got) != 3 {
			t.Errorf("the server's board is %v, want what was posted meanwhile too", got)
		}
		if line := log.all()[1]; !strings.Contains(line, "away=30m0.") || !strings.Contains(line, "repeated=102") {
			t.Errorf("the line is %s", line)
		}
	})
}

func TestSharedStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, log := newServer(), &lines{}
		srv.set(nil, nil, time.Hour) // a server that accepts and never answers
		s := store.NewShared(srv, memory.New(memory.Config{}), store.SharedConfig{}, slog.New(log))
		start := time.Now()
		set(t, s, "k", "v")
		if d := time.Since(start); d > 50*time.Millisecond {
			t.Errorf("the first operation took %v", d)
		}
		time.Sleep(time.Minute)
		log.expect(t, 1, 0)
		must(t, s.Close())
	})
}

// An operation may not take more than the time-out even if the server is only slow.
func TestSharedSlow(t *testing.T) {
	bubble(t, func(t *testing.T, srv *server, s *store.Shared, log *lines) {
		srv.set(nil, nil, 49*time.Millisecond)
		set(t, s, "k", "v")
		if !s.Up() || value(t, srv.Store, "k") != "v" {
			t.Error("a slow answer is an answer")
		}
		srv.set(nil, nil, 51*time.Millisecond)
		start := time.Now()
		if v := value(t, s, "k"); v != "v" {
			t.Errorf("the value is %q", v)
		}
		if d := time.Since(start); d != 50*time.Millisecond {
			t.Errorf("the operation took %v, want 50ms", d)
		}
		start = time.Now()
		for range 10 {
			value(t, s, "k")
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("ten more took %v", d)
		}
		time.Sleep(time.Minute)
		if log.expect(t, 1, 0); s.Up() {
			t.Error("a server that is too slow for operations is not back")
		}
	})
}

// A single slow operation on a healthy server is not worth a line.
func TestSharedBlip(t *testing.T) {
	bubble(t, func(t *testing.T, srv *server, s *store.Shared, log *lines) {
		srv.set(nil, errDown, 0) // operations fail, Ping works
		set(t, s, "k", "blip")
		srv.set(nil, nil, 0)
		synctest.Wait()
		if !s.Up() || value(t, srv.Store, "k") != "blip" {
			t.Errorf("after the blip: up %v, the server has %q", s.Up(), value(t, srv.Store, "k"))
		}
		log.expect(t, 0, 0)
	})
}

// A server that answers questions and fails operations is away all the same.
func TestSharedFailsThoughItAnswers(t *testing.T) {
	bubble(t, func(t *testing.T, srv *server, s *store.Shared, log *lines) {
		srv.set(nil, errDown, 0)
		for range 600 {
			value(t, s, "k")
			time.Sleep(100 * time.Millisecond)
		}
		if n := len(log.all()); n == 0 || n > 16 {
			t.Errorf("in a minute there are %d lines", n)
		}
		if n := srv.calls.Load(); n > 60 {
			t.Errorf("in a minute %d of 600 operations went to the failing server", n)
		}
	})
}

// A server that comes and goes is left alone for longer each time.
func TestSharedFlapping(t *testing.T) {
	bubble(t, func(t *testing.T, srv *server, s *store.Shared, log *lines) {
		for i := range 3600 {
			if i%2 == 0 {
				srv.set(errDown, nil, 0)
			} else {
				srv.set(nil, nil, 0)
			}
			value(t, s, "k")
			time.Sleep(time.Second)
		}
		if n := len(log.all()); n > 300 {
			t.Errorf("in an hour there are %d lines", n)
		}
		srv.set(nil, nil, 0)
		time.Sleep(31 * time.Second)
		if !s.Up() {
			t.Error("the server has been well for half a minute and is not used")
		}
	})
}

// Too many operations at once are no failure of the server, and are not lost.
func TestSharedBusy(t *testing.T) {
	bubble(t, func(t *testing.T, srv *server, s *store.Shared, log *lines) {
		srv.set(nil, store.ErrBusy, 0)
		set(t, s, "k", "v")
		post(t, s, "b", "f", 5, true)
		if _, err := s.Add(ctx, "n", 2, time.Hour); err != nil {
			t.Error(err)
		}
		if !s.Up() {
			t.Error("a busy store counts as one that is away")
		}
		srv.set(nil, nil, 0)
		if got := storetest.Fields(t, s, "b"); len(got) != 1 {
			t.Errorf("the board is %v, though a field is on its way", got)
		}
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		n, err := srv.Store.Add(ctx, "n", 0, time.Hour)
		if value(t, srv.Store, "k") != "v" || n != 2 || err != nil {
			t.Errorf("the server has %q and %d, %v", value(t, srv.Store, "k"), n, err)
		}
		log.expect(t, 0, 0)
	})
}

// A caller without time left proves nothing, but makes the store ask.
func TestSharedImpatientCallers(t *testing.T) {
	bubble(t, func(t *testing.T, srv *server, s *store.Shared, log *lines) {
		hurry := func() {
			t.Helper()
			c, cancel := context.WithTimeout(ctx, time.Millisecond)
			defer cancel()
			if _, err := s.Get(c, "k"); err != nil {
				t.Errorf("a caller sees %v", err)
			}
			if err := s.Set(c, store.Entry{Key: "late", Value: []byte("v"), TTL: time.Hour}); err != nil {
				t.Errorf("a caller sees %v", err)
			}
		}
		srv.set(nil, nil, 10*time.Millisecond)
		hurry()
		time.Sleep(time.Second)
		if !s.Up() || value(t, srv.Store, "late") != "v" {
			t.Errorf("after an impatient caller: up %v, the server has %q", s.Up(), value(t, srv.Store, "late"))
		}
		log.expect(t, 0, 0)
		srv.set(nil, nil, time.Hour)
		hurry()
		time.Sleep(time.Second)
		if log.expect(t, 1, 0); s.Up() {
			t.Error("the server hangs, and only impatient callers could have noticed")
		}
	})
}

// What happened meanwhile arrives as it would have one by one.
func TestSharedRepeats(t *testing.T) {
	bubble(t, func(t *testing.T, srv *server, s *store.Shared, log *lines) {
		for _, k := range []string{"set", "gone", "again", "kept"} {
			set(t, s, k, "old")
		}
		_, err := s.Push(ctx, "ring", "a", []byte("1"), 3, time.Hour)
		must(t, err)
		_, err = s.Push(ctx, "gone", "a", []byte("1"), 3, time.Hour)
		must(t, err)
		_, err = s.Add(ctx, "n", 5, time.Hour)
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
			_, err = s.Add(ctx, "n", 1, time.Hour)
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
		// Others were not cut off.
		post(t, srv.Store, "b", "theirs", 10, true)
		post(t, srv.Store, "b", "longer", 30, true)

		before := time.Now()
		time.Sleep(2 * time.Second)
		srv.set(nil, nil, 0)
		time.Sleep(500 * time.Millisecond)
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
		if n, _ := srv.Store.Add(ctx, "n", 0, time.Hour); n != 8 {
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

// An Add that failed on its way may have been done, so it is not done again.
func TestSharedAddOnce(t *testing.T) {
	bubble(t, func(t *testing.T, srv *server, s *store.Shared, _ *lines) {
		srv.set(errDown, nil, 0)
		n, err := s.Add(ctx, "n", 1, time.Hour)
		if n != 1 || err != nil {
			t.Errorf("Add = %d, %v", n, err)
		}
		srv.set(nil, nil, 0)
		time.Sleep(time.Second)
		if n, _ := srv.Store.Add(ctx, "n", 0, time.Hour); n != 0 {
			t.Errorf("the counter is %d", n)
		}
	})
}

// The journal is bounded, and boards are the last to be forgotten.
func TestSharedLongOutage(t *testing.T) {
	bubble(t, func(t *testing.T, srv *server, s *store.Shared, log *lines) {
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
		if value(t, srv.Store, "large39") == "" || value(t, srv.Store, "large0") != "" || value(t, srv.Store, "0") != "" {
			t.Error("want the newest repeated and the oldest forgotten")
		}
		if got := storetest.Fields(t, srv.Store, "b"); len(got) != 1 {
			t.Errorf("the board is %v", got)
		}
		if line := log.all()[1]; !strings.Contains(line, "forgotten=200") {
			t.Errorf("the line is %s", line)
		}
	})
}

// Removals by others reach the local board, which is read while the server is away.
func TestSharedKeepsBoards(t *testing.T) {
	bubble(t, func(t *testing.T, srv *server, s *store.Shared, _ *lines) {
		post(t, s, "b", "mine", 10, true)
		post(t, srv.Store, "b", "theirs", 10, true)
		storetest.Fields(t, s, "b")
		must(t, srv.Store.Remove(ctx, "b", "mine"))
		post(t, srv.Store, "b", "theirs", 20, true)
		want := storetest.Fields(t, s, "b")
		srv.set(errDown, nil, 0)
		got := storetest.Fields(t, s, "b")
		if fmt.Sprint(got) != fmt.Sprint(want) || len(got) != 1 {
			t.Errorf("without the server the board is %v, with it %v", got, want)
		}
	})
}

// A board that was read before a Post and arrives after it does not undo the
// Post locally.
func TestSharedBoardRacesPost(t *testing.T) {
	bubble(t, func(t *testing.T, srv *server, s *store.Shared, _ *lines) {
		srv.onBoard = func() {
			srv.onBoard = nil
			post(t, s, "b", "mine", 10, true)
		}
		storetest.Fields(t, s, "b")
		srv.set(errDown, nil, 0)
		if got := storetest.Fields(t, s, "b"); len(got) != 1 {
			t.Errorf("without the server the board is %v", got)
		}
	})
}

// A write that waits to be repeated does not overwrite a later one.
func TestSharedLaterWins(t *testing.T) {
	bubble(t, func(t *testing.T, srv *server, s *store.Shared, _ *lines) {
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

// Property: whatever happens while the server is away, afterwards it has what it
// would have if it had been there.
func TestSharedRepeatsAnything(t *testing.T) {
	for seed := range uint64(300) {
		bubble(t, func(t *testing.T, srv *server, s *store.Shared, _ *lines) {
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
						_, err = st.Add(ctx, k, delta, time.Hour)
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
					n, _ := st.Add(ctx, k, 0, time.Hour)
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

func TestSharedClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer()
		srv.set(nil, nil, time.Hour)
		s := store.NewShared(srv, memory.New(memory.Config{}), store.SharedConfig{}, nil)
		start := time.Now()
		must(t, s.Close())
		if d := time.Since(start); d > 50*time.Millisecond {
			t.Errorf("Close took %v", d)
		}
		if err := s.Set(ctx); !errors.Is(err, store.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}
