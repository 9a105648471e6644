package redis

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	// dialTimeout limits opening a connection, TLS included. It may be longer than
	// the time-out of an operation: go-redis dials in the background, and a
	// connection that is too late for one operation serves the next.
	dialTimeout = time.Second
	// One retry, nearly at once, for a pooled connection that the server has
	// closed.
	retries    = 1
	retryPause = time.Millisecond
	// redirects limits the redirects of a Cluster, which include its retries.
	redirects = 3
)

// silenceOnce replaces the logger of go-redis, which is global to the process and
// writes a line to standard error for every failed dial. The returned errors say
// the same.
var silenceOnce sync.Once

type noLogger struct{}

// Printf drops the line.
func (noLogger) Printf(context.Context, string, ...any) {}

// connect builds the client. It does not touch the network.
func connect(cfg Config) (goredis.UniversalClient, error) {
	silenceOnce.Do(func() { goredis.SetLogger(noLogger{}) })
	u := &goredis.UniversalOptions{
		Addrs: cfg.Addresses, MasterName: cfg.MasterName, Username: cfg.Username, Password: cfg.Password, DB: cfg.Database,
		SentinelUsername: cfg.SentinelUsername, SentinelPassword: cfg.SentinelPassword,
		DialTimeout: dialTimeout, DialerRetries: 1,
		// Protocol 2 without CLIENT SETINFO: older servers, forks and proxies accept
		// it, and it has no push messages.
		Protocol: 2, DisableIdentity: true, MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		MaxRetries: retries, MinRetryBackoff: retryPause, MaxRetryBackoff: retryPause, MaxRedirects: redirects,
		ReadTimeout: cfg.Timeout, WriteTimeout: cfg.Timeout, ContextTimeoutEnabled: true,
		// Two waits for a connection still end before the operation's time-out.
		PoolSize: cfg.PoolSize, PoolTimeout: cfg.Timeout / 3, PipelinePoolSize: -1,
	}
	network, secure := "", cfg.TLS
	conf := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: cfg.ServerName}
	if cfg.URL != "" {
		parsed, err := parseURL(cfg.URL)
		if err != nil {
			return nil, fmt.Errorf("url: %w", err)
		}
		network, u.Addrs, u.DB = parsed.Network, []string{parsed.Addr}, parsed.DB
		u.Username, u.Password = cmp.Or(u.Username, parsed.Username), cmp.Or(u.Password, parsed.Password)
		if parsed.TLSConfig != nil {
			secure, conf.InsecureSkipVerify = true, parsed.TLSConfig.InsecureSkipVerify
		}
	}
	if !secure {
		conf = nil
	} else if err := addFiles(conf, cfg); err != nil {
		return nil, err
	}
	u.Dialer = dialer(conf)
	switch {
	case cfg.MasterName != "":
		return goredis.NewFailoverClient(u.Failover()), nil
	case cfg.Cluster:
		c := u.Cluster()
		c.MaxRetries = -1
		// Routing policies send COMMAND with a time-out of five seconds, and our
		// commands do not need them: each has its key first.
		c.DisableRoutingPolicies = true
		c.ClusterStateReloadInterval = 10 * time.Second
		return goredis.NewClusterClient(c), nil
	}
	simple := u.Simple()
	simple.Network = network
	return goredis.NewClient(simple), nil
}

// addFiles adds the certificates of the configured files to conf.
func addFiles(conf *tls.Config, cfg Config) error {
	if cfg.CAFile != "" {
		pem, err := os.ReadFile(cfg.CAFile)
		if err != nil {
			return fmt.Errorf("ca_file: %w", err)
		}
		if conf.RootCAs, err = x509.SystemCertPool(); err != nil {
			conf.RootCAs = x509.NewCertPool()
		}
		if !conf.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("ca_file: no certificate in %s", cfg.CAFile)
		}
	}
	if cfg.ClientCert != "" {
		pair, err := tls.LoadX509KeyPair(cfg.ClientCert, cfg.ClientKey)
		if err != nil {
			return fmt.Errorf("client_cert: %w", err)
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	return nil
}

// dialer returns a dial function, with TLS if conf is not nil. Unlike that of
// go-redis, it also stops when the context ends during the TLS handshake.
func dialer(conf *tls.Config) func(context.Context, string, string) (net.Conn, error) {
	d := &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 30 * time.Second, Interval: 5 * time.Second, Count: 3,
	}}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		raw, err := d.DialContext(ctx, network, addr)
		if err != nil || conf == nil {
			return raw, err
		}
		c := conf
		if c.ServerName == "" {
			c = conf.Clone()
			if c.ServerName, _, err = net.SplitHostPort(addr); err != nil {
				c.ServerName = addr
			}
		}
		conn := tls.Client(raw, c)
		if err := conn.HandshakeContext(ctx); err != nil {
			raw.Close()
			return nil, fmt.Errorf("tls: %w", err)
		}
		return abruptConn{conn, raw}, nil
	}
}

// abruptConn closes without close_notify: tls.Conn waits up to five seconds to
// send it to a server that no longer reads.
type abruptConn struct {
	*tls.Conn
	raw net.Conn
}

// Close closes the connection below TLS.
func (a abruptConn) Close() error { return a.raw.Close() }
