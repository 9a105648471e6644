package redis_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rebound-llm/rebound/store"
	"github.com/rebound-llm/rebound/store/redis"
	"github.com/rebound-llm/rebound/store/storetest"
)

// go-redis dials a server that is away, and waits between two reads of a cluster's
// state, in goroutines that end some time after the client is closed.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"),
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9.(*clusterStateHolder).LazyReload.func1"))
}

// open opens a store on a test's server. By default the time-out is long, as the
// machine may be busy.
func open(t testing.TB, cfg redis.Config) *redis.Store {
	t.Helper()
	if cfg.Prefix == "" {
		cfg.Prefix = storetest.Prefix(t)
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 5 * time.Second
	}
	s, err := redis.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestConformance(t *testing.T) {
	url := storetest.Redis(t)
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, redis.Config{URL: url}) })
}

func TestCluster(t *testing.T) {
	nodes := storetest.StartCluster(t)
	t.Run("seed URL", func(t *testing.T) {
		if err := open(t, redis.Config{URL: nodes[1].URL(), Cluster: true}).Ping(context.Background()); err != nil {
			t.Error(err)
		}
	})
	storetest.Run(t, func(t *testing.T) store.Store {
		return open(t, redis.Config{Addresses: []string{nodes[0].Addr(), nodes[1].Addr()}, Cluster: true})
	})
}
