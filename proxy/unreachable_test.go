package proxy_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

// A host that never answered is named with its cause, after two tries; only where no
// host has that name SDKs are kept from asking again.
func TestNeverAnswered(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	unknown := &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "typo.invalid", IsNotFound: true}}
	for name, c := range map[string]struct {
		err      error
		reason   string
		hopeless bool
	}{
		"refused":      {refused, "connection refused", false},
		"unknown host": {unknown, "no such host", true},
		"no route":     {&net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH}, "no route to it", false},
		"too slow":     {context.DeadlineExceeded, "the connection timed out", false},
		"anything":     {errors.New("odd"), "the connection failed", false},
	} {
		t.Run(name, func(t *testing.T) {
			var dials atomic.Int32
			g := startDialing(t, func(context.Context, string, string) (net.Conn, error) {
				dials.Add(1)
				return nil, c.err
			})
			r := g.ask(t.Context(), "m", false, "")
			message := gjson.GetBytes(r.body, "error.message").Str
			if r.status < 500 || dials.Load() != 2 || !strings.Contains(message, "http://typo.invalid: "+c.reason) || !strings.Contains(message, "not answered since the gateway started") {
				t.Errorf("%d dials, status %d: %s", dials.Load(), r.status, r.body)
			}
			if hopeless := r.header.Get("X-Should-Retry") == "false"; hopeless != c.hopeless || hopeless == (r.header.Get("Retry-After") != "") {
				t.Errorf("X-Should-Retry %q, Retry-After %q", r.header.Get("X-Should-Retry"), r.header.Get("Retry-After"))
			}
		})
	}
}

// One that has answered is waited for: it comes back.
func TestAnsweredBefore(t *testing.T) {
	up := upstreamtest.New(upstreamtest.Options{}).Start(t)
	at := strings.TrimPrefix(up.URL(), "http://")
	var down atomic.Int32
	g := startDialing(t, func(ctx context.Context, network, _ string) (net.Conn, error) {
		if down.Add(-1) >= 0 {
			return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		}
		return (&net.Dialer{}).DialContext(ctx, network, at)
	})
	if r := g.ask(t.Context(), "m@unauthorized,header=connection:close", false, ""); r.status != 401 {
		t.Fatal(r)
	}
	down.Store(4)
	if r := g.ask(t.Context(), "n", false, ""); !r.complete() || down.Load() >= 0 {
		t.Errorf("%s, %d", r, down.Load())
	}
}

// startDialing is a gateway whose upstream typo.invalid is dialled by a function.
func startDialing(t *testing.T, dial func(context.Context, string, string) (net.Conn, error)) *gateway {
	t.Helper()
	cfg, err := configs.Parse("test.yaml", []byte(strings.ReplaceAll(scaled, "UP/", "http://typo.invalid/")), func(name string) (string, bool) {
		return "sk-key-" + strings.ToLower(name), strings.HasPrefix(name, "KEY_")
	})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Recovery.Patience = 2 * time.Second
	u := cfg.Upstreams["default"]
	u.DialContext = dial
	cfg.Upstreams["default"] = u
	return startConfig(t, cfg)
}
