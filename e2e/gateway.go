package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// closedPort is where nobody listens.
const closedPort = "http://127.0.0.1:1/v1"

// Gateway is the gateway's program under test.
type Gateway struct {
	URL  string
	cmd  *exec.Cmd
	done chan error
	log  string
}

// buildGateway builds the program from the checkout.
func buildGateway(t tree) (string, error) {
	binary := t.cached("rebound")
	_, err := command(t.root, "go", "build", "-o", binary, "./cmd/rebound")
	return binary, err
}

// configure writes the configuration that serves the runs.
func configure(listen, upstream string, pace *Pace, runs []*Run, extra []model) string {
	var b strings.Builder
	fmt.Fprintf(&b, "listen: %s\nlog: {level: info}\nstrategies: {holdout: 0}%supstreams:\n", listen, pace.Config)
	for _, f := range []Format{Chat, Messages} {
		for _, name := range []string{"default", "backup", "closed"} {
			url := upstream
			if name == "closed" {
				url = closedPort
			}
			fmt.Fprintf(&b, "  %s: {%s, passthrough: true, profile: hosted}\n", on(name, f), served(url, f))
		}
	}
	models := extra
	for _, r := range runs {
		m := model{name: r.key()}
		for i := range r.Case.Targets {
			t := &r.Case.Targets[i]
			format := formatOf(r.Client)
			at := on(cmp.Or(t.On, "default"), format)
			if i == 0 && r.Case.Keys {
				at = "own-" + r.key()
				fmt.Fprintf(&b, "  %q: {%s, profile: hosted, keys: [{name: a, env: E2E_KEY_A, weight: 1000}, {name: b, env: E2E_KEY_B, weight: 0.001}]}\n", at,
					served(upstream, format))
			}
			m.targets = append(m.targets, modelTarget{at, r.target(i), t.Window, t.Prefill})
		}
		models = append(models, m)
	}
	b.WriteString("models:\n")
	for _, m := range models {
		fmt.Fprintf(&b, "  %q:\n    targets:\n", m.name)
		for _, t := range m.targets {
			fmt.Fprintf(&b, "      - {upstream: %q, model: %q", t.upstream, t.model)
			if t.window > 0 {
				fmt.Fprintf(&b, ", window: %d", t.window)
			}
			if t.prefill != "" {
				fmt.Fprintf(&b, ", prefill: %s", t.prefill)
			}
			b.WriteString("}\n")
		}
	}
	return b.String()
}

// on names the upstream of a format: one of /v1/messages serves nothing else.
func on(name string, f Format) string {
	if f == Messages {
		return "messages-" + name
	}
	return name
}

// served is an upstream's address in the words of a format, whose clients add /v1 themselves
// or do not.
func served(url string, f Format) string {
	if f == Messages {
		return fmt.Sprintf("format: anthropic, url: %q", strings.TrimSuffix(url, "/v1"))
	}
	return fmt.Sprintf("url: %q", url)
}

// model is one entry of the configuration's models.
type model struct {
	name    string
	targets []modelTarget
}

type modelTarget struct {
	upstream, model string
	window          int
	prefill         string
}

// startGateway starts the program with a configuration and waits until it is ready.
func startGateway(t tree, binary, name, listen, config string) (*Gateway, error) {
	file := t.cached("logs", name+".yaml")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		return nil, err
	}
	out, err := os.Create(t.cached("logs", name+".log"))
	if err != nil {
		return nil, err
	}
	defer out.Close() // the process has it, too
	g := &Gateway{URL: "http://" + listen, done: make(chan error, 1), log: out.Name()}
	g.cmd = exec.Command(binary, "serve", "--config", file)
	g.cmd.Dir = filepath.Dir(binary)
	g.cmd.Stdout, g.cmd.Stderr = out, out
	g.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "E2E_KEY_A=" + KeyA, "E2E_KEY_B=" + KeyB}
	if err := g.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the gateway: %w", err)
	}
	go func() { g.done <- g.cmd.Wait() }()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.URL+"/readyz", nil)
		if err != nil {
			return nil, err
		}
		if res, err := http.DefaultClient.Do(req); err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return g, nil
			}
		}
		select {
		case err := <-g.done:
			g.done <- err
			said, _ := os.ReadFile(g.log)
			return nil, fmt.Errorf("the gateway ended at once (%v):\n%.3000s", err, said)
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("the gateway was not ready in time, see %s", g.log), g.Stop())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Stop ends the program as an operator would; anything but exit code 0 within
// a few seconds is an error.
func (g *Gateway) Stop() error {
	if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stopping the gateway: %w", errors.Join(err, <-g.done))
	}
	select {
	case err := <-g.done:
		if err != nil {
			return fmt.Errorf("the gateway ended badly (%w), see %s", err, g.log)
		}
		return nil
	case <-time.After(10 * time.Second):
		_ = g.cmd.Process.Kill()
		return fmt.Errorf("the gateway was still there 10 s after SIGTERM with nothing to do, see %s", g.log)
	}
}
