package doctor_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/cmd/rebound/doctor"
	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/proxy/upstreamtest"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/store/storetest"
)

const secret = "sk-test-Hk29dLmQ7wPz"

// env is the environment of the tests' configurations.
func env(name string) (string, bool) {
	switch name {
	case "KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY":
		return secret, true
	case "WRONG":
		return "wrong-" + secret, true
	}
	return "", false
}

// parse reads a configuration with a free address.
func parse(t *testing.T, text string) *configs.Config {
	t.Helper()
	addr, err := upstreamtest.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	c, err := configs.Parse("test.yaml", []byte("listen: "+addr+"\n"+text), env)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// examine runs the doctor and checks what every report must satisfy.
func examine(t *testing.T, o doctor.Options) *doctor.Report {
	t.Helper()
	if o.Env == nil {
		o.Env = env
	}
	r := doctor.Run(context.Background(), o)
	var text, asJSON bytes.Buffer
	if err := r.Print(&text); err != nil {
		t.Fatal(err)
	}
	if err := r.JSON(&asJSON); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text.String()+asJSON.String(), secret) {
		t.Errorf("the report shows a key:\n%s", &text)
	}
	for _, target := range r.Targets {
		if target.Requests > 10 && !o.Window {
			t.Errorf("%s got %d requests", target.Target, target.Requests)
		}
	}
	if r.Config != "" {
		if _, err := configs.Parse("fits.yaml", []byte(r.Config), env); err != nil {
			t.Errorf("the suggested configuration does not load: %v\n%s", err, r.Config)
		}
	}
	if t.Failed() {
		t.Log(text.String())
	}
	return r
}

// finds checks that a finding contains a text.
func finds(t *testing.T, list []doctor.Finding, status doctor.Status, check, said string) {
	t.Helper()
	if !slices.ContainsFunc(list, func(f doctor.Finding) bool {
		return f.Status == status && f.Check == check && strings.Contains(f.Message, said)
	}) {
		t.Errorf("no finding %s, %s: %q in\n%s", status, check, said, lines(list))
	}
}

func lines(list []doctor.Finding) string {
	var b strings.Builder
	for _, f := range list {
		fmt.Fprintf(&b, "%s, %s: %s\n", f.Status, f.Check, f.Message)
	}
	return b.String()
}

// recovers checks whether and how a failure is recovered.
func recovers(t *testing.T, target *doctor.Target, recovered bool, failure, how string) {
	t.Helper()
	if !slices.ContainsFunc(target.Recovery, func(o doctor.Recovery) bool {
		return o.Recovered == recovered && o.Failure == failure && strings.Contains(o.How, how)
	}) {
		t.Errorf("%q, recovered %v, %q is not in %v", failure, recovered, how, target.Recovery)
	}
}

// Six very different servers: the findings for each, the recovery of a cut stream, and the
// suggested configuration.
func TestDisguises(t *testing.T) {
	type finding struct {
		status      doctor.Status
		check, said string
	}
	for _, c := range []struct {
		as, upstream string // upstream is YAML besides the URL
		path         string
		model        string // "" is the first that is listed
		want         []finding
		cut          string // how a cut stream is recovered
		prefill      recovery.Prefill
		window       int
		problems     int
	}{
		{as: "llama.cpp", path: "/v1", want: []finding{
			{doctor.OK, "models", "2 models listed, including gpt-4o"}, {doctor.OK, "credential", "accepted"},
			{doctor.OK, "prefill", "(assistant); prefill: auto detects this"}, {doctor.OK, "window", "4,096 tokens, according to its list of models"},
		}, cut: "continued by prefill", prefill: recovery.PrefillAuto, window: 4096},
		{as: "vllm", path: "/v1", want: []finding{
			{doctor.Problem, "tools", "--enable-auto-tool-choice"}, {doctor.OK, "prefill", "(continue_final_message)"},
			{doctor.OK, "window", "8,192 tokens, according to its list of models"},
		}, cut: "continued by prefill", prefill: recovery.PrefillAuto, window: 8192, problems: 1},
		{as: "azure", path: "/openai/deployments/{model}", upstream: "auth_header: api-key, query: {api-version: 2024-10-21}, keys: [{name: a, env: KEY}]", model: "o3", want: []finding{
			{doctor.Note, "models", "no list of models (404"},
			{doctor.Note, "parameters", "takes max_tokens as max_completion_tokens, refuses temperature, refuses top_p"},
			{doctor.Note, "parameters", "the gateway does not remove it: stop"},
			{doctor.OK, "tools", "1 call"}, {doctor.Note, "prefill", "it starts over"},
		}, cut: "continued by asking", prefill: recovery.PrefillAuto},
		{as: "openrouter", path: "/v1", upstream: "keys: [{name: a, env: KEY}]", want: []finding{
			{doctor.OK, "window", "131,072 tokens, according to its list"}, {doctor.OK, "tools", "2 calls in one answer, in a form that clients may misread"},
			{doctor.Note, "prefill", "set prefill: assistant"},
		}, cut: "prefill is more reliable", prefill: recovery.PrefillAssistant, window: 131072},
		{as: "deepseek", path: "/v1", upstream: "keys: [{name: a, env: KEY}]", want: []finding{
			{doctor.Note, "prefill", "set prefill: prefix"}, {doctor.OK, "output", "at most 8,192 tokens"}, {doctor.Unknown, "window", "--window"},
		}, cut: "prefill is more reliable", prefill: recovery.PrefillPrefix},
		{as: "silent", path: "/v1", want: []finding{
			{doctor.Unknown, "window", "the target does not state"}, {doctor.OK, "tools", "1 call"},
		}, cut: "prefill is more reliable", prefill: recovery.PrefillAssistant},
	} {
		t.Run(c.as, func(t *testing.T) {
			up := upstreamtest.New(upstreamtest.Options{As: c.as}).Start(t)
			cfg := parse(t, fmt.Sprintf("upstreams: {default: {url: %q%s}}", up.URL()+c.path, strings.TrimSuffix(", "+c.upstream, ", ")))
			r := examine(t, doctor.Options{Config: cfg, Model: c.model})
			if len(r.Targets) != 1 {
				t.Fatalf("%d targets", len(r.Targets))
			}
			for _, w := range c.want {
				finds(t, r.Targets[0].Findings, w.status, w.check, w.said)
			}
			recovers(t, r.Targets[0], true, "cut stream", c.cut)
			if n := r.Count(doctor.Problem); n != c.problems {
				t.Errorf("%d problems, want %d\n%s", n, c.problems, lines(r.Targets[0].Findings))
			}
			if r.Config == "" {
				if c.window > 0 || c.prefill != recovery.PrefillAuto {
					t.Errorf("no configuration is printed")
				}
				return
			}
			fits, err := configs.Parse("fits.yaml", []byte(r.Config), env)
			if err != nil {
				t.Fatal(err)
			}
			if got := fits.Upstreams["default"].Prefill; got != c.prefill {
				t.Errorf("prefill: %s, want %s", got, c.prefill)
			}
			if c.window > 0 && fits.Models["gpt-4o"].Targets[0].Window != c.window {
				t.Errorf("no window of %d in\n%s", c.window, r.Config)
			}
		})
	}
}

// With the suggested configuration, a second run suggests nothing.
func TestSuggestedConfigIsEnough(t *testing.T) {
	up := upstreamtest.New(upstreamtest.Options{As: "openrouter"}).Start(t)
	o := doctor.Options{Config: parse(t, fmt.Sprintf("upstreams: {default: {url: %q, passthrough: true}}", up.URL()+"/v1"))}
	first := examine(t, o)
	if first.Config == "" {
		t.Fatal("the first run prints no configuration")
	}
	o.Config = parse(t, first.Config)
	second := examine(t, o)
	if second.Config != "" {
		t.Errorf("the second run prints\n%s", second.Config)
	}
	recovers(t, second.Targets[0], true, "cut stream", "continued by prefill")
	recovers(t, second.Targets[0], true, "history too long", "131,072 tokens before it is sent")
}

// With several targets, the doctor corrects a window that is too large, keeps the routes of the file, and
// binds no model to one upstream if two have it.
func TestSeveralTargets(t *testing.T) {
	near := upstreamtest.New(upstreamtest.Options{As: "llama.cpp"}).Start(t)
	far := upstreamtest.New(upstreamtest.Options{As: "openrouter"}).Start(t)
	cfg := parse(t, fmt.Sprintf(`upstreams:
  near: {url: %q}
  far: {url: %q, keys: [{name: one, env: KEY}]}
  claude: {format: anthropic, url: %q}
default_upstream: near
models:
  coder: {targets: [{upstream: near, model: gpt-4o}, {upstream: far, model: gpt-4o-mini, window: 200000, prefill: none}]}
`, near.URL()+"/v1", far.URL()+"/v1", near.URL()))
	r := examine(t, doctor.Options{Config: cfg})
	var names []string
	for _, target := range r.Targets {
		names = append(names, target.Target)
	}
	if want := []string{"near/gpt-4o", "far/gpt-4o-mini#one", "claude/gpt-4o"}; !slices.Equal(names, want) {
		t.Errorf("targets: %v, want %v", names, want)
	}
	finds(t, r.Targets[1].Findings, doctor.Note, "window", "200,000 tokens are configured")
	fits, err := configs.Parse("fits.yaml", []byte(r.Config), env)
	if err != nil {
		t.Fatal(err)
	}
	if got := fits.Models["coder"].Targets; len(got) != 2 || got[0].Window != 4096 || got[1].Window != 131072 || got[1].Prefill != "assistant" || got[1].Model != "gpt-4o-mini" {
		t.Errorf("%+v", got)
	}
	if len(fits.Models) != 1 || fits.DefaultUpstream != "near" {
		t.Errorf("models and default upstream in\n%s", r.Config)
	}
}

// Only --window detects a silently truncated prompt, and it asks first.
func TestSilentTruncation(t *testing.T) {
	up := upstreamtest.New(upstreamtest.Options{As: "silent"}).Start(t)
	cfg := parse(t, fmt.Sprintf("upstreams: {default: {url: %q}}\nprices: {'*': {input: 10, output: 10}}", up.URL()+"/v1"))
	var asked []string
	o := doctor.Options{Config: cfg, Model: "gpt-4o", Window: true, Ask: func(q string) bool { asked = append(asked, q); return false }}
	r := examine(t, o)
	finds(t, r.Targets[0].Findings, doctor.Unknown, "window", "not accepted")
	before := len(up.Requests("gpt-4o"))
	if len(asked) != 1 || !strings.Contains(asked[0], "up to 3 requests") || !strings.Contains(asked[0], "0.62") {
		t.Errorf("asked: %q", asked)
	}
	o.Ask = func(string) bool { return true }
	r = examine(t, o)
	finds(t, r.Targets[0].Findings, doctor.Problem, "window", "silently read only 4,096")
	recovers(t, r.Targets[0], false, "history too long", "set window to 4096")
	if got := len(up.Requests("gpt-4o")) - before; got != before+1 {
		t.Errorf("%d requests with --window, %d without: the first long one is the last", got, before)
	}
	fits, err := configs.Parse("fits.yaml", []byte(r.Config), env)
	if err != nil || fits.Models["gpt-4o"].Targets[0].Window != 4096 {
		t.Errorf("%v\n%s", err, r.Config)
	}
	// A stated window that is read completely is fine; a wrong one is a problem.
	for as, said := range map[string]string{"vllm": "reads all of about", "llama.cpp": "reads all of about"} {
		up := upstreamtest.New(upstreamtest.Options{As: as}).Start(t)
		o.Config = parse(t, fmt.Sprintf("upstreams: {default: {url: %q}}", up.URL()+"/v1"))
		finds(t, examine(t, o).Targets[0].Findings, doctor.OK, "window", said)
	}
	o.Config = parse(t, fmt.Sprintf("upstreams: {default: {url: %q}}\nmodels: {gpt-4o: {targets: [{upstream: default, window: 20000}]}}", up.URL()+"/v1"))
	finds(t, examine(t, o).Targets[0].Findings, doctor.Problem, "window", "silently read only")
}

// A credential is refused; the report shows the server's message with the quoted key redacted.
func TestWrongCredential(t *testing.T) {
	up := upstreamtest.New(upstreamtest.Options{As: "deepseek"}).Start(t)
	r := examine(t, doctor.Options{Config: parse(t, fmt.Sprintf("upstreams: {default: {url: %q, keys: [{name: bad, env: WRONG}, {name: good, env: KEY}]}}", up.URL()+"/v1"))})
	if len(r.Targets) != 2 {
		t.Fatalf("%d targets, want one for each key", len(r.Targets))
	}
	finds(t, r.Targets[0].Findings, doctor.Problem, "credential", "401 auth")
	finds(t, r.Targets[1].Findings, doctor.OK, "credential", "accepted")
	recovers(t, r.Targets[1], true, "cut stream", "prefill")
	quoting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"error":{"message":"Incorrect API key provided: %s\u001b[31m","code":"invalid_api_key"}}`, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	}))
	defer quoting.Close()
	r = examine(t, doctor.Options{Model: "m", Config: parse(t, fmt.Sprintf("upstreams: {default: {url: %q, keys: [{name: a, env: KEY}]}}", quoting.URL+"/v1"))})
	finds(t, r.Targets[0].Findings, doctor.Problem, "credential", "provided: [redacted]")
	if strings.Contains(lines(r.Targets[0].Findings), "\x1b") {
		t.Error("the report contains control characters of a server's message")
	}
}

// Without the client credential that an upstream needs, only the address is tested.
func TestNoCredential(t *testing.T) {
	up := upstreamtest.New(upstreamtest.Options{}).Start(t)
	cfg := parse(t, fmt.Sprintf("upstreams: {default: {url: %q, profile: hosted}}", up.URL()+"/v1"))
	r := examine(t, doctor.Options{Config: cfg, Env: func(string) (string, bool) { return "", false }})
	finds(t, r.Targets[0].Findings, doctor.Unknown, "credential", "OPENAI_API_KEY")
	if r.Targets[0].Requests != 1 || r.Count(doctor.Problem) != 0 {
		t.Errorf("%d requests, %d problems", r.Targets[0].Requests, r.Count(doctor.Problem))
	}
}

// A target of the Messages API gets requests in that format.
func TestMessages(t *testing.T) {
	up := upstreamtest.New(upstreamtest.Options{}).Start(t)
	cfg := parse(t, fmt.Sprintf("upstreams: {a: {format: anthropic, url: %q}}", up.URL()))
	r := examine(t, doctor.Options{Config: cfg, Model: "claude-x"})
	for _, check := range []string{"credential", "answer", "stream"} {
		finds(t, r.Targets[0].Findings, doctor.OK, check, "")
	}
	finds(t, r.Targets[0].Findings, doctor.Note, "prefill", "set prefill: assistant")
	r = examine(t, doctor.Options{Config: cfg, Model: "claude-x@ok,text-tool"})
	finds(t, r.Targets[0].Findings, doctor.OK, "tools", "1 call")
	r = examine(t, doctor.Options{Config: cfg, Model: "claude-x@prefill=refuse"})
	finds(t, r.Targets[0].Findings, doctor.Note, "prefill", "does not support assistant message prefill")
	recovers(t, r.Targets[0], true, "cut stream", "continued by asking")
}

// A target that breaks or never ends is a finding, in bounded time and memory.
func TestHostileTarget(t *testing.T) {
	up := upstreamtest.New(upstreamtest.Options{}).Start(t)
	for script, check := range map[string]string{
		"reset": "answer", "status-junk": "answer", "hang": "answer", "bomb": "answer", "endless-line": "answer", "half-json": "answer", "body=[]": "answer",
		"ok/cut=0.5": "stream", "ok/error-event=0.5": "stream", "ok/endless-line": "stream", "ok/html": "stream", "ok/ok/500": "tools", "ok/fin=0.5": "stream",
	} {
		t.Run(script, func(t *testing.T) {
			cfg := parse(t, fmt.Sprintf("upstreams: {default: {url: %q}}", up.URL()+"/v1"))
			r := examine(t, doctor.Options{Config: cfg, Model: "h@" + script, Timeout: 5 * time.Second})
			list := r.Targets[0].Findings
			if !slices.ContainsFunc(list, func(f doctor.Finding) bool {
				return f.Check == check && (f.Status == doctor.Problem || f.Status == doctor.Unknown)
			}) {
				t.Errorf("nothing is wrong with %s:\n%s", check, lines(list))
			}
		})
	}
}

// A target gets at most ten requests, however much it refuses.
func TestTenRequests(t *testing.T) {
	up := upstreamtest.New(upstreamtest.Options{}).Start(t)
	cfg := parse(t, fmt.Sprintf("upstreams: {default: {url: %q}}", up.URL()+"/v1"))
	const model = "m@no-param=max_tokens,no-param=temperature,no-param=top_p,no-param=seed,no-param=user,no-param=stop,no-param=stream_options,no-param=parallel_tool_calls,prefill=ignore"
	r := examine(t, doctor.Options{Config: cfg, Model: model})
	if got := len(up.Requests("")); got != 10 {
		t.Errorf("%d requests", got)
	}
	finds(t, r.Targets[0].Findings, doctor.Unknown, "tools", "all 10 requests are used")
}

// Requests that return to the gateway's own address through a proxy are a loop.
func TestLoopThroughAProxy(t *testing.T) {
	var own atomic.Pointer[url.URL]
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(own.Load()) }})
	defer proxy.Close()
	cfg := parse(t, fmt.Sprintf("upstreams: {default: {url: %q}}", proxy.URL+"/v1"))
	own.Store(&url.URL{Scheme: "http", Host: cfg.Listen()})
	r := examine(t, doctor.Options{Config: cfg, Model: "m"})
	finds(t, r.Targets[0].Findings, doctor.Problem, "loop", cfg.Listen())
	if r.Targets[0].Requests != 1 {
		t.Errorf("%d requests", r.Targets[0].Requests)
	}
}

// A running gateway detects the loop itself; the doctor reads its error.
func TestLoopOfARunningGateway(t *testing.T) {
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusLoopDetected)
		_, _ = w.Write([]byte(`{"error":{"message":"This request returned to the gateway that sent it","type":"invalid_request_error","code":"gateway_loop"}}`))
	}))
	defer gateway.Close()
	r := examine(t, doctor.Options{Config: parse(t, fmt.Sprintf("upstreams: {default: {url: %q}}", gateway.URL+"/v1")), Model: "m"})
	finds(t, r.Targets[0].Findings, doctor.Problem, "loop", "return to")
}

// A clock that is off by more than a minute is a problem, because waits until a given time are wrong.
func TestClock(t *testing.T) {
	for _, c := range []struct {
		off    time.Duration
		status doctor.Status
	}{{0, doctor.OK}, {5 * time.Minute, doctor.Problem}, {-5 * time.Minute, doctor.Problem}} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", time.Now().Add(c.off).UTC().Format(http.TimeFormat))
			w.WriteHeader(http.StatusNotFound)
		}))
		r := examine(t, doctor.Options{Config: parse(t, fmt.Sprintf("upstreams: {default: {url: %q}}", server.URL+"/v1")), Model: "m"})
		finds(t, r.Targets[0].Findings, c.status, "clock", "")
		server.Close()
	}
}

// The doctor tests a write to Redis, and reports an unreachable server.
func TestRedis(t *testing.T) {
	srv := storetest.StartRedis(t)
	up := upstreamtest.New(upstreamtest.Options{}).Start(t)
	text := fmt.Sprintf("upstreams: {default: {url: %q}}\nstore: {redis: {url: %q, timeout: 5s}}", up.URL()+"/v1", srv.URL())
	finds(t, examine(t, doctor.Options{Config: parse(t, text), Model: "m"}).Gateway, doctor.OK, "redis", "accepts a write")
	srv.Do("CONFIG", "SET", "maxmemory", "100mb")
	finds(t, examine(t, doctor.Options{Config: parse(t, text), Model: "m"}).Gateway, doctor.Note, "redis", "noeviction")
	addr, err := upstreamtest.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	text = fmt.Sprintf("upstreams: {default: {url: %q}}\nstore: {redis: {url: 'redis://%s/0', password_env: KEY}}", up.URL()+"/v1", addr)
	r := examine(t, doctor.Options{Config: parse(t, text), Model: "m"})
	finds(t, r.Gateway, doctor.Problem, "redis", "does not accept a write")
	if r.Count(doctor.Problem) != 1 {
		t.Errorf("%d problems", r.Count(doctor.Problem))
	}
}

// The report names settings that turn recovery off.
func TestSettings(t *testing.T) {
	up := upstreamtest.New(upstreamtest.Options{}).Start(t)
	for _, c := range []struct {
		text, failure, how string
		recovered          bool
	}{
		{"recovery: {mode: observe}", "every failure", "the mode is observe", false},
		{"stream: {mid_stream: error}", "cut stream", "stream.mid_stream is error", false},
		{"stream: {mid_stream: buffer}", "cut stream", "held until they are complete", true},
		{"stream: {continue: [replay]}", "cut stream", "temperature 0 or a seed", true},
		{"fit: {enabled: false}", "history too long", "fit.enabled is false", false},
		{"models: {m: {mode: off, targets: [{upstream: default}]}}", "every failure", "the mode is off", false},
		{"models: {m: {targets: [{upstream: default}, {upstream: default, model: n}]}}", "outage", "1 other target", true},
		{"recovery: {attempts: 1}", "cut before text", "recovery.attempts is 1", false},
		{"breaker: {failures: 0}", "failing tools, loops", "the model gets notes", true},
	} {
		cfg := parse(t, fmt.Sprintf("upstreams: {default: {url: %q}}\n%s", up.URL()+"/v1", c.text))
		recovers(t, examine(t, doctor.Options{Config: cfg, Model: "m"}).Targets[0], c.recovered, c.failure, c.how)
	}
}

// The example at the beginning of docs/doctor.md is what the doctor prints, apart from times and addresses.
func TestDocumentShowsWhatIsPrinted(t *testing.T) {
	page, err := os.ReadFile("../../../docs/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(page), "9000/v1\n")
	shown, _, _ = strings.Cut(shown, "\n\n`rebound doctor")
	up := upstreamtest.New(upstreamtest.Options{As: "vllm"}).Start(t)
	r := doctor.Run(context.Background(), doctor.Options{Config: parse(t, fmt.Sprintf("upstreams: {default: {url: %q}}", up.URL()+"/v1"))})
	r.File = ""
	var printed bytes.Buffer
	if err := r.Print(&printed); err != nil {
		t.Fatal(err)
	}
	varies := regexp.MustCompile(`127\.0\.0\.1:\d+|\d+(\.\d+)?(ms|µs|s)\b`)
	plain := func(s string) string {
		var b strings.Builder
		for line := range strings.Lines(varies.ReplaceAllString(s, "…")) {
			b.WriteString(strings.Join(strings.Fields(line), " ") + "\n")
		}
		return strings.TrimSpace(b.String())
	}
	if got, want := plain(printed.String()), plain(shown); got != want {
		t.Errorf("the doctor prints\n%s\nand docs/doctor.md shows\n%s", got, want)
	}
}
