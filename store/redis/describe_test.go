package redis_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/store/redis"
	"github.com/rebound-llm/rebound/store/storetest"
)

// Server returns what a server reports of itself; what it forbids to ask is missing.
func TestServer(t *testing.T) {
	srv := storetest.StartRedis(t)
	srv.Do("CONFIG", "SET", "maxmemory", "64mb")
	srv.Do("CONFIG", "SET", "maxmemory-policy", "volatile-lru")
	s := open(t, redis.Config{URL: srv.URL(), Timeout: 5 * time.Second})
	got, err := s.Server(ctx)
	if err != nil || got.Policy != "volatile-lru" || !got.Limited || strings.Count(got.Version, ".") < 2 || time.Since(got.Time).Abs() > time.Minute {
		t.Errorf("%+v, %v", got, err)
	}
	srv.Do("ACL", "SETUSER", "limited", "on", ">pw", "~*", "+@all", "-info")
	s = open(t, redis.Config{URL: srv.URL(), Username: "limited", Password: "pw", Timeout: 5 * time.Second})
	if got, err := s.Server(ctx); err != nil || got.Policy != "" || got.Time.IsZero() {
		t.Errorf("with INFO forbidden: %+v, %v", got, err)
	}
	srv.Kill()
	if _, err := s.Server(ctx); err == nil {
		t.Error("a server that is away is no error")
	}
}
