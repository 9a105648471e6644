package store_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
		if line := log.all()[1]; !strings.Contains(line, "away_ms=1800") || !strings.Contains(line, "repeated=102") {
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
		if _, err := storetest.Count(s, "n", 2); err != nil {
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
		n, err := storetest.Count(srv.Store, "n", 0)
		if value(t, srv.Store, "k") != "v" || n != 2 || err != nil {
			t.Errorf("the server has %q and %d, %v", value(t, srv.Store, "k"), n, err)
		}
		log.expect(t, 0, 0)
	})
}

// Alone, a process goes by its share, and knows what it charged before. The
// server learns of it afterwards.
func TestSharedChargesAlone(t *testing.T) {
	bubble(t, func(t *testing.T, srv *server, s *store.Shared, _ *lines) {
		c := store.Charge{Account: "a", Meter: "m", Amount: 1, Limit: 10, Share: 4, Window: 24 * time.Hour, Calendar: true}
		passed := func() (n int) {
			for range 20 {
				done, err := s.Charge(ctx, c)
				must(t, err)
				if done.Alone == s.Up() {
					t.Fatalf("alone: %v, though the server is up: %v", done.Alone, s.Up())
				}
				if done.Refused < 0 {
					n++
				}
			}
			return n
		}
		c.Limit = 3
		if n := passed(); n != 3 {
			t.Errorf("with the server %d charges passed, want 3", n)
		}
		srv.set(errDown, nil, 0)
		value(t, s, "k")
		synctest.Wait()
		if n := passed(); n != 1 {
			t.Errorf("alone %d charges passed, want one more than the 3 of before", n)
		}
		srv.set(nil, nil, 0)
		time.Sleep(time.Second)
		synctest.Wait()
		done, err := srv.Store.Charge(ctx, store.Charge{Account: "a", Meter: "m", Window: c.Window, Calendar: true})
		must(t, err)
		if done.Used[0] != 4 {
			t.Errorf("afterwards the server has %d, want 4", done.Used[0])
		}
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
