//go:build linux

package soak_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/rebound-llm/rebound/cmd/rebound/app" // what is built below: a change of it is a reason to test anew
	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

var (
	duration = flag.Duration("for", 10*time.Second, "how long")
	rate     = flag.Float64("rate", 60, "requests in a second, at most")
	clients  = flag.Int("clients", 200, "how many clients")
	seed     = flag.Uint64("seed", 0, "of all that is random; 0: another one each time")
	before   = flag.String("before", "", "the `program` of the version before: one gateway is replaced by it and back again")
	output   = flag.String("report", "", "write the report to this `file`")
)

// watched is how long a test must be for its memory to say something.
const watched = 10 * time.Minute

// soak is one test.
type soak struct {
	up    *upstreams
	tally *tally

	version string // of what is tested
}

func TestSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("half a minute of faults at least")
	}
	ctx, stop := signal.NotifyContext(t.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	random := rand.New(rand.NewPCG(*seed, 0))
	s := &soak{up: &upstreams{plans: map[string]*plan{}}, tally: newTally()}
	dir := t.TempDir()

	// Stores, upstreams and gateways.
	st := startStores(t, random)
	settings := s.listen(t, dir)
	program := filepath.Join(dir, "rebound")
	if out, err := exec.Command("go", "build", "-o", program, "../../cmd/rebound").CombinedOutput(); err != nil {
		t.Fatalf("building the gateway: %v\n%s", err, out)
	}
	version, _ := exec.Command("git", "describe", "--tags", "--always", "--dirty").Output()
	s.version = string(bytes.TrimSpace(version))
	var gates []*gateway
	legs := st.legs()
	for _, l := range legs {
		names := []string{l.name}
		if l.name == "Redis" {
			names = append(names, l.name+", replaced")
		}
		for i, name := range names {
			base := filepath.Join(dir, fmt.Sprint("gateway-", len(gates)))
			g := &gateway{name: name, program: program, file: base + ".yaml", log: base + ".log", rolled: i > 0}
			if err := g.configure(strings.ReplaceAll(settings, "STORE", l.store), 0); err != nil {
				t.Fatal(err)
			}
			l.gates, gates = append(l.gates, g), append(gates, g)
			t.Cleanup(func() { _ = g.stop() })
			if err := g.start(); err != nil {
				t.Fatal(err)
			}
		}
	}

	if *duration >= watched {
		var filling sync.WaitGroup
		for i, g := range gates {
			if !g.rolled {
				filling.Go(func() {
					if err := s.fill(ctx, g, rand.New(rand.NewPCG(*seed, 1<<32+uint64(i)))); err != nil {
						t.Errorf("filling %s: %v", g.name, err)
					}
				})
			}
		}
		filling.Wait()
	}

	// Clients, at a steady pace.
	begun := time.Now()
	turns := make(chan struct{})
	var working sync.WaitGroup
	for i := range *clients {
		own := rand.New(rand.NewPCG(*seed, uint64(i)+1))
		tr := &http.Transport{MaxIdleConnsPerHost: 2, IdleConnTimeout: 20 * time.Second}
		if i%3 == 0 { // HTTP/2 in the clear
			tr.Protocols = new(http.Protocols)
			tr.Protocols.SetUnencryptedHTTP2(true)
		}
		c := &client{soak: s, leg: legs[i%len(legs)], nonce: newNonce(own), rand: own, http: &http.Client{Transport: tr}}
		working.Go(func() { c.run(turns) })
	}
	running, end := context.WithTimeout(ctx, *duration)
	defer end()
	var beside sync.WaitGroup
	beside.Go(func() {
		defer close(turns)
		pace := time.NewTicker(time.Duration(float64(time.Second) / *rate))
		defer pace.Stop()
		for {
			select {
			case <-running.Done():
				return
			case <-pace.C:
			}
			select {
			case turns <- struct{}{}:
			default: // all of them wait for an answer
				s.tally.waited.Add(1)
			}
		}
	})
	samples := make([][]sample, len(gates))
	beside.Go(func() {
		for n := 1; running.Err() == nil; n++ {
			wait(running, max(500*time.Millisecond, *duration/1000))
			for i, g := range gates {
				if one, ok := g.sample(); ok && !g.rolled {
					samples[i] = append(samples[i], one)
				}
				if i == n%len(gates) {
					if err := g.configure(strings.ReplaceAll(settings, "STORE", legOf(legs, g).store), n); err == nil {
						g.reload()
						s.tally.did("configuration reloaded")
					}
				}
			}
		}
	})

	// What happens to stores and gateways, one after the other.
	replaced := gates[2]
	events := []struct {
		name string
		do   func(context.Context)
	}{
		{"Redis killed, and back without its data", st.kill},
		{"Redis paused", st.pause},
		{"Sentinel's master killed, a replica in its place", st.failover},
		{"Cluster's slot moved", st.moveSlot},
		{"Cluster's node paused", st.pauseNode},
		{"gateway replaced", func(context.Context) {
			if err := replaced.stop(); err != nil {
				t.Error(err)
			}
			if *before != "" && replaced.program == program {
				replaced.program = *before
			} else {
				replaced.program = program
			}
			if err := replaced.start(); err != nil {
				t.Error(err)
			}
		}},
	}
	for running.Err() == nil {
		for _, i := range random.Perm(len(events)) {
			wait(running, min(*duration/50, 5*time.Second))
			if running.Err() == nil {
				events[i].do(running)
				s.tally.did(events[i].name)
			}
		}
		if testing.Verbose() {
			fmt.Printf("%5.0f s: %s\n", time.Since(begun).Seconds(), s.tally)
		}
	}
	beside.Wait()
	working.Wait()
	took := time.Since(begun)

	// What came of it.
	for _, g := range gates {
		if err := g.stop(); err != nil {
			t.Error(err)
		}
		for _, line := range g.troubles() {
			t.Errorf("%s: %.2000s", g.name, line)
		}
	}
	for _, v := range []verdict{lost, corrupted, crossed} {
		if n := s.tally.total(v); n > 0 {
			t.Errorf("%d answers were %s", n, v)
		}
	}
	if n := s.up.mixed.Load(); n > 0 {
		t.Errorf("%d requests reached an upstream with what belongs to another client, the first:\n%.5000s", n, *s.up.last.Load())
	}
	if s.tally.total(good) == 0 {
		t.Error("no answer was right")
	}
	for _, e := range s.tally.examples {
		t.Log(e)
	}
	var over overload
	if ctx.Err() == nil {
		over.run(t, program)
		over.check(t)
	}
	holds := resources(gates, samples)
	if took >= watched {
		for _, h := range holds {
			if !h.flat() {
				t.Errorf("%s of %s grow from %.1f to %.1f", h.what, h.gateway, h.second, h.last)
			}
		}
	}
	if *output != "" && ctx.Err() == nil {
		if err := os.WriteFile(*output, s.report(took, holds, &over, t.Failed()), 0o644); err != nil {
			t.Error(err)
		}
	}
	t.Logf("seed %d, %v: %s", *seed, took.Round(time.Second), s.tally)
}

// listen starts the upstreams, and returns the settings with their addresses.
func (s *soak) listen(t *testing.T, dir string) string {
	options := upstreamtest.Options{KeepRequests: -1, Rename: s.up.rename, Bytes: 300}
	up, other := upstreamtest.New(options).Start(t), upstreamtest.New(options).Start(t)
	var ca string
	options.TLS, ca = certified(t, dir)
	secure := upstreamtest.New(options).Start(t)
	return strings.NewReplacer("UP/", up.URL()+"/", "LOOSE/", other.URL()+"/", "TLS/", secure.URL()+"/", "CA", ca).Replace(settings)
}

// certified returns the settings of a server that speaks TLS, and the file of who vouches for it.
func certified(t *testing.T, dir string) (c *tls.Config, ca string) {
	up := httptest.NewUnstartedServer(nil)
	up.StartTLS()
	up.Close()
	ca = filepath.Join(dir, "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: up.Certificate().Raw})
	if err := os.WriteFile(ca, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: up.TLS.Certificates}, ca
}

func legOf(legs []*leg, g *gateway) *leg {
	for _, l := range legs {
		for _, one := range l.gates {
			if one == g {
				return l
			}
		}
	}
	return nil
}
