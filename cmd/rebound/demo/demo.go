package demo

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/cmd/rebound/app"
	"github.com/rebound-llm/rebound/configs"
)

// The credentials of the demo. They open nothing.
const (
	keyAgent = "sk-demo-agent"
	keyOne   = "sk-demo-one"
	keyTwo   = "sk-demo-two"
)

// configuration is the gateway's. Its time limits are a tenth of the defaults, so
// that the demo is short; first_token's add up to that with the second that every
// request has for its input tokens. UPSTREAM is replaced.
const configuration = `
listen: 127.0.0.1:0
drain: 1s
upstreams:
  primary: {url: "UPSTREAM/v1", passthrough: true, profile: hosted}
  backup: {url: "UPSTREAM/v1", passthrough: true, profile: hosted}
  prefills: {url: "UPSTREAM/v1", passthrough: true, profile: hosted, prefill: assistant}
  refuses: {url: "` + nobody + `/v1", passthrough: true, profile: hosted}
  two-keys: {url: "UPSTREAM/v1", profile: hosted, keys: [{name: one, env: KEY_ONE}, {name: two, env: KEY_TWO, weight: 0.000001}]}
default_upstream: primary
recovery: {backoff_min: 50ms, backoff_max: 800ms, rate_limit_wait: 100ms, wait_same: 500ms, wait_max: 6s, deadline: 1m, parallel: {burst: 1000}}
breaker: {window: 1s, open: 500ms, open_max: 1500ms, cooldown: 100ms}
learn: {first_token: {min: 100ms, per_tokens: 50000, same_after: 2100ms, reasoning: 18s}}
stream: {idle: 2s, idle_pinged: 12s, keepalive_after: 3s, keepalive_every: 1500ms}
log: {requests: true}
models:
`

// nobody is an address at which nothing listens.
const nobody = "http://127.0.0.1:1"

// Options tune the demo. The zero value is ready to use.
type Options struct {
	Verbose bool   // print the gateway's events, too
	Colour  bool   // the output is a terminal that wants colours
	Version string // of the gateway
}

// row is what happened with one fault.
type row struct {
	fault     *fault
	straight  outcome
	through   outcome
	prefilled bool    // the upstream was asked to continue a given beginning
	missent   string  // what the last request upstream should have had, or not; "" if all is right
	events    []event // of the gateway
}

// kept reports whether the promise was kept: the whole answer for one request of
// the agent; or, where nothing can save it, an error, or words for the user.
func (r *row) kept() bool {
	want := complete
	switch {
	case r.fault.honest:
		return r.through.verdict == failed
	case r.fault.told:
		want = told
	}
	return r.through.verdict == want && r.through.requests == 1 && r.missent == ""
}

// Run runs every fault and prints what happened. It returns whether every promise
// was kept; an error if the demo could not run, or could not be printed.
func Run(ctx context.Context, out io.Writer, o Options) (bool, error) {
	p := &printer{out: out, colour: o.Colour}
	p.intro()
	started := time.Now()
	rows, err := run(ctx, o.Version)
	if err != nil {
		return false, err
	}
	p.table(rows)
	p.legend()
	kept := p.summary(rows, time.Since(started))
	if o.Verbose {
		p.events(rows, started)
	}
	return kept, p.err
}

// run starts upstream and gateway, asks every question twice, all at the same
// time, and stops both.
func run(ctx context.Context, version string) ([]row, error) {
	up, err := listen(faults())
	if err != nil {
		return nil, err
	}
	defer up.close()
	cfg, err := config(up.url())
	if err != nil {
		return nil, fmt.Errorf("the demo's configuration: %w", err)
	}
	log := &eventLog{}
	gw, err := app.New(cfg, log, version)
	if err != nil {
		return nil, fmt.Errorf("starting the gateway: %w", err)
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	stopped := make(chan error, 1)
	go func() { stopped <- gw.Run(running) }()

	rows := askAll(ctx, up.url(), "http://"+gw.Addr().String())
	stop()
	if err := <-stopped; err != nil { // and every event is written
		return nil, fmt.Errorf("stopping the gateway: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for i := range rows {
		r := &rows[i]
		r.events = log.of(r.fault)
		sent := up.requests(r.fault.answers())
		if len(sent) > 0 {
			r.missent = r.fault.unlike(sent[len(sent)-1])
		}
		for _, body := range sent {
			r.prefilled = r.prefilled || gjson.Get(body, "messages.@reverse.0.role").Str == "assistant"
		}
	}
	return rows, nil
}

// unlike is the first text that a request should have had, or should not, and
// does not; "" if there is none.
func (f *fault) unlike(body string) string {
	for _, text := range f.sent {
		if without, ok := strings.CutPrefix(text, "!"); strings.Contains(body, without) == ok {
			return text
		}
	}
	return ""
}

// askAll asks every question straight and through the gateway.
func askAll(ctx context.Context, upstream, gateway string) []row {
	list := faults()
	transport := &http.Transport{MaxIdleConnsPerHost: 2 * len(list)}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	rows := make([]row, len(list))
	var all sync.WaitGroup
	for i := range list {
		f, r := &list[i], &rows[i]
		r.fault = f
		all.Go(func() {
			a := agent{client: client, url: upstream + "/v1", key: keyAgent}
			switch f.targets[0].on {
			case onRefuses:
				a.url = nobody + "/v1"
			case onTwoKeys:
				a.key = keyOne
			}
			r.straight = a.ask(ctx, f, f.straightModel(), f.text("straight-"+f.slug))
		})
		all.Go(func() {
			a := agent{client: client, url: gateway + "/v1", key: keyAgent}
			for i := range f.earlier {
				a.ask(ctx, f, f.before(i), f.text(f.before(i)))
			}
			r.through = a.ask(ctx, f, f.slug, f.text(f.answers()))
		})
	}
	all.Wait()
	return rows
}

// config is the gateway's configuration for an upstream.
func config(upstream string) (*configs.Config, error) {
	var b strings.Builder
	b.WriteString(strings.ReplaceAll(configuration, "UPSTREAM", upstream))
	for _, f := range faults() {
		fmt.Fprintf(&b, "  %q:\n    targets:\n", f.slug)
		for k, t := range f.targets {
			fmt.Fprintf(&b, "      - {upstream: %s, model: %q, window: %d}\n", t.on, f.targetModel(k), t.window)
		}
	}
	secrets := map[string]string{"KEY_ONE": keyOne, "KEY_TWO": keyTwo}
	return configs.Parse("demo.yaml", []byte(b.String()), func(name string) (string, bool) {
		v, ok := secrets[name]
		return v, ok
	})
}
