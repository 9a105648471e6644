package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
	"github.com/rebound-llm/rebound/recovery"
)

// CrashOptions say which gateway is tested, and how.
type CrashOptions struct {
	// Gateway is the base URL that clients of the gateway use, which ends in /v1.
	Gateway string
	// Format is the API in which the client asks: one of [CrashFormats].
	Format string
	// Listen is the address of the scripted upstream: the gateway's only one.
	Listen string
	// Key is the credential for the gateway.
	Key string
	// Header is added to each request to the gateway.
	Header http.Header
	// Prefix is put before the names of models; the gateway takes it away again.
	Prefix string
	// Timeout is how long the client waits for an answer, its own retries included.
	Timeout time.Duration
	// Wait is how long the first answer through the gateway may take to come.
	Wait time.Duration
	// Parallel is how many faults run at the same time; with 1 none disturbs another.
	Parallel int
	// Version is the one of this program, for the card.
	Version string
	// Progress gets what happens meanwhile, for people.
	Progress io.Writer
}

// CrashFormats are the APIs in which the client of a crash test can ask.
func CrashFormats() []string { return []string{string(chat), string(responses), string(messages)} }

// crashKey is the credential for the upstream itself.
const crashKey = "sk-crashtest"

const (
	// calmWithin is how long the gateway may take to serve a healthy model again after a fault.
	calmWithin = time.Minute
	// betweenProbes is the pause between two requests to a gateway that is not ready.
	betweenProbes = time.Second
	// probePatience is how long a healthy answer may take; it takes 0.2 s.
	probePatience = 10 * time.Second
)

// crash is a running crash test.
type crash struct {
	CrashOptions
	up       *upstreamtest.Running
	straight agent
	gateway  agent
	rows     []crashRow
	progress sync.Mutex
}

// Crash runs the faults against a gateway and returns the card. It fails if the upstream
// cannot listen, if no answer of it comes through the gateway in time, and if ctx ends.
func Crash(ctx context.Context, o CrashOptions) (*Card, error) {
	up, err := upstreamtest.New(upstreamtest.Options{Gap: 10 * time.Millisecond, Bytes: answerSize, KeepRequests: 1 << 16}).Listen(o.Listen)
	if err != nil {
		return nil, fmt.Errorf("the scripted upstream: %w", err)
	}
	defer up.Close()
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	c := &crash{CrashOptions: o, up: up, rows: crashRows(wire(o.Format)),
		straight: agent{client: client, url: up.URL() + "/v1", key: crashKey, patience: o.Timeout},
		gateway:  agent{client: client, url: o.Gateway, key: o.Key, header: o.Header, patience: o.Timeout},
	}
	for i := range c.rows {
		f := &c.rows[i].fault
		err = errors.Join(err, up.Script(f.straightModel(), f.targets[0].script), up.Script(c.rows[i].model(), f.targets[0].script))
	}
	if err != nil {
		return nil, err
	}
	c.say("The scripted upstream listens at %s/v1: point the gateway's upstream there, and nothing else.\n"+
		"It takes any key. The gateway has to pass on the names of models: all begin with %s.\n\n", up.URL(), crashPrefix)
	if err := c.connect(ctx); err != nil {
		return nil, err
	}
	began := time.Now()
	c.say("The gateway reaches it. %d faults follow; an answer may take %v.\n", len(c.rows), o.Timeout)
	c.askAll(ctx)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	recovery.Wait(ctx, eventsSettle)
	up.Close() // requests that a gateway still has there end now, and their records are complete
	return c.card(began), nil
}

// say tells people what happens.
func (c *crash) say(format string, args ...any) {
	c.progress.Lock()
	defer c.progress.Unlock()
	fmt.Fprintf(c.Progress, format, args...)
}

// askAll asks about every fault, straight at once and through the gateway in turn.
func (c *crash) askAll(ctx context.Context) {
	var all sync.WaitGroup
	turns := make(chan *crashRow)
	for range c.Parallel {
		all.Go(func() {
			for r := range turns {
				c.calm(ctx)
				r.through = c.gateway.ask(ctx, &r.fault, c.Prefix+r.model(), r.answers(r.model())...)
				c.say("  %s: %s, %s\n", r.fault.title, r.through.got(), seconds(r.through.took))
			}
		})
	}
	for i := range c.rows {
		r := &c.rows[i]
		all.Go(func() {
			r.straight = c.straight.ask(ctx, &r.fault, r.fault.straightModel(), r.answers(r.fault.straightModel())...)
		})
	}
	for i := range c.rows {
		turns <- &c.rows[i]
	}
	close(turns)
	all.Wait()
}

// probe asks for a healthy answer through the gateway.
func (c *crash) probe(ctx context.Context) outcome {
	f, a := c.rows[0].fault, c.gateway
	a.patience = min(a.patience, probePatience)
	return a.ask(ctx, &f, c.Prefix+wellModel, f.text(wellModel))
}

// calm waits until the gateway answers well, so that what one fault left behind (a
// paused upstream, an open breaker) does not count against the next.
func (c *crash) calm(ctx context.Context) {
	for end := time.Now().Add(calmWithin); c.probe(ctx).verdict != complete && time.Now().Before(end); {
		if !recovery.Wait(ctx, betweenProbes) {
			return
		}
	}
}

// connect waits until a healthy answer of the upstream comes through the gateway. The
// error says what is wrong.
func (c *crash) connect(ctx context.Context) error {
	said := ""
	for end := time.Now().Add(c.Wait); ; {
		seen := len(c.up.Requests(""))
		o := c.probe(ctx)
		arrived := c.up.Requests("")[seen:]
		if o.verdict == complete && slices.ContainsFunc(arrived, func(r upstreamtest.Record) bool { return r.Model == wellModel }) {
			return ctx.Err()
		}
		wrong := c.miswired(o, arrived)
		if time.Now().After(end) {
			return fmt.Errorf("no answer of the scripted upstream came through %s: %s", c.Gateway, wrong)
		}
		if wrong != said {
			c.say("Waiting up to %v: %s\n", c.Wait, wrong)
			said = wrong
		}
		if !recovery.Wait(ctx, betweenProbes) {
			return ctx.Err()
		}
	}
}

// miswired says why a healthy answer did not come through: from what the client got, and
// from the requests that arrived at the upstream.
func (c *crash) miswired(o outcome, arrived []upstreamtest.Record) string {
	got := o.got()
	if o.body != "" {
		got += " " + strconv.Quote(o.body)
	}
	for _, r := range arrived {
		switch {
		case r.Method != http.MethodPost:
			continue // lists of models, as probes of gateways ask for
		case r.Status == http.StatusNotFound:
			return fmt.Sprintf("the gateway asks the upstream for the path %s; the base URL of its upstream is %s/v1, and some want it without /v1", r.Path, c.up.URL())
		case r.Model == c.Prefix+wellModel && c.Prefix != "":
			return fmt.Sprintf("the gateway passes on the name of the model with its prefix: leave out --prefix %s", c.Prefix)
		case r.Model != wellModel:
			return fmt.Sprintf("the gateway asks the upstream for the model %q instead of %q: it has to pass on the names of models (--prefix adds one that it takes away)", r.Model, wellModel)
		}
		return fmt.Sprintf("the upstream answered well, and the client got: %s", got)
	}
	if o.verdict == complete || o.verdict.looksComplete() {
		return "the answer is not from the scripted upstream, at which no request arrived: the gateway's upstream is another"
	}
	return fmt.Sprintf("no request arrived at the scripted upstream; the client got: %s", got)
}
