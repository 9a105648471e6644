package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/cmd/rebound/app"
	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/proxy/upstreamtest"
	"github.com/rebound-llm/rebound/recovery"
)

// The credentials of the demo. They open nothing.
const (
	keyAgent = "sk-demo-agent"
	keyOne   = "sk-demo-one"
	keyTwo   = "sk-demo-two"
	keyTape  = "what the demo's own requests are recorded with"
)

// configuration is the gateway's. Its time limits are a tenth of the defaults, so
// that the demo is short; first_token's add up to that with the second that every
// request has for its input tokens. UPSTREAM and LISTEN are replaced.
const configuration = `
listen: LISTEN
drain: 1s
upstreams:
  primary: {url: "UPSTREAM/v1", passthrough: true, profile: hosted}
  backup: {url: "UPSTREAM/v1", passthrough: true, profile: hosted}
  prefills: {url: "UPSTREAM/v1", passthrough: true, profile: hosted, prefill: assistant}
  refuses: {url: "` + nobody + `/v1", passthrough: true, profile: hosted}
  two-keys: {url: "UPSTREAM/v1", profile: hosted, keys: [{name: one, env: KEY_ONE}, {name: two, env: KEY_TWO, weight: 0.000001}]}
  messages: {url: "UPSTREAM", format: anthropic, passthrough: true, profile: hosted}
default_upstream: primary
recovery: {patience: 4s, backoff_min: 50ms, backoff_max: 800ms, rate_limit_wait: 100ms, wait_same: 500ms, wait_max: 6s, deadline: 1m, parallel: {burst: 1000}}
breaker: {window: 1s, open: 500ms, open_max: 1500ms, cooldown: 100ms}
learn: {first_token: {min: 100ms, whole: 100ms, per_tokens: 50000, same_after: 2100ms, reasoning: 18s}}
recording: {key_env: KEY_TAPE}
strategies: {holdout: 0}
stream: {idle: 2s, idle_pinged: 12s, keepalive_after: 3s, keepalive_every: 1500ms}
log: {requests: true}
models:
`

// budget is what a session may use: one row reaches it. It is taken back before the show, whose rows come
// again and again.
const budget = "limits: {session: {requests: 25}}\n"

// answerSize is the size of the upstream's texts, in bytes.
const answerSize = 600

// patience is the agent's. SDKs wait ten minutes; nobody would watch a demo for so long.
const patience = 8 * time.Second

// ownAnswer is what the ids of Rebound's own answers begin with.
const ownAnswer = "chatcmpl-rebound-"

// nobody is an address at which nothing listens.
const nobody = "http://127.0.0.1:1"

// Options tune the demo. The zero value is ready to use.
type Options struct {
	Verbose bool   // print the gateway's events, too
	Colour  bool   // the output is a terminal that wants colours
	Version string // of the gateway
	// Listen is where the gateway listens; then it goes on with faults, for who looks
	// at its page, until the context ends. Empty: anywhere, and it ends after the table.
	Listen string
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
	s, err := begin(o.Version, o.Listen)
	if err != nil {
		return false, err
	}
	if o.Listen != "" {
		p.printf("The page: %s/rebound/\n\n", s.gateway())
	}
	p.intro()
	started := time.Now()
	rows, err := s.play(ctx, o.Listen == "")
	if err != nil {
		return false, err
	}
	p.table(rows)
	p.legend()
	kept := p.summary(rows, time.Since(started))
	if o.Verbose {
		p.events(rows, started)
	}
	if o.Listen != "" {
		cfg, err := config(s.up.URL(), o.Listen, "")
		if err == nil {
			err = s.gw.Reload(cfg)
		}
		if err != nil {
			return false, errors.Join(err, s.end())
		}
		p.printf("\nFaults go on until you press Ctrl-C: %s/rebound/\n", s.gateway())
		s.show(ctx)
		return kept, errors.Join(p.err, s.end())
	}
	return kept, p.err
}

// scene is a running upstream and the gateway before it.
type scene struct {
	up      *upstreamtest.Running
	gw      *app.App
	log     *eventLog
	stop    context.CancelFunc
	stopped chan error
}

func (s *scene) gateway() string { return "http://" + s.gw.Addr().String() }

// begin starts upstream and gateway.
func begin(version, listen string) (*scene, error) {
	up, err := upstreamtest.New(upstreamtest.Options{Gap: 10 * time.Millisecond, Bytes: answerSize}).Listen("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	for _, f := range faults() {
		err = errors.Join(err, f.script(up))
	}
	cfg, bad := config(up.URL(), listen, budget)
	if err = errors.Join(err, bad); err != nil {
		up.Close()
		return nil, fmt.Errorf("the demo's configuration: %w", err)
	}
	s := &scene{up: up, log: &eventLog{}, stopped: make(chan error, 1)}
	if s.gw, err = app.New(cfg, s.log, version); err != nil {
		up.Close()
		return nil, fmt.Errorf("starting the gateway: %w", err)
	}
	running, stop := context.WithCancel(context.Background())
	s.stop = stop
	go func() { s.stopped <- s.gw.Run(running) }()
	return s, nil
}

// end stops both; then every event is written.
func (s *scene) end() error {
	defer s.up.Close()
	s.stop()
	if err := <-s.stopped; err != nil {
		return fmt.Errorf("stopping the gateway: %w", err)
	}
	return nil
}

// eventsSettle is how long events of answered requests may take into the log.
const eventsSettle = 500 * time.Millisecond

// play asks every question twice, all at the same time. Afterwards it ends the scene,
// where it is told to or something failed.
func (s *scene) play(ctx context.Context, last bool) ([]row, error) {
	rows := askAll(ctx, s.up.URL(), s.gateway())
	if !last && recovery.Wait(ctx, eventsSettle) {
		return s.judge(rows), nil
	}
	if err := s.end(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.judge(rows), nil
}

// judge completes the rows with what the gateway and the upstream tell.
func (s *scene) judge(rows []row) []row {
	for i := range rows {
		r := &rows[i]
		r.events = s.log.of(r.fault)
		for _, sent := range s.up.Requests(r.fault.answers()) {
			r.missent = r.fault.unlike(sent.Body)
			r.prefilled = r.prefilled || gjson.Get(sent.Body, "messages.@reverse.0.role").Str == "assistant"
		}
	}
	return rows
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
			a := demoAgent(client, upstream)
			switch f.targets[0].on {
			case onRefuses:
				a.url = nobody + "/v1"
			case onTwoKeys:
				a.key = keyOne
			}
			r.straight = a.ask(ctx, f, f.straightModel(), f.text(f.straightModel()))
		})
		all.Go(func() {
			a := demoAgent(client, gateway)
			for i := range f.earlier {
				a.ask(ctx, f, f.before(i), f.text(f.before(i)))
			}
			r.through = a.ask(ctx, f, f.slug, f.text(f.answers()))
		})
	}
	all.Wait()
	return rows
}

// demoAgent is the demo's agent, pointed at an address.
func demoAgent(client *http.Client, address string) agent {
	return agent{client: client, url: address + "/v1", key: keyAgent, patience: patience, own: ownAnswer}
}

// config is the gateway's configuration for an upstream, to listen at an address or
// anywhere, with limits.
func config(upstream, listen, limits string) (*configs.Config, error) {
	if listen == "" {
		listen = "127.0.0.1:0"
	}
	var b strings.Builder
	b.WriteString(limits)
	b.WriteString(strings.NewReplacer("UPSTREAM", upstream, "LISTEN", strconv.Quote(listen)).Replace(configuration))
	for _, f := range faults() {
		fmt.Fprintf(&b, "  %q:\n    targets:\n", f.slug)
		for k, t := range f.targets {
			fmt.Fprintf(&b, "      - {upstream: %s, model: %q, window: %d}\n", t.on, f.targetModel(k), t.window)
		}
	}
	secrets := map[string]string{"KEY_ONE": keyOne, "KEY_TWO": keyTwo, "KEY_TAPE": keyTape}
	return configs.Parse("demo.yaml", []byte(b.String()), func(name string) (string, bool) {
		if strings.HasPrefix(name, "OTEL_") { // who has a collector sees its traces
			return os.LookupEnv(name)
		}
		v, ok := secrets[name]
		return v, ok
	})
}
