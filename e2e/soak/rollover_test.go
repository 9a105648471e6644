//go:build linux

package soak_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
	"github.com/rebound-llm/rebound/store/storetest"
)

// Two replicas behind HAProxy, with an upstream that speaks TLS, are replaced one after the
// other under load, each taken out of the balancer first as docs/operations.md says: no request fails.
func TestRollOver(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program and replaces it four times")
	}
	balancer, err := exec.LookPath("haproxy")
	if err != nil && os.Getenv("CI") != "" {
		t.Fatal("haproxy is not installed, and what is not tested is not known to hold")
	}
	if err != nil {
		t.Skip("haproxy is not installed")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "rebound")
	if out, err := exec.Command("go", "build", "-o", program, "../../cmd/rebound").CombinedOutput(); err != nil {
		t.Fatalf("building the gateway: %v\n%s", err, out)
	}
	secure, ca := certified(t, dir)
	up := upstreamtest.New(upstreamtest.Options{KeepRequests: -1, TLS: secure}).Start(t)
	settings := fmt.Sprintf("drain: 90s\nupstreams: {default: {url: %q, ca_file: %q, keys: [{name: a, env: KEY_A}]}}\n"+
		"recovery: {backoff_min: 20ms, backoff_max: 50ms}\nstore: {redis: {url: %q}}\n", up.URL()+"/v1", ca, storetest.StartRedis(t).URL())
	var replicas []*gateway
	for _, name := range []string{"one", "two"} {
		base := filepath.Join(dir, name)
		g := &gateway{name: name, program: program, file: base + ".yaml", log: base + ".log"}
		if err := os.WriteFile(g.file, []byte(settings), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = g.stop() })
		if err := g.start(); err != nil {
			t.Fatal(err)
		}
		replicas = append(replicas, g)
	}
	b := startBalancer(t, balancer, dir, replicas)

	loaded, end := context.WithCancel(t.Context())
	defer end()
	var clients sync.WaitGroup
	var answered atomic.Int64
	for i := range 12 {
		clients.Go(func() {
			for n := 0; loaded.Err() == nil; n++ {
				script := []string{"ok", "gap=20ms,chunks=40", "503/ok"}[i%3]
				model := fmt.Sprintf("m-%d-%d@%s", i, n, script)
				if err := ask(b.url, model, i%2 == 0); err != nil {
					t.Errorf("client %d, request %d, %s: %v", i, n, model, err)
					return
				}
				answered.Add(1)
			}
		})
	}
	for _, g := range append(replicas, replicas...) {
		wait(loaded, 500*time.Millisecond)
		before := answered.Load()
		b.do(t, "set server l/"+g.name+" state maint")
		wait(loaded, 2*time.Second) // what it had just been given arrives
		if err := g.stop(); err != nil {
			t.Error(err)
		}
		if err := g.start(); err != nil {
			t.Fatal(err)
		}
		b.do(t, fmt.Sprintf("set server l/%s addr 127.0.0.1 port %d", g.name, g.port.Load()))
		b.do(t, "set server l/"+g.name+" state ready")
		if answered.Load() == before {
			t.Errorf("nothing was answered while %s was replaced", g.name)
		}
	}
	end()
	clients.Wait()
	for _, g := range replicas {
		for _, line := range g.troubles() {
			t.Errorf("%s: %.2000s", g.name, line)
		}
	}
	if n := up.Stats(); n.Active != 0 {
		t.Errorf("%d requests are still at the upstream", n.Active)
	}
	t.Logf("%d answers during four replacements", answered.Load())
}

// ask sends a request for a completion and checks that the answer is whole.
func ask(url, model string, stream bool) error {
	body := fmt.Sprintf(`{"model":%q,"stream":%v,"messages":[{"role":"user","content":"Hello."}]}`, model, stream)
	resp, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	whole := `"finish_reason":"stop"`
	if stream {
		whole = "data: [DONE]\n\n"
	}
	if err != nil || resp.StatusCode != http.StatusOK || !bytes.Contains(answer, []byte(whole)) || bytes.Contains(answer, []byte(`"error"`)) {
		return fmt.Errorf("%s, %v: %.500s", resp.Status, err, answer)
	}
	return nil
}

// haproxy is a balancer that runs.
type haproxy struct{ url, socket string }

// startBalancer starts HAProxy before the gateways.
func startBalancer(t *testing.T, program, dir string, replicas []*gateway) *haproxy {
	addr, err := upstreamtest.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	b := &haproxy{url: "http://" + addr, socket: filepath.Join(dir, "admin")}
	var config strings.Builder
	fmt.Fprintf(&config, "global\n  stats socket %s level admin\ndefaults\n  mode http\n  timeout connect 2s\n  timeout client 60s\n  timeout server 60s\n", b.socket)
	fmt.Fprintf(&config, "listen l\n  bind %s\n  option forwardfor\n  option httpchk GET /readyz\n  default-server check inter 200ms\n", addr)
	for _, g := range replicas {
		fmt.Fprintf(&config, "  server %s 127.0.0.1:%d\n", g.name, g.port.Load())
	}
	file := filepath.Join(dir, "haproxy.cfg")
	if err := os.WriteFile(file, []byte(config.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-db", "-f", file)
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("haproxy: %s", &said)
		}
	})
	storetest.Eventually(t, "the balancer answers", 20*time.Second, func() bool { _, err := get(b.url + "/readyz"); return err == nil })
	return b
}

// do gives the balancer a command, which answers only if something is wrong with it.
func (b *haproxy) do(t *testing.T, command string) {
	t.Helper()
	conn, err := net.Dial("unix", b.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, command+"\n")
	if out, err := io.ReadAll(conn); err != nil || bytes.Contains(out, []byte("nvalid")) || bytes.Contains(out, []byte("No such")) {
		t.Fatalf("%s: %s %v", command, out, err)
	}
}
