package app_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

// watchedGateway is a gateway whose configuration is a file.
type watchedGateway struct {
	*gateway
	up   *upstreamtest.Running
	path string
	hup  chan os.Signal
}

// watch starts a gateway with the quick configuration and more in a file, which it watches like
// "rebound serve".
func watch(t *testing.T, more string) *watchedGateway {
	t.Helper()
	w := &watchedGateway{
		up: upstreamtest.New(upstreamtest.Options{KeepRequests: 100_000}).Start(t), path: filepath.Join(t.TempDir(), "rebound.yaml"), hup: make(chan os.Signal),
	}
	w.put(t, text(w.up, more))
	cfg, err := configs.Load(w.path, environ)
	if err != nil {
		t.Fatal(err)
	}
	w.gateway = launchConfig(t, cfg)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.Watch(ctx, environ, w.hup)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return w
}

// put replaces the file atomically, as editors and config maps do.
func (w *watchedGateway) put(t *testing.T, text string) {
	t.Helper()
	next := w.path + ".next"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, w.path); err != nil {
		t.Fatal(err)
	}
}

// logged returns the number of log lines with a message.
func (w *watchedGateway) logged(t *testing.T, text string) int {
	return len(w.log.lines(t, hasMessage(text)))
}

const (
	reloaded = "configuration reloaded"
	refused  = "the old one stays in force"
)

// A changed file is soon in force. Running streams are not affected, and a request that is being recovered
// keeps the configuration with which it began.
func TestReloadChangedFile(t *testing.T) {
	t.Parallel()
	w := watch(t, modelMap("m", "default old")+moreModels("slow", "default slow@gap=100ms,chunks=60")+moreModels("retried", "default retried@429,retry-after-ms=900x4/ok"))
	if r := w.must(chat("m", false, "")); r.target() != "default/old" {
		t.Fatal(r)
	}
	resp, err := w.open(t.Context(), chat("slow", true, "")) // takes 6 s
	if err != nil {
		t.Fatal(err)
	}
	w.put(t, text(w.up, modelMap("m", "default new")))
	retried := make(chan reply, 1)
	go func() { // begins before the reload, which needs two seconds at least, and ends after it
		retried <- w.ask(t.Context(), chat("retried", false, ""))
	}()
	eventually(t, 20*time.Second, "the new model map is in force", func() bool {
		return w.must(chat("m", false, "")).target() == "default/new"
	})
	if n := w.up.Stats().Active; n == 0 {
		t.Error("the slow stream was not under way when the file was reloaded: the test shows nothing")
	}
	if r := <-retried; !r.ok() || r.target() != "default/retried@429,retry-after-ms=900x4/ok" {
		t.Errorf("a request that was being recovered: %v", r)
	}
	if r := read(resp); !r.ok() || strings.Count(string(r.body), `"content"`) < 60 {
		t.Errorf("the stream was hurt by the reload: %v", r)
	}
	if n := w.logged(t, reloaded); n != 1 {
		t.Errorf("logged %d reloads, want 1", n)
	}
	if lines := w.log.lines(t, func(l map[string]any) bool { return isWarning(l) && l["event"] == nil }); len(lines) > 0 {
		t.Errorf("troubles: %v", lines)
	}
	// Names that are gone are no names of ours any more.
	if r := w.must(chat("slow", false, "")); r.target() != "default/slow" {
		t.Errorf("a name that was taken out of the map: %v", r)
	}
}

// moreModels is a further entry after modelMap.
func moreModels(m string, targets ...string) string {
	return strings.TrimPrefix(modelMap(m, targets...), "models:\n")
}

// What a running gateway cannot change keeps its old value, and the log says so as long as the file differs.
func TestReloadNeedsRestart(t *testing.T) {
	t.Parallel()
	w := watch(t, "")
	w.put(t, text(w.up, "log: {format: text, queue: 100}\nstore: {redis: {url: \"redis://127.0.0.1:1/0\"}}\notlp: {endpoint: \"http://127.0.0.1:1\"}\n"+
		"limits: {headers: 20000, head_timeout: 3s, idle_timeout: 1m}\nadmin: {listen: \"127.0.0.1:1\"}\n"))
	for round := 1; round <= 2; round++ {
		w.hup <- syscall.SIGHUP
		eventually(t, 20*time.Second, "the file is loaded", func() bool { return w.logged(t, reloaded) >= round })
		for _, setting := range []string{"store", "otlp", "log.format", "log.queue", "limits.headers", "limits.head_timeout", "limits.idle_timeout", "admin.listen"} {
			eventually(t, 5*time.Second, setting+" is named", func() bool {
				return len(w.log.lines(t, func(l map[string]any) bool { return l["setting"] == setting })) >= round
			})
		}
	}
}

// A gateway with keys keeps requiring them when a half-written file has none. A later complete file is used.
func TestReloadKeepsTheLastKey(t *testing.T) {
	t.Parallel()
	const keys = "auth: {keys: [{name: alice, env: KEY_A}]}\n"
	w := watch(t, keys)
	for i, half := range []string{text(w.up), "listen: 127.0.0.1:0\n", "{}"} {
		w.put(t, half)
		w.hup <- syscall.SIGHUP
		eventually(t, 20*time.Second, "the file is refused", func() bool { return w.logged(t, refused) > i })
		if r := w.ask(t.Context(), chat("m", false, "")); r.status != 401 {
			t.Errorf("%q, without a key: %v", half, r)
		}
	}
	w.put(t, text(w.up, keys, modelMap("m", "default new")))
	w.hup <- syscall.SIGHUP
	eventually(t, 20*time.Second, "the good file is taken", func() bool { return w.logged(t, reloaded) > 0 }) // the watcher can see it before the signal, which then loads it again
	if r := w.ask(t.Context(), chat("m", false, "")); r.status != 401 {
		t.Errorf("without a key: %v", r)
	}
}

// Reloads under traffic cost no request and lose no knowledge of targets.
func TestReloadUnderTraffic(t *testing.T) {
	t.Parallel()
	const limit = "lim@429,retry-after=60"
	models := modelMap("m", "default quick") + moreModels("limited", "default "+limit, "default spare")
	w := watch(t, models)
	if r := w.must(chat("limited", false, "")); r.target() != "default/spare" {
		t.Fatal(r)
	}
	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Go(func() {
			for ctx.Err() == nil {
				if r := w.ask(t.Context(), chat("m", i%2 == 0, "")); !r.ok() {
					t.Errorf("a request failed during reloads: %v", r)
				}
			}
		})
	}
	for i := range 20 {
		w.hup <- syscall.SIGHUP
		eventually(t, 20*time.Second, "a reload", func() bool { return w.logged(t, reloaded) > i })
	}
	stop()
	clients.Wait()
	if n := w.logged(t, refused); n > 0 {
		t.Errorf("%d of the reloads failed", n)
	}
	if r := w.must(chat("limited", false, "")); r.target() != "default/spare" || count(w.up, limit) != 1 {
		t.Errorf("a reload forgot a cool-down: %v", r)
	}
}
