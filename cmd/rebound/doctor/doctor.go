package doctor

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/proxy/upstream"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/classify"
	"github.com/rebound-llm/rebound/recovery/route"
	"github.com/rebound-llm/rebound/recovery/transcript"
	"github.com/rebound-llm/rebound/store/redis"
)

// Options configure a run.
type Options struct {
	Config *configs.Config
	// Model is the model to test, as clients name it. If empty, Run tests all configured models,
	// and for upstreams without one the first that they list. It leaves out disabled upstreams.
	Model string
	// Env holds a client's credentials (OPENAI_API_KEY, ANTHROPIC_API_KEY) for upstreams that
	// receive those of clients.
	Env configs.Env
	// Timeout is the limit of one request; zero is a minute.
	Timeout time.Duration
	// Progress is called with the name of each target before its test; it may be nil.
	Progress func(target string)
	// Window also sends long prompts, if Ask accepts their cost. A nil Ask declines.
	Window bool
	Ask    func(question string) bool
}

// run is one run of the doctor.
type run struct {
	Options
	table *classify.Table
	nonce string // at the end of the User-Agent of each request
}

// Run tests the targets one after another, then the configuration and Redis. All problems are
// in the report. It ends soon after ctx is done.
func Run(ctx context.Context, o Options) *Report {
	o.Timeout = cmp.Or(o.Timeout, time.Minute)
	if o.Ask == nil {
		o.Ask = func(string) bool { return false }
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	v := &run{Options: o, table: classify.New(configs.UpstreamRules, o.Config.Classify.Rules...), nonce: rand.Text()}
	r := &Report{File: o.Config.Path(), Gateway: []Finding{}, Targets: []*Target{}}
	var probes []*probe
	for _, c := range v.choose() {
		p, err := v.prepare(c)
		if err != nil {
			r.Gateway = append(r.Gateway, Finding{Problem, "upstream " + c.Upstream, oneLine(err.Error())})
			continue
		}
		r.Targets = append(r.Targets, p.report)
		probes = append(probes, p)
		o.Progress(p.report.Target)
		p.examine(ctx)
		if p.answers {
			p.recoveries()
		}
		p.up.Close()
	}
	for _, w := range o.Config.Warnings() {
		r.Gateway = append(r.Gateway, Finding{Note, "configuration", w})
	}
	r.Gateway = append(r.Gateway, v.redis(ctx)...)
	r.Config = suggestedConfig(o.Config, probes)
	return r
}

// choice is a target to test.
type choice struct {
	route.Target
	name string // of the model in the configuration, "" if the configuration has none
	key  string // label of the key
}

// choose picks the targets of the configured models and the upstreams without one, once for each key.
func (v *run) choose() (list []choice) {
	c := v.Config
	add := func(name string, t route.Target) {
		keys := []string{""}
		if u := c.Upstreams[t.Upstream]; len(u.Keys) > 0 {
			keys = nil
			for _, k := range u.Keys {
				keys = append(keys, k.Name)
			}
		}
		for _, k := range keys {
			list = append(list, choice{Target: t, name: name, key: k})
		}
	}
	models := slices.Sorted(maps.Keys(c.Models))
	if _, mapped := c.Models[v.Model]; mapped {
		models = []string{v.Model}
	} else if v.Model != "" {
		name := ""
		for api := range transcript.APICount {
			if strings.HasPrefix(v.Model, wires[api].models) {
				name = cmp.Or(c.DefaultOf(api), name)
			}
		}
		add("", route.Target{Upstream: cmp.Or(name, c.DefaultUpstream), Model: v.Model})
		return list
	}
	used := map[string]bool{}
	for _, name := range models {
		for _, t := range c.Models[name].Targets {
			t.Model = cmp.Or(t.Model, name)
			if used[t.Upstream] = true; !c.Upstreams[t.Upstream].Disabled && !slices.ContainsFunc(list, func(o choice) bool { return o.Upstream == t.Upstream && o.Model == t.Model }) {
				add(name, t)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Upstreams)) {
		if v.Model == "" && !used[name] && !c.Upstreams[name].Disabled {
			add("", route.Target{Upstream: name})
		}
	}
	return list
}

// prepare returns the probe for a target.
func (v *run) prepare(c choice) (*probe, error) {
	cfg := v.Config.Upstreams[c.Upstream]
	if p := recovery.Prefill(c.Prefill); p != "" && p != recovery.PrefillAuto {
		cfg.Prefill = p
	}
	up, err := upstream.New(c.Upstream, cfg)
	if err != nil {
		return nil, err
	}
	t := recovery.Target{Upstream: c.Upstream, Model: c.Model}
	if len(cfg.Keys) > 0 {
		t.Key = c.key
	}
	p := &probe{run: v, cfg: cfg, up: up, target: t, name: c.name, configuredWindow: c.Window, header: http.Header{}}
	p.report = &Target{Target: strings.TrimSuffix(t.String(), "/"), URL: cfg.URL, Findings: []Finding{}}
	if cfg.Passthrough && len(v.Config.Proxy.Auth.Keys) == 0 {
		p.useClientCredential()
	}
	return p, nil
}

// useClientCredential sends a client's credential from the environment, as clients of the gateway do.
func (p *probe) useClientCredential() {
	variable, value := p.wire().key, ""
	if p.Env != nil {
		value, _ = p.Env(variable)
	}
	switch name := p.cfg.Credential(); {
	case value == "" && p.up.Local():
	case value == "":
		p.noCredential = variable
	case http.CanonicalHeaderKey(name) == "Authorization":
		p.secret = value
		p.header.Set(name, "Bearer "+value)
	default:
		p.secret = value
		p.header.Set(name, value)
	}
}

// listenForLoop listens at the gateway's address, unless it is in use, and answers each request with an
// error. The returned function closes it and reports whether one of our requests arrived.
func listenForLoop(addr string, ours func(*http.Request) bool) func() bool {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return func() bool { return false } // probably a running gateway, which detects loops itself
	}
	var came atomic.Bool
	s := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ours(r) {
			came.Store(true)
		}
		w.WriteHeader(http.StatusLoopDetected)
		_, _ = io.WriteString(w, `{"error":{"message":"rebound doctor checks for loops at this address"}}`)
	})}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	return func() bool {
		_ = s.Close()
		<-done
		return came.Load()
	}
}

// redis tests the store.
func (v *run) redis(ctx context.Context) (out []Finding) {
	cfg := v.Config.Store.Redis
	if !cfg.Enabled() {
		return nil
	}
	say := func(s Status, format string, args ...any) {
		out = append(out, Finding{s, "redis", fmt.Sprintf(format, args...)})
	}
	own := cfg
	own.Timeout = 5 * time.Second
	s, err := redis.Open(own)
	if err != nil {
		say(Problem, "%s", oneLine(err.Error()))
		return out
	}
	defer s.Close()
	// The first ping opens the connection and is not timed.
	if err := s.Ping(ctx); err != nil {
		say(Problem, "%s does not accept a write: %s; the gateway keeps its state in memory, and replicas share nothing", cfg, oneLine(err.Error()))
		return out
	}
	started := time.Now()
	err = s.Ping(ctx)
	took := time.Since(started)
	server, _ := s.Server(ctx)
	switch {
	case err != nil:
		say(Problem, "%s does not always answer: %s", cfg, oneLine(err.Error()))
	case took > cfg.Timeout:
		say(Problem, "%s takes %v for a write, but store.redis.timeout is %v: the gateway would keep its state in memory",
			cfg, took.Round(time.Millisecond), cfg.Timeout)
	default:
		say(OK, "%s accepts a write in %v", cmp.Or(server.Version, cfg.String()), took.Round(10*time.Microsecond))
	}
	if skew := time.Until(server.Time).Abs(); !server.Time.IsZero() && skew > 2*time.Second {
		say(Problem, "its clock differs from this machine's by %v: shared cool-downs begin and end at the wrong time", skew.Round(time.Second))
	}
	switch {
	case server.Policy == "":
		say(Unknown, "its eviction policy cannot be read")
	case server.Policy == "noeviction" && server.Limited:
		say(Note, "maxmemory-policy is noeviction: when its memory is full, replicas share nothing new; set it to volatile-lru")
	}
	return out
}
