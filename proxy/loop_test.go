package proxy_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// through is a proxy whose destination is set once it is known.
type through struct {
	net.Listener
	to chan string
}

// A request that comes round to the gateway is refused the first time, also
// through another gateway: nothing multiplies.
func TestLoop(t *testing.T) {
	for name, hops := range map[string]int{"itself": 1, "through another": 2} {
		t.Run(name, func(t *testing.T) {
			l := forwarder(t)
			g := startYAML(t, "listen: 127.0.0.1:0\nupstreams: {default: {url: \"http://"+l.Addr().String()+"/v1\"}}\n")
			last := g
			if hops == 2 {
				last = startYAML(t, "listen: 127.0.0.1:0\nupstreams: {default: {url: \""+g.url+"/v1\", keys: [{name: a, env: KEY_A}]}}\n")
			}
			l.to <- strings.TrimPrefix(last.url, "http://")
			for _, path := range []string{"/v1/chat/completions", "/v1/embeddings"} {
				started := time.Now()
				r := g.post(t.Context(), path, `{"model":"m","messages":[{"role":"user","content":"Hi"}]}`, nil)
				if r.status != http.StatusLoopDetected || gjson.GetBytes(r.body, "error.code").Str != "gateway_loop" || r.header.Get("X-Should-Retry") != "false" {
					t.Errorf("%s: %d %s after %v", path, r.status, r.body, time.Since(started))
				}
				if tries := r.header.Get("X-Rebound-Attempts"); path == "/v1/chat/completions" && tries != "1" {
					t.Errorf("%s attempts", tries)
				}
			}
		})
	}
}

// forwarder passes connections on to an address that it is told first.
func forwarder(t *testing.T) *through {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	f := &through{l, make(chan string, 1)}
	go func() {
		to := ""
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if to == "" {
				to = <-f.to
			}
			d, err := net.Dial("tcp", to)
			if err != nil {
				_ = c.Close()
				continue
			}
			go pipe(c, d)
			go pipe(d, c)
		}
	}()
	return f
}

func pipe(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_ = to.Close()
	_ = from.Close()
}
