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

// bubble runs a test of a Shared on a scripted server in a synctest bubble, with virtual time.
func bubble(t *testing.T, fn func(t *testing.T, srv *server, s *gateway, log *lines)) {
	synctest.Test(t, func(t *testing.T) {
		srv, log := newServer(), &lines{}
		s := &gateway{Shared: store.NewShared(srv, memory.New(memory.Config{}), store.SharedConfig{}, slog.New(log))}
		synctest.Wait()
		fn(t, srv, s, log)
		must(t, s.Close())
	})
}

// gateway is a Shared whose boards go through a Mirror, as in production.
type gateway struct {
	*store.Shared
	mirror *store.Mirror
}

// boards returns the Mirror, synchronized if the server allows it.
func (g *gateway) boards() *store.Mirror {
	if g.mirror == nil {
		g.mirror = store.NewMirror(g.Shared, []string{"a", "b"}, interval)
	}
	_ = g.mirror.Sync(ctx)
	return g.mirror
}

func (g *gateway) Post(_ context.Context, board string, f store.Field, max bool) error {
	g.boards().Post(board, f, max)
	g.boards()
	return nil
}

func (g *gateway) Remove(_ context.Context, board, field string) error {
	g.boards().Remove(board, field)
	g.boards()
	return nil
}

func (g *gateway) Board(_ context.Context, board string) (fields []store.Field, err error) {
	g.boards().Each(board, func(f store.Field) bool { fields = append(fields, f); return true })
	return fields, nil
}

func (g *gateway) Close() error {
	if g.mirror != nil {
		g.mirror.Stop()
	}
	return g.Shared.Close()
}

func TestSharedConformance(t *testing.T) {
	slow := store.SharedConfig{Timeout: 10 * time.Second}
	t.Run("primary there", func(t *testing.T) {
		storetest.Run(t, func(*testing.T) store.Store {
			return store.NewShared(memory.New(memory.Config{}), memory.New(memory.Config{}), slow, nil)
		})
	})
	t.Run("primary away", func(t *testing.T) {
		storetest.RunWithoutBoards(t, func(*testing.T) store.Store {
			srv := newServer()
			srv.set(errDown, nil, 0)
			return store.NewShared(srv, memory.New(memory.Config{}), slow, nil)
		})
	})
}

func TestSharedGoesAndComesBack(t *testing.T) {
	bubble(t, func(t *testing.T, srv *server, s *gateway, log *lines) {
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
		time.Sleep(time.Second)
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
		if line := log.all()[1]; !strings.Contains(line, "away_ms=1800") || !strings.Contains(line, "repeated=101") {
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

// No operation takes longer than the time-out, even if the server is only slow.
func TestSharedSlow(t *testing.T) {
	bubble(t, func(t *testing.T, srv *server, s *gateway, log *lines) {
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

// A single failed operation on a healthy server is not logged.
func TestSharedBlip(t *testing.T) {
	bubble(t, func(t *testing.T, srv *server, s *gateway, log *lines) {
		srv.set(nil, errDown, 0) // operations fail, Ping works
		set(t, s, "k", "blip")
		srv.set(nil, nil, 0)
		time.Sleep(100 * time.Millisecond)
		if !s.Up() || value(t, srv.Store, "k") != "blip" {
			t.Errorf("after the blip: up %v, the server has %q", s.Up(), value(t, srv.Store, "k"))
		}
		log.expect(t, 0, 0)
	})
}

// A server that answers pings but fails operations counts as away.
func TestSharedFailsThoughItAnswers(t *testing.T) {
	bubble(t, func(t *testing.T, srv *server, s *gateway, log *lines) {
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

// A flapping server is pinged later each time.
func TestSharedFlapping(t *testing.T) {
	bubble(t, func(t *testing.T, srv *server, s *gateway, log *lines) {
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

// Too many operations at once are no failure of the server, and no change is lost.
func TestSharedBusy(t *testing.T) {
	bubble(t, func(t *testing.T, srv *server, s *gateway, log *lines) {
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

// Nor are they after a failed operation that a ping has refuted.
func TestSharedBusyAfterFailure(t *testing.T) {
	bubble(t, func(t *testing.T, srv *server, s *gateway, log *lines) {
		srv.set(nil, errDown, 0)
		s.WriteBehind("k", func() (store.Entry, bool) { return store.Entry{Key: "k", TTL: time.Hour}, true })
		synctest.Wait()
		srv.set(nil, store.ErrBusy, 0)
		time.Sleep(300 * time.Millisecond)
		srv.set(nil, nil, 0)
		time.Sleep(100 * time.Millisecond)
		if log.expect(t, 0, 0); !s.Up() || srv.entries != 1 {
			t.Errorf("up: %v, %d values were copied", s.Up(), srv.entries)
		}
	})
}

// Without the server, a process charges up to its share, including what it charged
// before. The server gets these charges afterwards.
func TestSharedChargesAlone(t *testing.T) {
	bubble(t, func(t *testing.T, srv *server, s *gateway, _ *lines) {
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

// An operation that fails because its context ended proves nothing, but makes the store ping the server.
func TestSharedImpatientCallers(t *testing.T) {
	bubble(t, func(t *testing.T, srv *server, s *gateway, log *lines) {
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

// Removals by others reach the local copy of a board, which is read while the server is away.
func TestSharedKeepsBoards(t *testing.T) {
	bubble(t, func(t *testing.T, srv *server, s *gateway, _ *lines) {
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

// A read of a board that overlaps a Post does not undo the Post locally.
func TestSharedBoardRacesPost(t *testing.T) {
	bubble(t, func(t *testing.T, srv *server, s *gateway, _ *lines) {
		storetest.Fields(t, s, "b")
		srv.mu.Lock()
		srv.onBoard = func() { s.mirror.Post("b", field("mine", "1", 10), true) }
		srv.mu.Unlock()
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

// A written value is readable here at once, without asking the server, and on the server when Flush returns.
func TestSharedLocalFirst(t *testing.T) {
	bubble(t, func(t *testing.T, srv *server, s *gateway, _ *lines) {
		srv.set(nil, nil, 10*time.Millisecond)
		took := func(op func()) time.Duration {
			start := time.Now()
			op()
			return time.Since(start)
		}
		held := "one"
		current := func() (store.Entry, bool) {
			return store.Entry{Key: "k", Value: []byte(held), TTL: time.Hour}, held != ""
		}
		if d := took(func() { s.WriteBehind("k", current); must(t, s.Append(ctx, "log", []byte("x"), 9)) }); d != 0 {
			t.Errorf("writing behind took %v", d)
		}
		calls := srv.calls.Load()
		if d := took(func() { held = value(t, s, "k") }); d != 0 || held != "one" || srv.calls.Load() > calls+1 {
			t.Errorf("what is still to be copied is %q, after %v", held, d)
		}
		held = "two"
		s.WriteBehind("k", current)
		if s.Flush(ctx, "k"); value(t, srv.Store, "k") != "two" {
			t.Errorf("after Flush the server has %q", value(t, srv.Store, "k"))
		}
		if got, _ := s.Tail(ctx, "log", 9); fmt.Sprintf("%s", got) != "[x]" {
			t.Errorf("the log is %s", got)
		}
		if d := took(func() { set(t, s, "other", "v") }); d != 10*time.Millisecond || value(t, srv.Store, "other") != "v" {
			t.Errorf("Set took %v, and the server has %q", d, value(t, srv.Store, "other"))
		}
		srv.set(nil, nil, time.Hour)
		s.WriteBehind("k", current)
		hurry, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
		defer cancel()
		if d := took(func() { s.Flush(hurry, "k") }); d != 5*time.Millisecond {
			t.Errorf("Flush took %v where it had 5ms", d)
		}
		if d := took(func() { s.Flush(ctx, "k") }); d > 50*time.Millisecond || value(t, s, "k") != "two" {
			t.Errorf("Flush of a server that hangs took %v", d)
		}
	})
}

// Close copies the journal first.
func TestSharedCloseCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer()
		s := store.NewShared(srv, memory.New(memory.Config{}), store.SharedConfig{}, nil)
		synctest.Wait()
		for i := range 200 {
			key := fmt.Sprint(i)
			s.WriteBehind(key, func() (store.Entry, bool) { return store.Entry{Key: key, TTL: time.Hour}, true })
		}
		must(t, s.Close())
		srv.mu.Lock()
		defer srv.mu.Unlock()
		if n := srv.entries; n != 200 {
			t.Errorf("%d of 200 values were copied", n)
		}
	})
}

// It does so, too, right after a failed operation.
func TestSharedCloseCopiesAfterFailure(t *testing.T) {
	bubble(t, func(t *testing.T, srv *server, s *gateway, _ *lines) {
		srv.set(nil, errDown, 0) // operations fail, Ping works
		s.WriteBehind("k", func() (store.Entry, bool) { return store.Entry{Key: "k", TTL: time.Hour}, true })
		synctest.Wait()
		srv.set(nil, nil, 0)
		must(t, s.Close())
		if srv.entries != 1 {
			t.Error("the value was not copied")
		}
	})
}
