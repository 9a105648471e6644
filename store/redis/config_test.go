package redis_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/store/redis"
)

func TestConfig(t *testing.T) {
	const secret = "hunter2"
	for _, tt := range []struct {
		name   string
		change func(*redis.Config)
		want   []string // the keys that are reported, in order
	}{
		{"nothing", func(c *redis.Config) {}, nil},
		{"one server", func(c *redis.Config) { c.URL = "redis://user:" + secret + "@host:6380/3" }, nil},
		{"TLS", func(c *redis.Config) { c.URL = "rediss://:" + secret + "@[::1]" }, nil},
		{"socket", func(c *redis.Config) { c.URL = "unix:///run/redis.sock?db=1" }, nil},
		{"from the environment", func(c *redis.Config) { c.URLEnv = "REDIS_URL" }, nil},
		{"cluster", func(c *redis.Config) { c.Addresses, c.Cluster = []string{"a:1", "[::1]:2"}, true }, nil},
		{"sentinel", func(c *redis.Config) { c.Addresses, c.MasterName, c.Database = []string{"a:1"}, "m", 3 }, nil},

		{"no scheme", func(c *redis.Config) { c.URL = "host:6379" }, []string{"url"}},
		{"wrong scheme", func(c *redis.Config) { c.URL = "http://host" }, []string{"url"}},
		{"no host", func(c *redis.Config) { c.URL = "redis://" }, []string{"url"}},
		{"hash in the password", func(c *redis.Config) { c.URL = "redis://u:#" + secret + "@host" }, []string{"url"}},
		{"slash in the password", func(c *redis.Config) { c.URL = "redis://u:1/" + secret + "@host" }, []string{"url"}},
		{"percent in the password", func(c *redis.Config) { c.URL = "redis://u:%zz" + secret + "@host" }, []string{"url"}},
		{"option", func(c *redis.Config) { c.URL = "redis://host?read_timeout=5s" }, []string{"url"}},
		{"unknown database", func(c *redis.Config) { c.URL = "redis://host/x" + secret }, []string{"url"}},
		{"addresses alone", func(c *redis.Config) { c.Addresses = []string{"a:1"} }, []string{"addresses"}},
		{"both", func(c *redis.Config) { c.URL, c.Addresses = "redis://a", []string{"a:1"} }, []string{"addresses"}},
		{"no port", func(c *redis.Config) { c.Addresses, c.Cluster = []string{"a:1", "b"}, true }, []string{"addresses[1]"}},
		{"sentinel by URL", func(c *redis.Config) { c.URL, c.MasterName = "redis://a", "m" }, []string{"master_name"}},
		{"database of a cluster", func(c *redis.Config) { c.URL, c.Cluster = "redis://a/1", true }, []string{"url"}},
		{"several", func(c *redis.Config) {
			c.Cluster, c.MasterName, c.Addresses = true, "m", []string{"a:1"}
			c.Database, c.PasswordEnv, c.PasswordFile, c.ClientCert, c.CAFile = -1, "A", "b", "c", "/none"
			c.Prefix, c.Timeout, c.PoolSize = "a b", time.Nanosecond, 0
		}, []string{"cluster", "database", "password_env", "client_cert", "ca_file", "client_cert", "prefix", "timeout", "pool_size"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := redis.Defaults()
			c.Password = secret
			tt.change(&c)
			err := c.Validate()
			var keys []string
			if err != nil {
				for line := range strings.SplitSeq(err.Error(), "\n") {
					key, _, _ := strings.Cut(line, ":")
					keys = append(keys, key)
				}
			}
			if fmt.Sprint(keys) != fmt.Sprint(tt.want) {
				t.Errorf("Validate = %v, want problems of %v", err, tt.want)
			}
			if text := fmt.Sprintf("%v %+v %#v %s %v", c, c, c, c, err); strings.Contains(text, secret) {
				t.Errorf("the password shows: %s", text)
			}
		})
	}
}

func TestOpenNeedsServer(t *testing.T) {
	if _, err := redis.Open(redis.Config{}); err == nil {
		t.Error("a store without a server opens")
	}
}
