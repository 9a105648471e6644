package proxy

import (
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/rebound-llm/rebound/proxy/quota"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Config configures the edge: where it listens, who may use it, and its limits.
type Config struct {
	Listen string `yaml:"listen"`
	// Prefix is the path prefix of every request; other paths get 404. Only programs set it.
	Prefix string `yaml:"-"`
	// Drain limits how long a shutdown waits for active requests.
	Drain time.Duration `yaml:"drain"`
	TLS   TLSConfig     `yaml:"tls"`
	Auth  AuthConfig    `yaml:"auth"`
	Admin AdminConfig   `yaml:"admin"`
	// Hosts are further names under which clients reach the gateway, such as those of containers and
	// proxies. Names of this machine and the listen address are always accepted.
	Hosts  []string     `yaml:"hosts"`
	CORS   CORSConfig   `yaml:"cors"`
	Limits LimitsConfig `yaml:"limits"`
	// Prices are the prices of tokens by model name.
	Prices quota.Prices `yaml:"prices"`
	// Fallback configures what clients learn about answers of fallback targets.
	Fallback FallbackConfig `yaml:"fallback"`
}

// FallbackConfig makes fallbacks visible to clients.
type FallbackConfig struct {
	// Visible adds the header X-Rebound-Fallback and, to a stream, a comment. Neither enters a
	// client's history.
	Visible bool `yaml:"visible"`
}

// TLSConfig is the server certificate. Without one the edge speaks plain HTTP. The loader fills
// Certificate, and renews it when the files change.
type TLSConfig struct {
	Cert        string           `yaml:"cert"` // PEM, with the chain
	Key         string           `yaml:"key"`
	Certificate *tls.Certificate `yaml:"-"`
}

// AuthConfig says who may use the gateway.
type AuthConfig struct {
	// Keys are gateway keys. Without any, no key is needed, and the client's own Authorization passes
	// through.
	Keys []ClientKey `yaml:"keys"`
	// AdminLocal lets programs on this machine use /rebound/ and /metrics without the token.
	AdminLocal bool `yaml:"admin_local"`
	// The admin token opens /rebound/ and /metrics to requests from other machines.
	AdminEnv   string `yaml:"admin_env"`
	AdminFile  string `yaml:"admin_file"`
	AdminToken string `yaml:"-"`
}

// AdminConfig sets where the gateway serves /rebound/ and /metrics.
type AdminConfig struct {
	// Listen is a separate address for /rebound/ and /metrics; empty: they share the clients' address.
	Listen string `yaml:"listen"`
}

// ClientKey is one gateway key. Value is filled by the loader and never printed.
type ClientKey struct {
	Name   string        `yaml:"name"`
	Env    string        `yaml:"env"`
	File   string        `yaml:"file"`
	Models []string      `yaml:"models"` // models that the key may use; empty: all
	Paths  []string      `yaml:"paths"`  // further allowed paths below /v1, each with its subpaths, although they may show data of other clients; "/" allows all
	Limits KeyLimits     `yaml:"limits"`
	Mode   recovery.Mode `yaml:"mode"` // the highest mode for its requests; empty: recovery.mode applies
	Value  string        `yaml:"-"`
}

// KeyLimits are the limits of a key, and of each of its sessions.
type KeyLimits struct {
	quota.Limits `yaml:",inline"`
	Session      recovery.Budget `yaml:"session"` // in place of limits.session
}

// String names the key without its value.
func (k ClientKey) String() string { return k.Name }

// CORSConfig says which pages may use the gateway from a browser.
type CORSConfig struct {
	Origins []string `yaml:"origins"` // like https://chat.example.com
}

// LimitsConfig limits the size and number of requests.
type LimitsConfig struct {
	Body        int64         `yaml:"body"`       // bytes of a request body
	Headers     int           `yaml:"headers"`    // bytes of a request's head
	Memory      int64         `yaml:"memory"`     // bytes of all request bodies being processed
	Concurrent  int           `yaml:"concurrent"` // simultaneous requests of this process; 0: no limit
	Nesting     int           `yaml:"nesting"`    // JSON levels
	Messages    int           `yaml:"messages"`   // in one request
	Calls       int           `yaml:"calls"`      // tool calls in all messages of one request
	Tools       int           `yaml:"tools"`      // tool definitions in one request
	Values      int           `yaml:"values"`     // JSON values in one request
	HeadTimeout time.Duration `yaml:"head_timeout"`
	BodyTimeout time.Duration `yaml:"body_timeout"` // longest wait without progress
	IdleTimeout time.Duration `yaml:"idle_timeout"` // of a keep-alive connection
	WriteStall  time.Duration `yaml:"write_stall"`  // a client that accepts no byte for this long is disconnected
	// Total limits all clients of all replicas together.
	Total quota.Limits `yaml:"total"`
	// Session limits each session; at the limit it is stopped.
	Session recovery.Budget `yaml:"session"`
}

// transcript returns the limits on the contents of a body.
func (c LimitsConfig) transcript() transcript.Limits {
	return transcript.Limits{Depth: c.Nesting, Messages: c.Messages, Calls: c.Calls, Tools: c.Tools, Values: c.Values}
}

// Defaults returns the configuration that applies when none is given.
func Defaults() Config {
	return Config{
		Listen: "127.0.0.1:8080", Drain: 30 * time.Second,
		Auth: AuthConfig{AdminLocal: true},
		Limits: LimitsConfig{
			Body: 64 << 20, Headers: 256 << 10, Memory: 512 << 20,
			Nesting: transcript.DefaultDepth, Messages: transcript.DefaultMessages, Calls: transcript.DefaultCalls, Tools: transcript.DefaultTools,
			Values:      transcript.DefaultValues,
			HeadTimeout: 10 * time.Second, BodyTimeout: 30 * time.Second, IdleTimeout: 120 * time.Second, WriteStall: 60 * time.Second,
		},
	}
}

// Validate reports everything that is wrong, as one joined error; each message begins with the key.
func (c Config) Validate() error {
	var problems recovery.Problems
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		problems.Add("listen: %q is not host:port, like 127.0.0.1:8080", c.Listen)
	}
	switch _, port, err := net.SplitHostPort(c.Admin.Listen); {
	case c.Admin.Listen == "":
	case err != nil:
		problems.Add("admin.listen: %q is not host:port, like 127.0.0.1:9090", c.Admin.Listen)
	case c.Admin.Listen == c.Listen && port != "0":
		problems.Add("admin.listen: must differ from listen")
	}
	problems.Check((c.TLS.Cert == "") != (c.TLS.Key == ""), "tls.cert: needs tls.key, and tls.key needs tls.cert")
	problems.Check(c.Drain < 0, "drain: must not be negative")
	l := c.Limits
	problems.Check(l.Body < 1<<10, "limits.body: must be at least 1KiB")
	problems.Check(l.Headers < 1<<10, "limits.headers: must be at least 1KiB")
	problems.Check(l.Messages < 1, "limits.messages: must be at least 1")
	problems.Check(l.Calls < 1, "limits.calls: must be at least 1")
	problems.Check(l.Tools < 1, "limits.tools: must be at least 1")
	problems.Check(l.Values < 1, "limits.values: must be at least 1")
	problems.Check(l.HeadTimeout <= 0, "limits.head_timeout: must be positive")
	problems.Check(l.BodyTimeout <= 0, "limits.body_timeout: must be positive")
	problems.Check(l.IdleTimeout <= 0, "limits.idle_timeout: must be positive")
	problems.Check(l.WriteStall <= 0, "limits.write_stall: must be positive")
	problems.Check(c.Limits.Nesting < 8 || c.Limits.Nesting > 10_000, "limits.nesting: must be between 8 and 10000")
	problems.Check(c.Limits.Memory < c.Limits.Body, "limits.memory: must be at least limits.body")
	problems.Check(c.Limits.Concurrent < 0, "limits.concurrent: must not be negative; 0 is no limit")
	problems = append(problems, under("limits.total", c.Limits.Total.Validate())...)
	problems = append(problems, under("limits.session", c.Limits.Session.Validate())...)
	problems.Check(c.Limits.Session.Spending > 0 && len(c.Prices) == 0, "limits.session.spending: no prices are set: add prices")
	problems.Check(c.Limits.Total.SpendingPerDay > 0 && len(c.Prices) == 0, "limits.total.spending_per_day: no prices are set: add prices")
	for _, model := range slices.Sorted(maps.Keys(c.Prices)) {
		problems = append(problems, under(fmt.Sprintf("prices[%q]", model), c.Prices[model].Validate())...)
	}
	for i, h := range c.Hosts {
		problems.Check(h == "" || h != hostOf(h) || strings.ContainsAny(h, " ,/"), "hosts[%d]: %q must be a name or an address in lower case, without a port", i, h)
	}
	for i, o := range c.CORS.Origins {
		if u, err := url.Parse(o); err != nil || u.Scheme == "" || u.Host == "" || o != u.Scheme+"://"+u.Host {
			problems.Add("cors.origins[%d]: %q is not an origin, like https://chat.example.com", i, o)
		}
	}
	for i, k := range c.Auth.Keys {
		problems.Check(k.Name == "", "auth.keys[%d].name: is needed; it is the label in logs and metrics", i)
		problems.Check((k.Env == "") == (k.File == ""), "auth.keys[%d]: needs either env or file", i)
		for n, p := range k.Paths {
			problems.Check(!strings.HasPrefix(p, "/"), "auth.keys[%d].paths[%d]: %q must begin with a slash, like /batches", i, n, p)
		}
		if _, ok := recovery.ParseMode(string(k.Mode)); k.Mode != "" && !ok {
			problems.Add("auth.keys[%d].mode: %q is none of act, annotate, observe, off", i, k.Mode)
		}
		problems = append(problems, under(fmt.Sprintf("auth.keys[%d].limits", i), k.Limits.Limits.Validate())...)
		problems = append(problems, under(fmt.Sprintf("auth.keys[%d].limits.session", i), k.Limits.Session.Validate())...)
		problems.Check(k.Limits.Session.Spending > 0 && len(c.Prices) == 0, "auth.keys[%d].limits.session.spending: no prices are set: add prices", i)
		problems.Check(k.Limits.SpendingPerDay > 0 && len(c.Prices) == 0, "auth.keys[%d].limits.spending_per_day: no prices are set: add prices", i)
	}
	problems.Check(c.Auth.AdminEnv != "" && c.Auth.AdminFile != "", "auth.admin_env: is given beside auth.admin_file: remove one of them")
	return problems.Err()
}

// Warnings returns a message for each limit that is valid but may not do what its author expects.
func (c Config) Warnings() (out []string) {
	spending := c.Limits.Total.SpendingPerDay > 0
	for i, k := range c.Auth.Keys {
		spending = spending || k.Limits.SpendingPerDay > 0
		for _, w := range k.Limits.Idle(c.Limits.Total) {
			out = append(out, fmt.Sprintf("auth.keys[%d].limits.%s", i, w))
		}
	}
	for _, w := range c.Limits.Total.Idle(quota.Limits{}) {
		out = append(out, "limits.total."+w)
	}
	if n := len(c.Auth.Keys); c.Limits.Concurrent > 0 && c.Limits.Concurrent < n {
		out = append(out, fmt.Sprintf("limits.concurrent: is less than the %d keys: not all of them can be answered at once", n))
	}
	if _, all := c.Prices[quota.AnyModel]; spending && !all {
		out = append(out, `prices: have no "*": where spending is limited, models without a price are refused`)
	}
	return out
}

// under prefixes each part of a joined error with key.
func under(key string, err error) (errs []error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			errs = append(errs, fmt.Errorf("%s.%w", key, e))
		}
	}
	return errs
}
