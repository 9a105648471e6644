package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rebound-llm/rebound/cmd/rebound/app"
	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

// cards holds the expected outcomes without a gateway, through a plain proxy and through Rebound
// with the demo's time limits.
var cards = map[string]struct{ straight, proxy, rebound string }{
	"healthy":      {"complete", "complete", "complete"},
	"limited":      {"complete", "complete", "complete"},
	"limited-long": {"error 429", "error 429", "complete"},
	"failed-once":  {"complete", "complete", "complete"},
	"burst":        {"error 503", "error 503", "complete"},
	"down":         {"error 503", "error 503", "error event"},
	"page":         {"error 502", "error 502", "complete"},
	"reset":        {"connection reset", "error 502", "complete"},
	"gone":         {"error 404", "error 404", "error 404"},
	"silent-alone": {"hung", "hung", "complete"},
	"headers-only": {"hung", "hung", "complete"},
	"late":         {"complete", "complete", "complete"},
	"cut":          {"connection broke at 65 %", "connection broke at 65 %", "complete"},
	"stalled":      {"hung at 50 %", "hung at 50 %", "complete"},
	"clean-end":    {"TRUNCATED, looks complete", "TRUNCATED, looks complete", "complete"},
	"error-event":  {"error event at 50 %", "error event at 50 %", "complete"},
	"malformed":    {"event is not JSON at 30 %", "event is not JSON at 30 %", "complete"},
	"no-done":      {"complete", "complete", "complete"},
	"empty":        {"EMPTY, looks complete", "EMPTY, looks complete", "complete"},
	"role-only":    {"EMPTY, looks complete", "EMPTY, looks complete", "complete"},
	"half-json":    {"body is not JSON", "body is not JSON", "complete"},
	"diverges":     {"connection broke at 65 %", "connection broke at 65 %", "error event at 65 %"},
	"max-tokens":   {"error 400", "error 400", "complete"},
	"temperature":  {"error 400", "error 400", "complete"},
	"output-limit": {"error 400", "error 400", "complete"},
	"overflow-fit": {"error 400", "error 400", "complete"},
	"call-json":    {"bad call: not JSON", "bad call: not JSON", "complete"},
	"call-name":    {"bad call: no such tool", "bad call: no such tool", "complete"},
	"call-text":    {"call shown as text", "call shown as text", "complete"},
	"call-missing": {"bad call: path is missing", "bad call: path is missing", "complete"},
	"call-cut":     {"connection broke", "connection broke", "complete"},
}

// crashOptions returns options for a test. The client waits longer than the demo's, because a
// busy machine is slow and only faults that hang take the whole time.
func crashOptions(gateway, listen string) CrashOptions {
	return CrashOptions{Gateway: gateway + "/v1", Format: "chat", Listen: listen, Timeout: 15 * time.Second, Wait: 10 * time.Second, Parallel: 6, Progress: io.Discard}
}

func freeAddr(t *testing.T) string {
	t.Helper()
	addr, err := upstreamtest.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// plainProxy starts a gateway that only forwards requests, after edit.
func plainProxy(t *testing.T, upstream string, edit func(*http.Request)) string {
	t.Helper()
	u, err := url.Parse("http://" + upstream)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Transport: transport, ErrorLog: log.New(io.Discard, "", 0), Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(u)
		if edit != nil {
			edit(r.Out)
		}
	}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Otherwise the server closes the request's body when the answer begins, and the proxy aborts the
		// answer if it has not read all of the body: https://pkg.go.dev/net/http#ResponseController.EnableFullDuplex.
		_ = http.NewResponseController(w).EnableFullDuplex()
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(transport.CloseIdleConnections)
	t.Cleanup(s.Close)
	return s.URL
}

// reboundGateway starts Rebound with the demo's configuration, but with longer time limits where a
// busy machine reaches them.
func reboundGateway(t *testing.T, upstream string) string {
	t.Helper()
	text := strings.NewReplacer("UPSTREAM", "http://"+upstream, "LISTEN", `"127.0.0.1:0"`, "patience: 4s", "patience: 7s",
		"keepalive_after: 3s", "keepalive_after: 5s", "100ms, whole: 100ms", "1s, whole: 1s").Replace(configuration)
	cfg, err := configs.Parse("crashtest.yaml", []byte(text), func(name string) (string, bool) { return keyRecording, strings.HasPrefix(name, "KEY_") })
	if err != nil {
		t.Fatal(err)
	}
	gw, err := app.New(cfg, io.Discard, "test")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- gw.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
	return "http://" + gw.Addr().String()
}

// TestCrash checks that the cards of gateways differ as expected, and that Rebound's outcomes are correct.
func TestCrash(t *testing.T) {
	runs := []struct {
		gateway, format string
		faults          int
		card            *Card
		err             error
	}{{gateway: "proxy", format: "chat", faults: len(cards)}, {gateway: "rebound", format: "chat", faults: len(cards)},
		{gateway: "rebound", format: "responses", faults: 20}, {gateway: "rebound", format: "messages", faults: 20}}
	if testing.Short() {
		runs = runs[1:2]
	}
	var all sync.WaitGroup
	for i := range runs { // in parallel, because they mostly wait
		r := &runs[i]
		listen := freeAddr(t)
		var gateway string
		if r.gateway == "proxy" {
			gateway = plainProxy(t, listen, nil)
		} else {
			gateway = reboundGateway(t, listen)
		}
		o := crashOptions(gateway, listen)
		o.Format = r.format
		all.Go(func() { r.card, r.err = Crash(t.Context(), o) })
	}
	all.Wait()
	for _, c := range runs {
		name, card := c.gateway, c.card
		t.Run(name+"/"+c.format, func(t *testing.T) {
			if c.err != nil {
				t.Fatal(c.err)
			}
			if len(card.Faults) != c.faults {
				t.Errorf("%d faults, %d are known", len(card.Faults), c.faults)
			}
			complete := 0
			for _, r := range card.Faults {
				want := cards[r.Fault].proxy
				if name == "rebound" {
					want = cards[r.Fault].rebound
				}
				if want == "complete" {
					complete++
				}
				if normalized(r.Gateway.Text) != normalized(want) || normalized(r.Straight.Text) != normalized(cards[r.Fault].straight) {
					t.Errorf("%s: straight %q, want %q; through the gateway %q, want %q", r.Title, r.Straight.Text, cards[r.Fault].straight, r.Gateway.Text, want)
				}
				if (r.Right == rightComplete) != (r.Straight.Got == "complete") {
					t.Errorf("%s: %q is right, and without a gateway it is %q", r.Title, r.Right, r.Straight.Got)
				}
				switch g := r.Gateway; {
				case name == "proxy" && g.Asked != g.Client:
					t.Errorf("%s: %d requests of the client, %d upstream: a plain proxy adds none", r.Title, g.Client, g.Asked)
				case g.Paid > g.Asked || g.Got == "complete" && g.Paid == 0:
					t.Errorf("%s: %d of %d requests are paid", r.Title, g.Paid, g.Asked)
				case name == "rebound" && g.Client > 1 && r.Right != rightError:
					t.Errorf("%s: the client had to ask %d times", r.Title, g.Client)
				}
			}
			if card.Complete.Gateway != complete {
				t.Errorf("%d complete, want %d", card.Complete.Gateway, complete)
			}
			checkPrinted(t, card)
		})
	}
}

// normalized removes from a card's text what a busy machine changes: a broken connection may arrive
// before the text that was sent earlier.
func normalized(text string) string {
	text, _, _ = strings.Cut(text, " at ")
	switch text {
	case "connection broke", "connection reset", "error event", "event is not JSON":
		return "broken"
	}
	return text
}

// checkPrinted checks a card's output.
func checkPrinted(t *testing.T, card *Card) {
	t.Helper()
	var out bytes.Buffer
	if err := card.Print(&out, false); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(line); n > 125 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, r := range card.Faults {
		if !strings.Contains(out.String(), "\n  "+r.Title+" ") {
			t.Errorf("no row %q", r.Title)
		}
	}
	encoded, err := json.Marshal(card)
	var again Card
	if err != nil || json.Unmarshal(encoded, &again) != nil || len(again.Faults) != len(card.Faults) || again.Faults[1] != card.Faults[1] {
		t.Errorf("as JSON: %s, %v", encoded, err)
	}
}

// TestCrashWiring checks that each mistake in a gateway's configuration is named.
func TestCrashWiring(t *testing.T) {
	rename := func(name func(string) string) func(*http.Request) {
		return func(r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			var q struct{ Model string }
			_ = json.Unmarshal(body, &q)
			body = bytes.Replace(body, []byte(quote(q.Model)), []byte(quote(name(q.Model))), 1)
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		}
	}
	other := upstreamtest.New(upstreamtest.Options{}).Start(t)
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "who are you", http.StatusUnauthorized) }))
	t.Cleanup(refuses.Close)
	fixed := func(url string) func(string) string { return func(string) string { return url } }
	for name, c := range map[string]struct {
		gateway func(upstream string) string
		prefix  string
		want    string // "" works
	}{
		"well": {func(up string) string { return plainProxy(t, up, nil) }, "", ""},
		"prefix": {func(up string) string {
			return plainProxy(t, up, rename(func(s string) string { return strings.TrimPrefix(s, "openai/") }))
		}, "openai/", ""},
		"prefix kept": {func(up string) string { return plainProxy(t, up, nil) }, "openai/", "leave out --prefix openai/"},
		"renamed":     {func(up string) string { return plainProxy(t, up, rename(func(string) string { return "gpt-4o" })) }, "", `requests the model "gpt-4o" instead of "crash-well"`},
		"path": {func(up string) string {
			return plainProxy(t, up, func(r *http.Request) { r.URL.Path = "/v1" + r.URL.Path })
		}, "", "requests the path /v1/v1/chat/completions"},
		"other":         {fixed(other.URL()), "", "the answer is from another upstream"},
		"refused":       {fixed(refuses.URL), "", `no request arrived at the scripted upstream; the client got: error 401 "who are you\n"`},
		"a closed port": {fixed(refusedURL), "", "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			listen := freeAddr(t)
			o := crashOptions(c.gateway(listen), listen)
			o.Prefix, o.Wait = c.prefix, 0
			began := make(chan struct{}, 1)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			o.Progress = writerFunc(func(p []byte) (int, error) {
				if strings.Contains(string(p), "The gateway is connected.") {
					began <- struct{}{}
					cancel() // TestCrash runs the faults
				}
				return len(p), nil
			})
			_, err := Crash(ctx, o)
			switch {
			case err == nil:
				t.Error("it ended")
			case c.want == "" && len(began) == 0, c.want != "" && !strings.Contains(err.Error(), c.want):
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestCrashPage checks that docs/crashtest.md has every fault with its correct outcome.
func TestCrashPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/crashtest.md")
	if err != nil {
		t.Fatal(err)
	}
	right := map[string]string{}
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, " | "); len(cells) == 4 {
			right[strings.TrimPrefix(cells[0], "| ")] = cells[2]
		}
	}
	for _, r := range crashRows(chat) {
		if got := right[r.fault.title]; got != r.right {
			t.Errorf("%s: the page says %q, the card %q", r.fault.title, got, r.right)
		}
	}
}
