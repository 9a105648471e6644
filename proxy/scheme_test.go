package proxy_test

import (
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

// peer accepts connections, counts them, and answers each with the same bytes.
func peer(t *testing.T, answer string) (addr string, asked *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	asked = &atomic.Int32{}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			asked.Add(1)
			go func() {
				defer c.Close()
				_, _ = c.Read(make([]byte, 64<<10))
				_, _ = c.Write([]byte(answer))
			}()
		}
	}()
	return l.Addr().String(), asked
}

// A URL with the wrong scheme, or of a page that is elsewhere, is a mistake in the configuration: it is told as
// that at once, and its target is asked once.
func TestWrongURL(t *testing.T) {
	const page = "<html><head><title>400 The plain HTTP request was sent to HTTPS port</title></head><body><center><h1>400 Bad Request</h1></center></body></html>"
	for name, c := range map[string]struct{ scheme, answer, says string }{
		"TLS to a plain port":  {"https", "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", "TLS"},
		"plain to a TLS port":  {"http", "\x15\x03\x03\x00\x02\x02\x46", "TLS"},
		"plain to Go's port":   {"http", "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n", "TLS"},
		"plain to nginx' port": {"http", "HTTP/1.1 400 Bad Request\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n" + page, "TLS"},
		"a login page":         {"http", "HTTP/1.1 302 Found\r\nLocation: https://login.example/?token=secret\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", "redirect"},
	} {
		t.Run(name, func(t *testing.T) {
			addr, asked := peer(t, c.answer)
			up := upstreamtest.New(upstreamtest.Options{}).Start(t)
			g := startYAML(t, strings.NewReplacer("UP/", up.URL()+"/", "http://127.0.0.1:1/", c.scheme+"://"+addr+"/").Replace(scaled)+
				models(map[string][]string{"alone": {"dead m"}, "backed": {"dead m", "backup m@ok"}}))
			r := g.ask(t.Context(), "alone", false, "")
			if e := gjson.GetBytes(r.body, "error"); r.status != 502 || e.Get("code").Str != "upstream_misconfigured" || e.Get("type").Str != "rebound_error" ||
				!strings.Contains(e.Get("message").Str, c.says) || strings.Contains(string(r.body), "secret") || r.header.Get("X-Should-Retry") != "false" {
				t.Errorf("%s\n%s", r, r.body)
			}
			if n := asked.Load(); n != 1 {
				t.Errorf("asked %d times", n)
			}
			if r := g.ask(t.Context(), "backed", false, ""); !r.complete() || asked.Load() > 2 {
				t.Errorf("with a fallback: asked %d times, %s", asked.Load()-1, r)
			}
		})
	}
}
