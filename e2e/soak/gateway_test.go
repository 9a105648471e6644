//go:build linux

package soak_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

// settings keep waits short, and memory from growing with the sessions of a day. The
// drain is longer than a request may take: a slow machine loses no answer by it.
// UP, LOOSE and TLS are the upstreams, STORE is the store, %d changes with every reload.
const settings = `
drain: 90s
upstreams:
  default: {url: "UP/v1", passthrough: true, profile: hosted, prefill: assistant}
  keyed: {url: "UP/v1", profile: hosted, prefill: assistant, keys: [{name: a, env: KEY_A}, {name: b, env: KEY_B}]}
  loose: {url: "LOOSE/v1", profile: hosted, prefill: assistant, keys: [{name: a, env: KEY_A}]}
  secure: {url: "TLS/v1", profile: hosted, ca_file: "CA", keys: [{name: a, env: KEY_A}]}
models:
  talk: {targets: [{upstream: keyed, model: talk-1}, {upstream: secure, model: talk-2}, {upstream: keyed, model: talk-3}]}
  long: {targets: [{upstream: secure, model: long-1}, {upstream: keyed, model: long-2}]}
  fill: {targets: [{upstream: keyed, model: fill-1, window: 30000}]}
  loose: {targets: [{upstream: loose, model: loose-1}, {upstream: keyed, model: loose-2}]}
learn: {fact_ttl: 1m, first_token: {min: 2s, whole: 2s, per_tokens: 1000000, same_after: 3s, reasoning: 4s}}
stream: {idle: 1500ms, idle_pinged: 4s}
recovery: {deadline: 60s, patience: 3s, backoff_min: 50ms, backoff_max: 500ms, rate_limit_wait: 100ms, wait_same: 1s, wait_max: 20s, parallel: {burst: 1000000}}
breaker: {open: 1s, open_max: 2s, cooldown: 100ms, failures: %d}
fit: {ttl: 1m, min_tokens: 2000}
STORE
`

// gateway is one process of the program under test, and those that replace it.
type gateway struct {
	name    string
	program string
	file    string // its configuration
	log     string
	in      atomic.Bool // whether it gets requests
	port    atomic.Int32
	env     []string // beside the upstreams' keys
	rolled  bool     // whether it is replaced now and then: its memory begins anew each time

	heap float64 // as the last sample has it

	mu    sync.Mutex
	cmd   *exec.Cmd // nil while there is none
	ended chan error
}

// URL is where it listens now.
func (g *gateway) URL() string { return "http://127.0.0.1:" + strconv.Itoa(int(g.port.Load())) }

// configure writes the configuration for the n-th time.
func (g *gateway) configure(text string, n int) error {
	next := g.file + ".next"
	if err := os.WriteFile(next, fmt.Appendf(nil, text, 5+n%2), 0o600); err != nil {
		return err
	}
	return os.Rename(next, g.file)
}

// start starts the program and waits until it is ready.
func (g *gateway) start() error {
	addr, err := upstreamtest.FreeAddr()
	if err != nil {
		return err
	}
	g.port.Store(int32(netip.MustParseAddrPort(addr).Port()))
	log, err := os.OpenFile(g.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(g.program, "serve", "--config", g.file, "--listen", strings.TrimPrefix(g.URL(), "http://"))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append([]string{"KEY_A=sk-soak-aaaaaaaa", "KEY_B=sk-soak-bbbbbbbb", "GODEBUG=gctrace=1"}, g.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	g.mu.Lock()
	g.cmd, g.ended = cmd, ended
	g.mu.Unlock()
	for end := time.Now().Add(20 * time.Second); ; {
		if _, err := get(g.URL() + "/readyz"); err == nil {
			break
		}
		select {
		case err := <-ended:
			ended <- err
			return fmt.Errorf("%s ended at once: %v\n%s", g.name, err, g.lastWords())
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s is not ready", g.name)
		}
	}
	g.in.Store(true)
	return nil
}

// stop takes the gateway out, and ends it as an operator would: everything that
// it has begun is answered.
func (g *gateway) stop() error {
	g.in.Store(false)
	g.mu.Lock()
	cmd, ended := g.cmd, g.ended
	g.cmd = nil
	g.mu.Unlock()
	if cmd == nil {
		return nil
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("%s: %w\n%s", g.name, err, g.lastWords())
	}
	select {
	case err := <-ended:
		if err != nil {
			return fmt.Errorf("%s ended with %w\n%s", g.name, err, g.lastWords())
		}
		return nil
	case <-time.After(2 * time.Minute):
		_ = cmd.Process.Kill()
		return fmt.Errorf("%s was still there after two minutes", g.name)
	}
}

// reload lets the gateway read its configuration again.
func (g *gateway) reload() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cmd != nil && g.in.Load() {
		_ = g.cmd.Process.Signal(syscall.SIGHUP)
	}
}

// pid is the process; 0 while there is none.
func (g *gateway) pid() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cmd == nil {
		return 0
	}
	return g.cmd.Process.Pid
}

// lastWords is the end of the log.
func (g *gateway) lastWords() string {
	b, _ := os.ReadFile(g.log)
	return string(b[max(0, len(b)-3000):])
}

// leg is some gateways with a store.
type leg struct {
	name  string
	store string // as in the configuration
	gates []*gateway
}

// one is a gateway that gets requests; the first if none does.
func (l *leg) one(r *rand.Rand) *gateway {
	at := r.IntN(len(l.gates))
	for i := range l.gates {
		if g := l.gates[(at+i)%len(l.gates)]; g.in.Load() {
			return g
		}
	}
	return l.gates[0]
}

func get(url string) (string, error) {
	res, err := (&http.Client{Timeout: 5 * time.Second}).Get(url)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, res.Status)
	}
	return string(b), err
}

// sample is what a process holds at one time.
type sample struct {
	rss, heap   float64 // MiB; the heap is what lived after the last collection
	goroutines  float64
	descriptors float64
}

var (
	routines  = regexp.MustCompile(`(?m)^go_goroutines (\d+)`)
	resident  = regexp.MustCompile(`(?m)^VmRSS:\s*(\d+) kB`)
	collected = regexp.MustCompile(`(?m)^gc \d+ @.*->(\d+) MB, \d+ MB goal`)
)

// sample looks at the process; false if there is none. One goroutine calls it.
func (g *gateway) sample() (s sample, ok bool) {
	pid := g.pid()
	if pid == 0 || !g.in.Load() {
		return s, false
	}
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		return s, false
	}
	open, err := os.ReadDir(dir + "/fd")
	if err != nil {
		return s, false
	}
	metrics, err := get(g.URL() + "/metrics")
	if err != nil {
		return s, false
	}
	log, err := tail(g.log, 64<<10)
	if err != nil {
		return s, false
	}
	s.rss = number(resident, status) / 1024
	s.goroutines = number(routines, []byte(metrics))
	if heap := number(collected, log); heap > 0 {
		g.heap = heap
	}
	s.heap = g.heap
	s.descriptors = float64(len(open))
	return s, true
}

// number is the last one that an expression finds.
func number(re *regexp.Regexp, in []byte) float64 {
	found := re.FindAllSubmatch(in, -1)
	if len(found) == 0 {
		return 0
	}
	n, _ := strconv.ParseFloat(string(found[len(found)-1][1]), 64)
	return n
}

// tail is the end of a file.
func tail(name string, n int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-n), n))
}

// troubles are the lines of a log that tell of a defect.
func (g *gateway) troubles() (lines []string) {
	b, err := os.ReadFile(g.log)
	if err != nil {
		return []string{err.Error()}
	}
	for line := range bytes.Lines(b) {
		if bytes.Contains(line, []byte("panic")) || bytes.Contains(line, []byte("fatal error")) || bytes.Contains(line, []byte(`"level":"ERROR"`)) {
			lines = append(lines, string(bytes.TrimSpace(line)))
		}
	}
	return lines
}
