package app_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// realTime skips a test that takes minutes, unless REBOUND_TEST_REAL_TIME is set (`make slow`). Package recovery has the
// same tests with a fake clock.
func realTime(t *testing.T) {
	if testing.Short() || os.Getenv("REBOUND_TEST_REAL_TIME") == "" {
		t.Skip("takes minutes: set REBOUND_TEST_REAL_TIME=1")
	}
	t.Parallel()
}

// upstreamTaking starts an upstream that answers with its name after the time that takes returns.
func upstreamTaking(t *testing.T, name string, takes func() time.Duration) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		select {
		case <-time.After(takes()):
		case <-req.Context().Done():
			return
		}
		if gjson.GetBytes(body, "stream").Bool() {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, `data: {"id":"s","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":%q},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n", name)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"w","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":600,"total_tokens":605}}`, name)
	}))
	t.Cleanup(s.Close)
	return s
}

// TestShareInRealTime checks which target answers if a healthy primary is slow, or dead, and a fallback is fast. Five
// agents send requests one after another.
func TestShareInRealTime(t *testing.T) {
	for _, c := range []struct {
		name            string
		primary, backup time.Duration
		last            time.Duration
		stream          bool
		least           float64 // share of the primary's answers
		slow            int     // answers that may take longer than the fallback and three seconds; -1 for any
	}{
		{"slow", 13 * time.Second, 2 * time.Second, 70 * time.Second, false, 0.95, -1},
		{"dead", time.Hour, time.Second, 150 * time.Second, false, 0, 12},
		{"dead, streamed", time.Hour, time.Second, 150 * time.Second, true, 0, 12},
	} {
		t.Run(c.name, func(t *testing.T) {
			realTime(t)
			primary := upstreamTaking(t, "primary", func() time.Duration { return c.primary })
			backup := upstreamTaking(t, "backup", func() time.Duration { return c.backup })
			g := launch(t, strings.NewReplacer("UP/", primary.URL+"/", "BACKUP/", backup.URL+"/", "PROFILE",
				"profile: hosted").Replace(strings.Replace(plain, "BACKUP/v1\", passthrough", "BACKUP/v1\", profile: hosted, passthrough", 1))+
				"  m: {targets: [{upstream: default}, {upstream: backup}]}\n")
			var mu sync.Mutex
			var group sync.WaitGroup
			from, slow := map[string]int{}, 0
			until := time.Now().Add(c.last)
			for range 5 {
				group.Go(func() {
					for time.Now().Before(until) {
						r := g.ask(t.Context(), chat("m", c.stream, ""))
						mu.Lock()
						switch {
						case !r.ok():
							t.Error(r)
						case strings.Contains(string(r.body), "primary"):
							from["primary"]++
						default:
							from["backup"]++
						}
						if r.took > c.backup+3*time.Second {
							slow++
						}
						mu.Unlock()
					}
				})
			}
			group.Wait()
			share := float64(from["primary"]) / float64(max(1, from["primary"]+from["backup"]))
			if share < c.least || c.slow >= 0 && slow > c.slow {
				t.Errorf("answers of %v, %d of them slow", from, slow)
			}
		})
	}
}

// TestHangInRealTime checks that many streams that hang at one silent target are all answered within 45 s, and so is one
// that hangs alone afterwards. Later requests are answered at once.
func TestHangInRealTime(t *testing.T) {
	for _, c := range []struct {
		n   int
		gap time.Duration
	}{{10, 150 * time.Millisecond}, {20, 0}, {12, 0}} {
		t.Run(fmt.Sprint(c.n, c.gap), func(t *testing.T) {
			realTime(t)
			var left atomic.Int64
			up := upstreamTaking(t, "primary", func() time.Duration {
				if left.Add(-1) >= 0 {
					return time.Hour
				}
				return 0
			})
			g := launch(t, fmt.Sprintf("listen: 127.0.0.1:0\nupstreams:\n  default: {url: %q, passthrough: true, profile: hosted}\n", up.URL+"/v1"))
			for _, n := range []int{c.n, 1} {
				left.Store(int64(n))
				var group sync.WaitGroup
				for i := range n {
					group.Go(func() {
						<-time.After(time.Duration(i) * c.gap)
						if r := g.ask(t.Context(), chat("m", true, "")); !r.ok() || r.took > 45*time.Second {
							t.Error(r)
						}
					})
				}
				group.Wait()
			}
		})
	}
}
