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

// CrashOptions configure a crash test.
type CrashOptions struct {
	// Gateway is the base URL of the gateway, which ends in /v1.
	Gateway string
	// Format is the API that the client uses, one of [CrashFormats].
	Format string
	// Listen is the address of the scripted upstream, the only upstream of the gateway.
	Listen string
	// Key is the credential for the gateway.
	Key string
	// Header is added to each request to the gateway.
	Header http.Header
	// Prefix is added to model names; the gateway removes it.
	Prefix string
	// Timeout is how long the client waits for an answer, including its own retries.
	Timeout time.Duration
	// Wait is how long to wait for the first answer through the gateway.
	Wait time.Duration
	// Parallel is the number of faults to run at the same time; above 1 they may affect each other.
	Parallel int
	// Version is the version of this program, for the card.
	Version string
	// Progress receives messages for the user during the test.
	Progress io.Writer
}

// CrashFormats returns the APIs that the client of a crash test can use.
func CrashFormats() []string { return []string{string(chat), string(responses), string(messages)} }

// crashKey is the credential for requests that go directly to the upstream.
const crashKey = "sk-crashtest"

const (
	// maxHealthyWait is how long to wait for the gateway to serve a healthy model again after a fault.
	maxHealthyWait = time.Minute
	// probePause is the pause between two probes of a gateway that is not ready.
	probePause = time.Second
	// probeTimeout is the time limit of a healthy answer, which takes 0.2 s.
	probeTimeout = 10 * time.Second
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

// Crash runs the faults against a gateway and returns the card. It returns an error if the
// upstream cannot listen, if no answer arrives through the gateway in time, or if ctx ends.
func Crash(ctx context.Context, o CrashOptions) (*Card, error) {
	up, err := upstreamtest.New(upstreamtest.Options{Gap: 10 * time.Millisecond, Bytes: answerSize, KeepRequests: 1 << 16}).Listen(o.Listen)
	if err != nil {
		return nil, fmt.Errorf("starting the scripted upstream: %w", err)
	}
	defer up.Close()
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	c := &crash{CrashOptions: o, up: up, rows: crashRows(wire(o.Format)),
		straight: agent{client: client, url: up.URL() + "/v1", key: crashKey, timeout: o.Timeout},
		gateway:  agent{client: client, url: o.Gateway, key: o.Key, header: o.Header, timeout: o.Timeout},
	}
	for i := range c.rows {
		f := &c.rows[i].fault
		err = errors.Join(err, up.Script(f.straightModel(), f.targets[0].script), up.Script(c.rows[i].model(), f.targets[0].script))
	}
	if err != nil {
		return nil, err
	}
	c.say("The scripted upstream listens at %s/v1. Configure the gateway to use this upstream and no other.\n"+
		"It accepts any key. The gateway must forward model names; all begin with %s.\n\n", up.URL(), crashPrefix)
	if err := c.waitConnected(ctx); err != nil {
		return nil, err
	}
	began := time.Now()
	c.say("The gateway is connected. Running %d faults; the client waits up to %v for each answer.\n", len(c.rows), o.Timeout)
	c.askAll(ctx)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	recovery.Wait(ctx, eventsSettle)
	up.Close() // ends the gateway's last requests, which completes their records
	return c.card(began), nil
}

// say prints a progress message.
func (c *crash) say(format string, args ...any) {
	c.progress.Lock()
	defer c.progress.Unlock()
	fmt.Fprintf(c.Progress, format, args...)
}

// askAll runs all faults: directly at the same time, and through the gateway in turn.
func (c *crash) askAll(ctx context.Context) {
	var all sync.WaitGroup
	turns := make(chan *crashRow)
	for range c.Parallel {
		all.Go(func() {
			for r := range turns {
				c.waitHealthy(ctx)
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

// probe requests a healthy answer through the gateway.
func (c *crash) probe(ctx context.Context) outcome {
	f, a := c.rows[0].fault, c.gateway
	a.timeout = min(a.timeout, probeTimeout)
	return a.ask(ctx, &f, c.Prefix+healthyModel, f.text(healthyModel))
}

// waitHealthy waits until the gateway serves a healthy model, so that a paused upstream or an
// open breaker after one fault does not count against the next.
func (c *crash) waitHealthy(ctx context.Context) {
	for end := time.Now().Add(maxHealthyWait); c.probe(ctx).verdict != complete && time.Now().Before(end); {
		if !recovery.Wait(ctx, probePause) {
			return
		}
	}
}

// waitConnected waits until a healthy answer of the upstream arrives through the gateway. Its
// error says what is wrong.
func (c *crash) waitConnected(ctx context.Context) error {
	said := ""
	for end := time.Now().Add(c.Wait); ; {
		seen := len(c.up.Requests(""))
		o := c.probe(ctx)
		arrived := c.up.Requests("")[seen:]
		if o.verdict == complete && slices.ContainsFunc(arrived, func(r upstreamtest.Record) bool { return r.Model == healthyModel }) {
			return ctx.Err()
		}
		wrong := c.wiringFault(o, arrived)
		if time.Now().After(end) {
			return fmt.Errorf("no answer from the scripted upstream arrives through %s: %s", c.Gateway, wrong)
		}
		if wrong != said {
			c.say("Waiting up to %v: %s\n", c.Wait, wrong)
			said = wrong
		}
		if !recovery.Wait(ctx, probePause) {
			return ctx.Err()
		}
	}
}

// wiringFault says why a healthy answer does not arrive, judging by the client's outcome and by
// the requests that arrived at the upstream.
func (c *crash) wiringFault(o outcome, arrived []upstreamtest.Record) string {
	got := o.got()
	if o.body != "" {
		got += " " + strconv.Quote(o.body)
	}
	for _, r := range arrived {
		switch {
		case r.Method != http.MethodPost:
			continue // a gateway's own probe, for example of /models
		case r.Status == http.StatusNotFound:
			return fmt.Sprintf("the gateway requests the path %s: set the base URL of its upstream to %s/v1, or without /v1 if the gateway adds that itself",
				r.Path, c.up.URL())
		case r.Model == c.Prefix+healthyModel && c.Prefix != "":
			return fmt.Sprintf("the gateway does not remove the prefix from the model name: leave out --prefix %s", c.Prefix)
		case r.Model != healthyModel:
			return fmt.Sprintf("the gateway requests the model %q instead of %q: configure it to forward model names (--prefix adds a prefix that it removes)",
				r.Model, healthyModel)
		}
		return fmt.Sprintf("the upstream gave a complete answer, but the client got: %s", got)
	}
	if o.verdict == complete || o.verdict.looksComplete() {
		return "the answer is from another upstream, and no request arrived at the scripted one: configure the gateway to use it"
	}
	return fmt.Sprintf("no request arrived at the scripted upstream; the client got: %s", got)
}
