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

// The credentials of the demo. None is a real secret.
const (
	keyAgent     = "sk-demo-agent"
	keyOne       = "sk-demo-one"
	keyTwo       = "sk-demo-two"
	keyRecording = "what the demo's own requests are recorded with"
)

// configuration is the gateway's configuration, in which config replaces UPSTREAM and LISTEN. Its time
// limits are a tenth of the defaults, so that the demo is short. Those of first_token are a
// tenth together with the second that every request gets for its input tokens.
const configuration = `
listen: LISTEN
drain: 1s
upstreams:
  primary: {url: "UPSTREAM/v1", passthrough: true, profile: hosted}
  backup: {url: "UPSTREAM/v1", passthrough: true, profile: hosted}
  prefills: {url: "UPSTREAM/v1", passthrough: true, profile: hosted, prefill: assistant}
  refuses: {url: "` + refusedURL + `/v1", passthrough: true, profile: hosted}
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

// firstTokenLimit is first_token.min of the configuration.
const firstTokenLimit = 100 * time.Millisecond

// budget is the limit of a session, which one row reaches. It is removed before keepRunning, which
// repeats the rows.
const budget = "limits: {session: {requests: 25}}\n"

// answerSize is the size of the upstream's texts, in bytes.
const answerSize = 600

// agentTimeout is how long the agent waits for an answer. SDKs wait ten minutes, too long for a demo.
const agentTimeout = 8 * time.Second

// ownAnswerID begins the ids of answers that Rebound writes itself.
const ownAnswerID = "chatcmpl-rebound-"

// refusedURL is an address that refuses connections.
const refusedURL = "http://127.0.0.1:1"

// Options tune the demo. The zero value is ready to use.
type Options struct {
	Verbose bool   // also print the gateway's events
	Colour  bool   // print with colours
	Version string // of the gateway
	// Listen is the gateway's address. With one, the faults continue after the table until the
	// context ends, for the status page. If empty, the port is random and Run ends after the table.
	Listen string
}

// row is the result of one fault.
type row struct {
	fault        *fault
	straight     outcome
	through      outcome
	prefilled    bool    // the upstream got a prefill request
	wrongRequest string  // the first mismatch of the last request upstream, or ""
	events       []event // of the gateway
}

// asExpected reports whether the row has the expected result: the complete answer for one request
// of the agent or, for a fault without recovery, an error or an explanation.
func (r *row) asExpected() bool {
	want := complete
	switch {
	case r.fault.unrecoverable:
		return r.through.verdict == failed
	case r.fault.explained:
		want = explained
	}
	return r.through.verdict == want && r.through.requests == 1 && r.wrongRequest == ""
}

// starved reports whether this machine was too busy to answer an attempt within firstTokenLimit. Rebound then rightly starts
// another one, although the fault is no silence.
func (r *row) starved() bool {
	for _, e := range r.events {
		took := time.Duration(0)
		for _, a := range e.Get("attempts").Array() {
			if a.Get("strategy").Str == recovery.StrategyParallel {
				return took >= firstTokenLimit && !r.fault.silent
			}
			took = time.Duration(a.Get("duration_ms").Int()) * time.Millisecond
		}
	}
	return false
}

// Run runs every fault and prints the results. It reports whether all are as expected, and
// returns an error if the demo cannot run or print.
func Run(ctx context.Context, out io.Writer, o Options) (bool, error) {
	p := &printer{out: out, colour: o.Colour}
	s, err := start(o.Version, o.Listen)
	if err != nil {
		return false, err
	}
	if o.Listen != "" {
		p.printf("Status page: %s/rebound/\n\n", s.gateway())
	}
	p.intro()
	started := time.Now()
	rows, err := s.run(ctx, o.Listen == "")
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
			return false, errors.Join(err, s.shutDown())
		}
		p.printf("\nFaults continue until you press Ctrl-C. Status page: %s/rebound/\n", s.gateway())
		s.keepRunning(ctx)
		return kept, errors.Join(p.err, s.shutDown())
	}
	return kept, p.err
}

// testbed is a running upstream with a gateway in front.
type testbed struct {
	up      *upstreamtest.Running
	gw      *app.App
	log     *eventLog
	stop    context.CancelFunc
	stopped chan error
}

func (s *testbed) gateway() string { return "http://" + s.gw.Addr().String() }

// start starts the upstream and the gateway.
func start(version, listen string) (*testbed, error) {
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
		return nil, fmt.Errorf("building the demo's configuration: %w", err)
	}
	s := &testbed{up: up, log: &eventLog{}, stopped: make(chan error, 1)}
	if s.gw, err = app.New(cfg, s.log, version); err != nil {
		up.Close()
		return nil, fmt.Errorf("starting the gateway: %w", err)
	}
	running, stop := context.WithCancel(context.Background())
	s.stop = stop
	go func() { s.stopped <- s.gw.Run(running) }()
	return s, nil
}

// shutDown stops both. Afterwards the log has every event.
func (s *testbed) shutDown() error {
	defer s.up.Close()
	s.stop()
	if err := <-s.stopped; err != nil {
		return fmt.Errorf("stopping the gateway: %w", err)
	}
	return nil
}

// eventsSettle is how long to wait until the log has the events of finished requests.
const eventsSettle = 500 * time.Millisecond

// run asks every question directly and through the gateway, all at the same time. It then shuts
// down if last is set or ctx has ended.
func (s *testbed) run(ctx context.Context, last bool) ([]row, error) {
	rows := askAll(ctx, s.up.URL(), s.gateway())
	if !last && recovery.Wait(ctx, eventsSettle) {
		return s.judge(rows), nil
	}
	if err := s.shutDown(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.judge(rows), nil
}

// judge adds the gateway's events and the upstream's requests to the rows.
func (s *testbed) judge(rows []row) []row {
	for i := range rows {
		r := &rows[i]
		r.events = s.log.eventsOf(r.fault)
		for _, sent := range s.up.Requests(r.fault.answerModel()) {
			r.wrongRequest = r.fault.mismatch(sent.Body)
			r.prefilled = r.prefilled || gjson.Get(sent.Body, "messages.@reverse.0.role").Str == "assistant"
		}
	}
	return rows
}

// mismatch returns the first entry of f.sent that a request body violates, or "".
func (f *fault) mismatch(body string) string {
	for _, text := range f.sent {
		if without, ok := strings.CutPrefix(text, "!"); strings.Contains(body, without) == ok {
			return text
		}
	}
	return ""
}

// askAll asks every question directly and through the gateway.
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
				a.url = refusedURL + "/v1"
			case onTwoKeys:
				a.key = keyOne
			}
			r.straight = a.ask(ctx, f, f.straightModel(), f.text(f.straightModel()))
		})
		all.Go(func() {
			a := demoAgent(client, gateway)
			for i := range f.earlier {
				a.ask(ctx, f, f.earlierModel(i), f.text(f.earlierModel(i)))
			}
			r.through = a.ask(ctx, f, f.slug, f.text(f.answerModel()))
		})
	}
	all.Wait()
	return rows
}

// demoAgent returns the demo's agent for an address.
func demoAgent(client *http.Client, address string) agent {
	return agent{client: client, url: address + "/v1", key: keyAgent, timeout: agentTimeout, ownIDPrefix: ownAnswerID}
}

// config returns the gateway's configuration with limits prepended. An empty listen is a
// random port.
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
	secrets := map[string]string{"KEY_ONE": keyOne, "KEY_TWO": keyTwo, "KEY_TAPE": keyRecording}
	return configs.Parse("demo.yaml", []byte(b.String()), func(name string) (string, bool) {
		if strings.HasPrefix(name, "OTEL_") { // export traces if the environment has a collector
			return os.LookupEnv(name)
		}
		v, ok := secrets[name]
		return v, ok
	})
}
