package app_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
	"github.com/rebound-llm/rebound/store/storetest"
)

// Observers that hang lose data, and never cost a request: a page that reads nothing, a collector and a store that hang,
// all at once, while requests are recovered and recorded. The outage is reported.
func TestWatchersHang(t *testing.T) {
	t.Parallel()
	up := upstreamtest.New(upstreamtest.Options{}).Start(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("what recordings are encrypted with"), 0o600); err != nil {
		t.Fatal(err)
	}
	redis := storetest.StartRedis(t)
	g := launch(t, text(up, shared(t, redis.URL(), outage), fmt.Sprintf("otlp: {endpoint: \"http://%s\"}", silent.Addr()), fmt.Sprintf("recording: {key_file: %q}", key)))
	page, err := net.Dial("tcp", strings.TrimPrefix(g.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer page.Close()
	if _, err := fmt.Fprintf(page, "GET /rebound/events?requests=1 HTTP/1.1\r\nHost: %s\r\n\r\n", strings.TrimPrefix(g.url, "http://")); err != nil {
		t.Fatal(err)
	}
	ask := func(round string) {
		var all sync.WaitGroup
		for c := range 8 {
			all.Go(func() {
				for i := range 25 {
					g.must(chat(fmt.Sprintf("%s-%d-%d@503/ok", round, c, i), i%2 == 0, ""))
					g.must(chat("m", false, ""))
				}
			})
		}
		all.Wait()
	}
	ask("with-all")
	redis.Pause()
	ask("with-none")
	eventually(t, 10*time.Second, "it is told that the store is away", func() bool { return strings.Contains(g.log.String(), "store is away") })
	redis.Resume()
	if err := g.stop(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(g.log.String(), "the OpenTelemetry collector did not take") {
		t.Error("the collector's outage is not reported")
	}
}
