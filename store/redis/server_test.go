package redis_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/store"
	"github.com/rebound-llm/rebound/store/redis"
	"github.com/rebound-llm/rebound/store/storetest"
)

var ctx = context.Background()

// TestForeign: whatever others wrote under our keys, reads return only what is
// well-formed, and writes work.
func TestForeign(t *testing.T) {
	srv := storetest.StartRedis(t)
	s := open(t, redis.Config{URL: srv.URL(), Prefix: "p:"})
	huge := strings.Repeat("x", store.MaxValue+1)
	until := fmt.Sprint(time.Now().Add(time.Hour).UnixMicro())
	later := time.Now().Add(time.Hour)
	plant := map[string][]string{
		"a string":       {"SET", "KEY", "x"},
		"empty":          {"SET", "KEY", ""},
		"a large string": {"SET", "KEY", huge},
		"a list":         {"RPUSH", "KEY", "x", "", ":", "3:ab", "99999999999999999999:x", "-1:x", "1:", "1:ab", huge},
		"a set":          {"SADD", "KEY", "x"},
		"a hash": {"HSET", "KEY", "a", "x", "b", "", "c", ":", "d", "-5:x", "e", "99999999999999999999:x", "f", "1e99:x",
			"", until + ":x", strings.Repeat("n", store.MaxKey+1), until + ":x", "g", until + ":" + huge, "h", "9007199254740993:x"},
		"a number":       {"SET", "KEY", "7"},
		"no number":      {"SET", "KEY", "7.5"},
		"a large number": {"SET", "KEY", "9223372036854775808"},
		"a stream":       {"XADD", "KEY", "*", "a", "b"},
		"a sorted set":   {"ZADD", "KEY", "1", "a"},
	}
	check := func(t *testing.T, what string, err error, ok bool) {
		t.Helper()
		if err != nil || !ok {
			t.Errorf("%s: %v, %v", what, ok, err)
		}
	}
	for name, args := range plant {
		t.Run(name, func(t *testing.T) {
			for _, kind := range []string{"v:", "a:{accounts}", "r:", "b:", "l:"} {
				cmd := append([]string{}, args...)
				cmd[1] = "p:" + kind + "k"
				srv.Do("DEL", cmd[1])
				srv.Do(cmd...)
			}
			got, err := s.Get(ctx, "k")
			check(t, "Get", err, got[0] == nil)
			got, err = s.Get(ctx, "k", "none", "k")
			check(t, "Get of several", err, got[0] == nil && got[2] == nil)
			fields, err := s.Board(ctx, "k")
			check(t, "Board", err, len(fields) == 0)
			check(t, "Remove", s.Remove(ctx, "k", "x"), true)
			entries, err := s.Tail(ctx, "k", 100)
			check(t, "Tail", err, len(entries) <= 8) // any short list is a log

			check(t, "Set", s.Set(ctx, store.Entry{Key: "k", Value: []byte("v"), TTL: time.Hour}), true)
			got, err = s.Get(ctx, "k")
			check(t, "Get after Set", err, string(got[0]) == "v")
			_, err = storetest.Count(s, "k", 1)
			check(t, "Charge", err, true)
			ring, err := s.Push(ctx, "k", "s", []byte("v"), 5, time.Hour)
			check(t, "Push", err, len(ring) >= 1 && string(ring[len(ring)-1]) == "v")
			check(t, "Post", s.Post(ctx, "k", store.Field{Name: "f", Value: []byte("v"), Until: later}, true), true)
			fields, err = s.Board(ctx, "k")
			check(t, "Board after Post", err, len(fields) == 1 && string(fields[0].Value) == "v")
			check(t, "Append", s.Append(ctx, "k", []byte("v"), 5), true)
			entries, err = s.Tail(ctx, "k", 1)
			check(t, "Tail after Append", err, len(entries) == 1 && string(entries[0]) == "v")
			for _, kind := range []string{"v:", "a:{accounts}", "r:", "b:", "l:"} {
				if ttl := srv.Do("PTTL", "p:"+kind+"k"); strings.HasPrefix(ttl, "-") {
					t.Errorf("key %s has no end: %s", kind, ttl)
				}
			}
		})
	}
}

// TestFlood: keys with far more data than we ever write are read within bounds
// and cut by the next write.
func TestFlood(t *testing.T) {
	srv := storetest.StartRedis(t)
	s := open(t, redis.Config{URL: srv.URL(), Prefix: "p:"})
	until := time.Now().Add(time.Hour)
	const fill = "for i = 1, 50000 do redis.call('HSET', KEYS[1], i, ARGV[1]) redis.call('RPUSH', KEYS[2], '5:' .. (10000 + i)) end"
	srv.Do("EVAL", fill, "2", "p:b:k", "p:r:k", fmt.Sprint(until.UnixMicro())+":x")
	fields, err := s.Board(ctx, "k")
	if err != nil || len(fields) > store.MaxFields {
		t.Errorf("%d fields, %v", len(fields), err)
	}
	if err := s.Post(ctx, "k", store.Field{Name: "f", Until: until}, true); err != nil {
		t.Error(err)
	}
	ring, err := s.Push(ctx, "k", "s", []byte("v"), 5, time.Hour)
	if err != nil || len(ring) != 5 {
		t.Errorf("%d slots, %v", len(ring), err)
	}
	if n, m := srv.Do("HLEN", "p:b:k"), srv.Do("LLEN", "p:r:k"); n != "1" || m != "5" {
		t.Errorf("%s fields and %s slots are left", n, m)
	}
}

// TestBoardEnds: the next write removes ended fields, and the board expires with its last field.
func TestBoardEnds(t *testing.T) {
	srv := storetest.StartRedis(t)
	s := open(t, redis.Config{URL: srv.URL(), Prefix: "p:"})
	now := time.Now()
	srv.Do("HSET", "p:b:k", "old", fmt.Sprint(now.Add(-2*time.Minute).UnixMicro())+":x",
		"just", fmt.Sprint(now.Add(-time.Second).UnixMicro())+":x")
	if err := s.Post(ctx, "k", store.Field{Name: "new", Until: now.Add(10 * time.Minute)}, true); err != nil {
		t.Fatal(err)
	}
	if got := storetest.Fields(t, s, "k"); len(got) != 1 {
		t.Errorf("the board is %v", got)
	}
	// For a replica whose clock is a second behind, the field just has not ended yet.
	if srv.Do("HEXISTS", "p:b:k", "old") != "0" || srv.Do("HEXISTS", "p:b:k", "just") != "1" {
		t.Error("want the old field removed and the one just ended kept")
	}
	if err := s.Post(ctx, "k", store.Field{Name: "short", Until: now.Add(time.Minute)}, true); err != nil {
		t.Fatal(err)
	}
	if ttl := srv.Do("TTL", "p:b:k"); ttl < "600" || ttl > "660" || len(ttl) != 3 {
		t.Errorf("the board ends in %s s, want about ten minutes", ttl)
	}
}

func TestSecure(t *testing.T) {
	srv := storetest.StartSecure(t)
	cfg := redis.Config{
		URL: srv.URL(), Username: srv.Username, Password: srv.Password,
		CAFile: srv.CAFile, ClientCert: srv.CertFile, ClientKey: srv.KeyFile, Prefix: "rebound:",
	}
	n := 0
	storetest.Run(t, func(t *testing.T) store.Store {
		c := cfg
		n++
		c.Prefix = fmt.Sprintf("rebound:%d:", n)
		return open(t, c)
	})
	for what, change := range map[string]func(*redis.Config){
		"wrong password":       func(c *redis.Config) { c.Password = "wrong-" + c.Password },
		"unknown authority":    func(c *redis.Config) { c.CAFile = "" },
		"no certificate":       func(c *redis.Config) { c.ClientCert, c.ClientKey = "", "" },
		"wrong name":           func(c *redis.Config) { c.ServerName = "example.org" },
		"plain text":           func(c *redis.Config) { c.URL = strings.Replace(c.URL, "rediss", "redis", 1) },
		"a prefix not allowed": func(c *redis.Config) { c.Prefix = "other:" },
	} {
		t.Run(what, func(t *testing.T) {
			c := cfg
			change(&c)
			s := open(t, c)
			err := s.Ping(ctx)
			if !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("Ping = %v, want ErrUnavailable", err)
			}
			if err != nil && strings.Contains(err.Error(), srv.Password) {
				t.Errorf("the error shows the password: %v", err)
			}
		})
	}
}

func TestSentinel(t *testing.T) {
	set := storetest.StartSentinel(t)
	s := open(t, redis.Config{Addresses: []string{set.Watcher.Addr()}, MasterName: set.Name, Timeout: 500 * time.Millisecond})
	write := func(value string) error {
		return s.Set(ctx, store.Entry{Key: "k", Value: []byte(value), TTL: time.Hour})
	}
	storetest.Eventually(t, "the first write", 10*time.Second, func() bool { return write("before") == nil })
	set.Servers[0].Kill()
	storetest.Eventually(t, "a replica has become the master", time.Minute, func() bool { return write("after") == nil })
	if set.Master() == nil {
		t.Error("a replica was written to, but none is the master")
	}
	got, err := s.Get(ctx, "k")
	if err != nil || string(got[0]) != "after" {
		t.Errorf("Get = %q, %v", got, err)
	}
}

// TestReadOnly: Ping fails at a replica that has not been promoted, though it answers PING.
func TestReadOnly(t *testing.T) {
	srv := storetest.StartRedis(t, "--replicaof", "127.0.0.1", "1")
	if err := open(t, redis.Config{URL: srv.URL()}).Ping(ctx); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Ping of a replica = %v", err)
	}
}

// TestBounded: no operation takes much longer than its time-out, whatever the server does.
func TestBounded(t *testing.T) {
	const timeout = 50 * time.Millisecond
	srv := storetest.StartRedis(t)
	secure := storetest.StartSecure(t)
	stores := map[string]*redis.Store{
		"plain": open(t, redis.Config{URL: srv.URL(), Timeout: timeout, Prefix: "rebound:"}),
		"TLS": open(t, redis.Config{URL: secure.URL(), Username: secure.Username, Password: secure.Password, CAFile: secure.CAFile,
			ClientCert: secure.CertFile, ClientKey: secure.KeyFile, Timeout: timeout, Prefix: "rebound:"}),
	}
	large := make([]byte, store.MaxValue)
	everything := func(s *redis.Store) (slowest time.Duration, errs []error) {
		ops := []func() error{
			// First, while there is an open connection: more than the kernel buffers for
			// a server that does not read.
			func() error {
				return s.Set(ctx, slices.Repeat([]store.Entry{{Key: "a", Value: large, TTL: time.Hour}}, 5)...)
			},
			func() error { _, err := s.Get(ctx, "a"); return err },
			func() error { _, err := s.Get(ctx, "a", "b", "c"); return err },
			func() error { return s.Set(ctx, store.Entry{Key: "a", Value: large, TTL: time.Hour}) },
			func() error { return s.Delete(ctx, "a") },
			func() error { _, err := storetest.Count(s, "a", 1); return err },
			func() error { _, err := s.Push(ctx, "a", "s", large, 3, time.Hour); return err },
			func() error {
				return s.Post(ctx, "a", store.Field{Name: "f", Until: time.Now().Add(time.Hour)}, true)
			},
			func() error { _, err := s.Board(ctx, "a"); return err },
			func() error { _, err := s.Tail(ctx, "a", 3); return err },
			func() error { return s.Ping(ctx) },
		}
		for _, op := range ops {
			start := time.Now()
			err := op()
			slowest = max(slowest, time.Since(start))
			errs = append(errs, err)
		}
		return slowest, errs
	}
	expect := func(t *testing.T, s *redis.Store) {
		t.Helper()
		slowest, errs := everything(s)
		if slowest > storetest.Hung {
			t.Errorf("an operation took %v, and its limit is %v", slowest, timeout)
		}
		for i, err := range errs {
			if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrBusy) {
				t.Errorf("operation %d: %v, want ErrUnavailable", i, err)
			}
		}
	}
	for name, s := range stores {
		storetest.Eventually(t, name+" works", 10*time.Second, func() bool { return s.Ping(ctx) == nil })
	}
	srv.Pause()
	secure.Pause()
	for name, s := range stores {
		t.Run(name+" paused", func(t *testing.T) { expect(t, s) })
	}
	srv.Resume()
	secure.Resume()
	for name, s := range stores {
		storetest.Eventually(t, name+" works again", 10*time.Second, func() bool { return s.Ping(ctx) == nil })
	}
	srv.Kill()
	secure.Kill()
	for name, s := range stores {
		t.Run(name+" killed", func(t *testing.T) { expect(t, s) })
	}
	srv.Restart()
	secure.Restart()
	for name, s := range stores {
		storetest.Eventually(t, name+" is back", 10*time.Second, func() bool {
			_, err := storetest.Count(s, "a", 1)
			return err == nil
		})
	}
}

// TestBusy: too many operations at once are ErrBusy, which does not blame the server.
func TestBusy(t *testing.T) {
	srv := storetest.StartRedis(t)
	s := open(t, redis.Config{URL: srv.URL(), Timeout: 1500 * time.Millisecond, PoolSize: 2})
	if err := s.Ping(ctx); err != nil {
		t.Fatal(err)
	}
	srv.Pause()
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() { _, errs[i] = s.Get(ctx, "k") })
	}
	wg.Wait()
	busy := 0
	for _, err := range errs {
		if errors.Is(err, store.ErrBusy) {
			busy++
		} else if !errors.Is(err, store.ErrUnavailable) {
			t.Error(err)
		}
	}
	if busy != len(errs)-2 {
		t.Errorf("%d of %d operations were busy, want all but the two that had a connection", busy, len(errs))
	}
}

// TestLateHolder: a holder's earlier charge that arrives after a later one does
// not replace it.
func TestLateHolder(t *testing.T) {
	srv := storetest.StartRedis(t)
	s := open(t, redis.Config{URL: srv.URL(), Prefix: "p:"})
	later := fmt.Sprint(time.Now().Add(2 * time.Minute).UnixMicro())
	srv.Do("HSET", "p:a:{accounts}k", "h:1:m:replica", "5 "+later)
	if _, err := s.Charge(ctx, store.Charge{Account: "k", Meter: "m", Holder: "replica", Amount: 1, Window: time.Minute}); err != nil {
		t.Fatal(err)
	}
	if got := srv.Do("HGET", "p:a:{accounts}k", "h:1:m:replica"); got != "5 "+later {
		t.Errorf("the holder has %q, want what it said last", got)
	}
}

func TestScriptsReload(t *testing.T) {
	srv := storetest.StartRedis(t)
	s := open(t, redis.Config{URL: srv.URL()})
	for i := int64(1); i < 4; i++ {
		if n, err := storetest.Count(s, "k", 1); err != nil || n != i {
			t.Errorf("Charge = %d, %v, want %d", n, err, i)
		}
		srv.Do("SCRIPT", "FLUSH")
	}
}

func TestValueIsWhole(t *testing.T) {
	s := open(t, redis.Config{URL: storetest.Redis(t)})
	largest := bytes.Repeat([]byte("="), store.MaxValue)
	if err := s.Set(ctx, store.Entry{Key: "k", Value: largest, TTL: time.Hour}); err != nil {
		t.Fatal(err)
	}
	got, err := s.Get(ctx, "k", "k")
	if err != nil || !bytes.Equal(got[1], largest) {
		t.Errorf("%d bytes, %v", len(got[1]), err)
	}
}

// TestClusterNodeStops: with one silent node in a cluster, no operation takes
// longer than its time-out, and Ping fails.
func TestClusterNodeStops(t *testing.T) {
	const timeout = 50 * time.Millisecond
	nodes := storetest.StartCluster(t)
	s := open(t, redis.Config{Addresses: []string{nodes[0].Addr()}, Cluster: true, Timeout: timeout})
	keys := make([]string, 30)
	for i := range keys {
		keys[i] = fmt.Sprint("key-", i)
	}
	storetest.Eventually(t, "the cluster works", 10*time.Second, func() bool { return s.Ping(ctx) == nil })
	nodes[1].Pause()
	var slowest time.Duration
	timed := func(op func() error) error {
		start := time.Now()
		err := op()
		slowest = max(slowest, time.Since(start))
		return err
	}
	failed := 0
	for _, k := range keys {
		if timed(func() error { _, err := s.Push(ctx, k, "s", nil, 1, time.Hour); return err }) != nil {
			failed++
		}
	}
	if err := timed(func() error { _, err := s.Get(ctx, keys...); return err }); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Get of keys on all nodes = %v", err)
	}
	if err := timed(func() error { return s.Ping(ctx) }); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Ping = %v", err)
	}
	if slowest > storetest.Hung {
		t.Errorf("an operation took %v, and its limit is %v", slowest, timeout)
	}
	if failed == 0 {
		t.Error("no operation failed")
	}
	nodes[1].Resume()
	storetest.Eventually(t, "the cluster works again", 30*time.Second, func() bool {
		_, err := s.Get(ctx, keys...)
		return err == nil && s.Ping(ctx) == nil
	})
}
