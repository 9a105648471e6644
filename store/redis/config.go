package redis

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// Config says where the server is and how to connect to it.
type Config struct {
	// URL names one server: redis://user:password@host:6379/0, rediss:// for TLS,
	// unix:///path. With Cluster it is any node of the cluster. URLEnv names the
	// environment variable that holds the URL.
	URL    string `yaml:"url"`
	URLEnv string `yaml:"url_env"`
	// Addresses are the host:port of Sentinels (with MasterName) or of nodes (with Cluster).
	Addresses  []string `yaml:"addresses"`
	MasterName string   `yaml:"master_name"`
	Cluster    bool     `yaml:"cluster"`
	Database   int      `yaml:"database"` // with Addresses of Sentinels; a URL has its own

	// Username and Password override those of the URL. The loader reads the
	// password from the variable or file.
	Username     string `yaml:"username"`
	Password     string `yaml:"-"`
	PasswordEnv  string `yaml:"password_env"`
	PasswordFile string `yaml:"password_file"`
	// The Sentinels' own credential, if they need one.
	SentinelUsername     string `yaml:"sentinel_username"`
	SentinelPassword     string `yaml:"-"`
	SentinelPasswordEnv  string `yaml:"sentinel_password_env"`
	SentinelPasswordFile string `yaml:"sentinel_password_file"`

	// TLS is for Addresses; a URL says rediss://.
	TLS        bool   `yaml:"tls"`
	CAFile     string `yaml:"ca_file"`     // PEM, in addition to the system's
	ClientCert string `yaml:"client_cert"` // PEM files
	ClientKey  string `yaml:"client_key"`
	ServerName string `yaml:"server_name"` // in the server's certificate, if it is not the dialled host

	// Prefix starts every key, so that gateways can share a server.
	Prefix string `yaml:"prefix"`
	// Timeout limits every operation, and all operations together that one part of
	// the recovery needs for a request.
	Timeout time.Duration `yaml:"timeout"`
	// PoolSize is the number of connections per server.
	PoolSize int `yaml:"pool_size"`
}

// Defaults returns the configuration that applies when none is given: no server.
func Defaults() Config {
	return Config{Prefix: "rebound:", Timeout: 50 * time.Millisecond, PoolSize: 32}
}

// Enabled reports whether a server is configured.
func (c Config) Enabled() bool { return c.URL != "" || c.URLEnv != "" || len(c.Addresses) > 0 }

// String names the server without any credential.
func (c Config) String() string {
	switch {
	case c.URL != "":
		if _, err := parseURL(c.URL); err != nil {
			return "(an unusable URL)" // its path may be part of the password
		}
		u, _ := url.Parse(c.URL)
		return u.Scheme + "://" + u.Host + u.Path
	case c.MasterName != "":
		return c.MasterName + " of sentinels " + strings.Join(c.Addresses, ", ")
	}
	return strings.Join(c.Addresses, ", ")
}

// GoString is String, so that %#v shows no credential either.
func (c Config) GoString() string { return c.String() }

// Validate reports everything that is wrong, as one joined error; each message begins with the key.
func (c Config) Validate() error {
	var errs []error
	check := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	if c.Enabled() {
		if c.URL != "" {
			opt, err := parseURL(c.URL)
			if err != nil {
				errs = append(errs, fmt.Errorf("url: %w", err))
			}
			check(err == nil && c.Cluster && opt.DB != 0, "url: a Cluster has only database 0")
		}
		hasURL := c.URL != "" || c.URLEnv != ""
		check(hasURL && len(c.Addresses) > 0, "addresses: are given beside url: remove one of them")
		check(hasURL && c.MasterName != "", "master_name: needs addresses of Sentinels in place of url")
		check(hasURL && c.TLS, "tls: is for addresses; write the URL as rediss://")
		check(hasURL && c.Database != 0, "database: is for addresses; write it at the end of the URL, as in redis://host:6379/1")
		check(!hasURL && c.MasterName == "" && !c.Cluster,
			"addresses: need master_name (Sentinel) or cluster: true; for a single server, use url")
	}
	for i, a := range c.Addresses {
		_, port, err := net.SplitHostPort(a)
		check(err != nil || port == "", "addresses[%d]: %q is not host:port", i, a)
	}
	check(c.Cluster && c.MasterName != "", "cluster: cannot be combined with master_name")
	check(c.Database < 0 || (c.Cluster && c.Database != 0), "database: must not be negative, and a Cluster has only 0")
	check(c.PasswordEnv != "" && c.PasswordFile != "", "password_env: is given beside password_file: remove one of them")
	check(c.SentinelPasswordEnv != "" && c.SentinelPasswordFile != "",
		"sentinel_password_env: is given beside sentinel_password_file: remove one of them")
	check((c.ClientCert == "") != (c.ClientKey == ""), "client_cert: needs client_key, and the other way round")
	for _, f := range [...][2]string{{"ca_file", c.CAFile}, {"client_cert", c.ClientCert}, {"client_key", c.ClientKey}} {
		if f[1] != "" {
			_, err := os.Stat(f[1])
			check(err != nil, "%s: %v", f[0], err)
		}
	}
	check(c.Prefix == "" || len(c.Prefix) > 64 || strings.ContainsFunc(c.Prefix, unprintable),
		"prefix: must have 1 to 64 printable characters")
	check(c.Timeout < 5*time.Millisecond || c.Timeout > 5*time.Second, "timeout: must be between 5ms and 5s")
	check(c.PoolSize < 2 || c.PoolSize > 4096, "pool_size: must be between 2 and 4096")
	return errors.Join(errs...)
}

func unprintable(r rune) bool { return r <= ' ' || r > '~' }

// parseURL parses a URL. Its errors never contain the URL, which may have a password.
func parseURL(text string) (*goredis.Options, error) {
	u, err := url.Parse(text)
	if err != nil || strings.Contains(text, "#") {
		return nil, errors.New("is not a URL; #, / and % in the password must be written as %23, %2F and %25")
	}
	switch {
	case u.Scheme != "redis" && u.Scheme != "rediss" && u.Scheme != "unix":
		return nil, errors.New("must begin with redis://, rediss:// (TLS) or unix://")
	case u.Scheme != "unix" && u.Hostname() == "":
		return nil, errors.New("has no host, as in redis://host:6379")
	}
	for option := range u.Query() {
		if option != "db" && option != "skip_verify" {
			return nil, errors.New("has an option other than db and skip_verify; timeout and pool_size are keys of their own")
		}
	}
	opt, err := goredis.ParseURL(text)
	if err != nil {
		return nil, errors.New("has a path that is not a database number; a / in the password must be written as %2F")
	}
	return opt, nil
}
