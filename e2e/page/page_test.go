package page_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/cmd/rebound/app"
	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

// patience bounds every wait for the browser.
const patience = 30 * time.Second

const adminToken = "an-admin-token-for-this-test-and-a-key"

// gateway is a running gateway with a scripted upstream.
type gateway struct {
	t   *testing.T
	url string
}

// start runs a gateway until the test ends. more is configuration, upstreams are further ones.
func start(t *testing.T, more string, upstreams ...string) *gateway {
	scripts := upstreamtest.New(upstreamtest.Options{})
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/models" { // that tells windows
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"object":"list","data":[{"id":%q,"object":"model","context_length":32000}]}`, hostile)
			return
		}
		if r.URL.Path == "/v1/page" { // it would read what the page of the gateway shows
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, `<body><p>shown</p><script>document.title = "ran"; fetch("/rebound/now").then((r) => r.text()).then((t) => document.title = t)</script></body>`)
			return
		}
		scripts.ServeHTTP(w, r)
	}))
	t.Cleanup(up.Close)
	text := fmt.Sprintf("listen: 127.0.0.1:0\ndrain: 2s\nstrategies: {holdout: 0}\nupstreams: {default: {url: %q, passthrough: true, profile: hosted}%s}\n%s",
		up.URL+"/v1", strings.Join(append([]string{""}, upstreams...), ", "), more)
	cfg, err := configs.Parse("page.yaml", []byte(text), func(name string) (string, bool) { return adminToken, name == "TOKEN" || name == "RECORDING" })
	if err != nil {
		t.Fatal(err)
	}
	a, err := app.New(cfg, io.Discard, "test")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return &gateway{t, "http://" + a.Addr().String()}
}

// ask sends a completion and reads it to its end.
func (g *gateway) ask(body string) {
	req, err := http.NewRequest(http.MethodPost, g.url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		g.t.Error(err)
		return
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer sk-client"}, "User-Agent": {hostile}, "X-Session-Id": {hostile}}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		g.t.Error(err)
		return
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
}

// told is what an interface of the gateway tells.
func (g *gateway) told(path string) gjson.Result {
	resp, err := http.Get(g.url + "/rebound/" + path)
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return gjson.ParseBytes(body)
}

// done waits for the event of the last request: it is written after the answer.
func (g *gateway) done() gjson.Result {
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if ev := g.told("events/history?event=request_done").Get("events.0"); ev.Exists() || time.Now().After(end) {
			return ev
		}
	}
}

// browser is a tab of a real browser.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu   sync.Mutex
	said []string // in the console
}

// open starts a browser; without one the test is skipped, and fails under CI.
func open(t *testing.T) *browser {
	path := os.Getenv("REBOUND_TEST_CHROMIUM")
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if found, err := exec.LookPath(name); path == "" && err == nil {
			path = found
		}
	}
	if path == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("Chromium is needed: install it (make servers), or name it in REBOUND_TEST_CHROMIUM")
		}
		t.Skip("there is no Chromium here; REBOUND_TEST_CHROMIUM names one")
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(path))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // it refuses to be root otherwise; it only sees this gateway
	}
	all, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(all)
	t.Cleanup(cancel)
	b := &browser{t: t, ctx: ctx}
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1280, 900)); err != nil { // it starts with this context, and ends with it
		t.Fatal(err)
	}
	messages := chromedp.Console(ctx)
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			b.mu.Lock()
			b.said = append(b.said, m.String())
			b.mu.Unlock()
		}
	}()
	return b
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// eval is the value of an expression in the page.
func eval[T any](b *browser, script string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](script))
	if err != nil {
		b.t.Fatalf("%s: %v", script, err)
	}
	return v
}

// await waits until an expression in the page is true.
func (b *browser) await(what, script string) {
	b.t.Helper()
	for end := time.Now().Add(patience); !b.holds(script); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("%s: it does not come. The page says:\n%s\nThe console: %q", what, eval[string](b, "document.body.innerText"), b.said)
		}
	}
}

// holds reports whether an expression in the page is true. While the browser goes from
// one page to another none is.
func (b *browser) holds(script string) bool {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+script+")"))
	if err != nil && !strings.Contains(err.Error(), "navigated or closed") && !strings.Contains(err.Error(), "execution context") {
		b.t.Fatalf("%s: %v", script, err)
	}
	return err == nil && v
}

// figure is what the page shows under a name.
func (b *browser) figure(name string) string {
	b.t.Helper()
	return eval[string](b, fmt.Sprintf("document.querySelector('[data-figure=%q]')?.textContent ?? 'not shown'", name))
}

// hostile is a name that would run as a script wherever it is taken for HTML.
const hostile = `<img src=x onerror=document.body.dataset.owned=1>`

// One request is followed from its first failure to its answer. What is shown is what
// the gateway tells, and names that are HTML are text.
func TestFollowARequest(t *testing.T) {
	g, b := start(t, ""), open(t)
	b.do(chromedp.Navigate(g.url + "/rebound/"))
	b.await("the page", "document.getElementById('state').textContent === 'live'")
	g.ask(`{"model":"fine","stream":true,"messages":[{"role":"user","content":"Hello."}]}`)
	model := hostile + "@503,retry-after=3/ok"
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		g.ask(fmt.Sprintf(`{"model":%q,"stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"Hello."}]}`, model))
	}()
	b.await("the failure", "document.querySelector('.rows .chip.running')")
	b.do(chromedp.KeyEvent("j"), chromedp.KeyEvent("\r"))
	b.await("the request under way", "location.hash.startsWith('#request/') && document.querySelector('.head .chip.running')")
	if got := eval[string](b, "document.querySelector('.timeline').textContent"); !strings.Contains(got, "Attempt 1") || !strings.Contains(got, "Wait requested by the upstream") {
		t.Errorf("under way it shows %q", got)
	}
	<-answered
	b.await("the answer", "document.querySelector('.head .chip.recovered')")

	done := g.done()
	for name, want := range map[string]string{
		"request":     done.Get("request").Str,
		"attempts":    done.Get("attempt").Raw,
		"status":      done.Get("status").Raw,
		"done":        done.Get("recovery").Str,
		"answered-by": done.Get("target").Str,
		"used":        fmt.Sprint(done.Get("usage.input").Int() + done.Get("usage.output").Int()),
		"cost":        fmt.Sprint(done.Get("cost.input").Int() + done.Get("cost.output").Int()),
		"began":       done.Get("time").Time().Add(-time.Duration(done.Get("duration_ms").Int()) * time.Millisecond).Local().Format("15:04:05"),
	} {
		if got := b.figure(name); got != want {
			t.Errorf("%s is shown as %q, want %q", name, got, want)
		}
	}
	// Go and the page round half a hundredth differently; from ten seconds on there are tenths.
	for name, ms := range map[string]float64{"took": done.Get("duration_ms").Float(), "first-byte": done.Get("ttfb_ms").Float()} {
		var s float64
		if _, err := fmt.Sscanf(b.figure(name), "%f s", &s); err != nil || math.Abs(1000*s-ms) > max(5.1, ms/100) {
			t.Errorf("%s is shown as %q, want %g ms", name, b.figure(name), ms)
		}
	}
	if got := eval[string](b, "document.querySelector('h1').textContent"); got != model {
		t.Errorf("the model is shown as %q", got)
	}
	events := g.told("events/history?request=" + done.Get("request").Str).Get("events")
	if got := eval[int](b, "document.querySelectorAll('.events tbody tr').length"); got != len(events.Array()) {
		t.Errorf("%d events are shown, want %d", got, len(events.Array()))
	}
	if got := eval[int](b, "document.querySelectorAll('.timeline li:not(.scale):not(.wait)').length"); got != len(done.Get("attempts").Array()) {
		t.Errorf("%d attempts are shown", got)
	}

	b.do(chromedp.KeyEvent("1"))
	b.await("the counters", "document.querySelector('[data-figure=recovered]')?.textContent === '50 %'")
	now := g.told("now").Get("now")
	for name, want := range map[string]string{"ok": "50 %", "failed": "0 %", "in-flight": now.Get("in_flight").Raw,
		"bar-overloaded": now.Get("attempts.default.overloaded").Raw, "bar-wait": now.Get("strategies.wait").Raw} {
		if got := b.figure(name); got != want {
			t.Errorf("%s is shown as %q, want %q", name, got, want)
		}
	}
	b.nothingRan()
}

// nothingRan reports scripts of names, and what the content policy had to stop.
func (b *browser) nothingRan() {
	b.t.Helper()
	if eval[bool](b, "'owned' in document.body.dataset") || eval[int](b, "document.querySelectorAll('main img, main svg, main script').length") != 0 {
		b.t.Error("a name has become HTML")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.said) > 0 {
		b.t.Errorf("the console says %q", b.said)
	}
}

// A session that was stopped is let go on, and what is kept of a target is forgotten,
// with a click each. Every view fits a phone.
func TestResets(t *testing.T) {
	g, b := start(t, "breaker: {cooldown: 1m}\nrecovery: {wait_max: 1s}\n"), open(t)
	g.ask(fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"Hello."}]}`, hostile+"@429,retry-after=50"))
	history := `{"role":"user","content":"Read it."}`
	for i := range 6 {
		history += fmt.Sprintf(`,{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":%q,"arguments":"{\"command\":\"cat a\"}"}}]},`+
			`{"role":"tool","tool_call_id":"c%d","content":"cat: a: No such file or directory"}`, i, hostile, i)
		g.ask(fmt.Sprintf(`{"model":"m","messages":[%s],"tools":[{"type":"function","function":{"name":%q,"parameters":{"type":"object"}}}]}`, history, hostile))
	}
	b.do(chromedp.Navigate(g.url + "/rebound/#sessions"))
	b.await("the stopped session", "document.querySelector('.chip.failed')?.textContent === 'stopped'")
	if eval[int](b, "document.querySelectorAll('.ring i').length") != 5 {
		t.Errorf("of %v", g.told("events/history?event=tool_failure_detected"))
	}
	_ = eval[any](b, "[...document.querySelectorAll('button')].find((x) => x.textContent === 'Resume').click()")
	b.await("that it goes on", "document.querySelector('main .chip.ok')")
	if n := len(g.told("sessions").Get("sessions").Array()); n != 0 {
		t.Errorf("%d sessions are stopped still", n)
	}
	b.do(chromedp.KeyEvent("3"))
	b.await("the cool-down", "document.querySelector('.chip.warn')?.textContent === 'cool-down'")
	_ = eval[any](b, "window.confirm = () => true; [...document.querySelectorAll('button')].find((x) => x.textContent === 'Reset').click()")
	b.await("that it is forgotten", "document.body.textContent.includes('All targets are available')")
	if n := len(g.told("targets").Get("targets").Array()); n != 0 {
		t.Errorf("%d marks are kept still", n)
	}
	b.do(chromedp.EmulateViewport(390, 844))
	for _, theme := range []string{"light", "dark"} {
		for _, view := range []string{"now", "sessions", "targets", "request/" + g.done().Get("request").Str} {
			_ = eval[any](b, fmt.Sprintf("document.documentElement.dataset.theme = %q; location.hash = %q", theme, view))
			b.await(view, "document.querySelector('h1')")
			if w := eval[int](b, "document.documentElement.scrollWidth"); w > 390 {
				t.Errorf("%s is %d wide on a phone", view, w)
			}
		}
	}
	b.nothingRan()
}

// Who goes away and comes again gets the page each time: what was left holds no connection.
func TestComeAgain(t *testing.T) {
	g, b := start(t, ""), open(t)
	for range 8 { // a browser has six connections to a server
		b.do(chromedp.Navigate("about:blank"), chromedp.Navigate(g.url+"/rebound/"))
		b.await("the page", "document.getElementById('state')?.textContent === 'live'")
	}
	// The browser may have kept the page before. It is left only after the answer to this.
	_ = eval[any](b, "window.last = true; setTimeout(() => history.go(-2)); null")
	b.await("the page as it was", "!window.last && document.getElementById('state')?.textContent === 'live'")
	g.ask(`{"model":"m@503/ok","messages":[{"role":"user","content":"Hello."}]}`)
	b.await("an event", "document.querySelector('.rows .chip.recovered')")
}

// From elsewhere the page asks for the token once, and what it loads afterwards goes
// with a cookie that scripts cannot read.
func TestTokenOnce(t *testing.T) {
	g, b := start(t, "auth: {admin_local: false, admin_env: TOKEN}\n"), open(t)
	b.do(chromedp.Navigate(g.url + "/rebound/"))
	for _, token := range []string{"wrong", adminToken} {
		b.await("the form", "document.querySelector('input[name=token]')")
		b.do(chromedp.SendKeys("input[name=token]", token+"\r"))
		if token == "wrong" {
			b.await("the refusal", "document.body?.textContent.includes('That is not the admin token.')")
		}
	}
	b.await("the page", "document.getElementById('state')?.textContent === 'live'") // so EventSource works with it, too
	if got := eval[string](b, "document.cookie"); got != "" {
		t.Errorf("scripts read %q", got)
	}
	g.ask(`{"model":"m@503/ok","messages":[{"role":"user","content":"Hello."}]}`)
	b.await("an event", "document.querySelector('.rows .chip.recovered')")
}
