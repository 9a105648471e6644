package proxy_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Only a direct request from this machine is local: one header of a proxy is
// enough, whatever its value and however many there are.
func TestAdminLocal(t *testing.T) {
	g := start(t, "")
	for _, c := range []struct {
		headers string
		status  int
	}{
		{"", 200},
		{"X-Prometheus-Scrape-Timeout-Seconds: 10\r\nSec-Fetch-Site: none\r\n", 200},
		{"X-Forwarded-For:\r\n", 403},
		{"X-Forwarded-For:\r\nX-Forwarded-For: 203.0.113.1\r\n", 403},
		{"Forwarded:\r\n", 403},
		{"X-Real-IP: 127.0.0.1\r\n", 403},
		{"Via: 1.1 proxy\r\n", 403},
		{"X-Forwarded-Host: localhost\r\n", 403},
		{"X-Whatever-A-Proxy-Says: 1\r\n", 403},
		{"Cf-Connecting-Ip: 1\r\n", 403},
		{"Host: gateway.example\r\n", 403},
		{"Origin: http://evil.example\r\n", 403},
		{"Sec-Fetch-Site: same-site\r\n", 403},
	} {
		if status, answer := g.send("GET /metrics", c.headers, ""); status != c.status {
			t.Errorf("%q: %d %.200s", c.headers, status, answer)
		}
	}
	if status, _ := g.raw("GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n"); status != 403 {
		t.Errorf("HTTP/1.0: %d", status)
	}
	closed := start(t, "auth: {admin_local: false, admin_env: KEY_A}\n")
	if status, _ := closed.send("GET /metrics", "", ""); status != 403 {
		t.Errorf("admin_local false: %d", status)
	}
	if status, _ := closed.send("GET /metrics", "X-Forwarded-For: 1\r\nAuthorization: Bearer sk-key-aaaaaaaaaaaa\r\n", ""); status != 200 {
		t.Errorf("with the token: %d", status)
	}
}

// Behind real proxies on the same machine, with their usual settings, nobody is
// taken for a local one, whatever headers are sent.
func TestAdminBehindProxies(t *testing.T) {
	g := start(t, "")
	to := strings.TrimPrefix(g.url, "http://")
	dir := t.TempDir()
	nginx := func(more string) string {
		return fmt.Sprintf("daemon off; pid %[1]s/pid; error_log stderr;\nevents {}\nhttp { access_log off; client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;\n"+
			"server { listen LISTEN; location / { proxy_pass http://%[2]s; %[3]s } } }\n", dir, to, more)
	}
	for _, c := range []struct{ name, program, config string }{
		{"nginx, bare", "nginx", nginx("")},
		{"nginx, usual headers", "nginx", nginx("proxy_http_version 1.1; proxy_set_header Host $host; proxy_set_header X-Real-IP $remote_addr; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;")},
		{"haproxy, forwardfor", "haproxy", "defaults\n  mode http\n  timeout connect 2s\n  timeout client 9s\n  timeout server 9s\n  option forwardfor\nlisten l\n  bind LISTEN\n  server s " + to + "\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path, err := exec.LookPath(c.program)
			if err != nil && os.Getenv("CI") != "" {
				t.Fatal(c.program + " is not installed, and what is not tested is not known to hold")
			}
			if err != nil {
				t.Skip(c.program + " is not installed")
			}
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			at := l.Addr().String()
			_ = l.Close()
			file := filepath.Join(t.TempDir(), "conf")
			if err := os.WriteFile(file, []byte(strings.ReplaceAll(c.config, "LISTEN", at)), 0o600); err != nil {
				t.Fatal(err)
			}
			args := []string{"-f", file}
			if c.program == "nginx" {
				args = []string{"-c", file}
			}
			cmd := exec.Command(path, args...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			// A shell's background jobs ignore SIGINT, and so would this program.
			t.Cleanup(func() { _ = cmd.Process.Signal(syscall.SIGTERM); _ = cmd.Wait() })
			p := &gateway{t: t, url: "http://" + at}
			for began := time.Now(); ; {
				if resp, err := http.Get(p.url + "/healthz"); err == nil {
					_ = resp.Body.Close()
					break
				}
				if time.Since(began) > 10*time.Second {
					t.Fatal("it does not come up")
				}
				time.Sleep(20 * time.Millisecond)
			}
			for _, headers := range []string{"", "X-Forwarded-For:\r\n", "Host: 127.0.0.1\r\nX-Forwarded-For:\r\nX-Real-IP:\r\n", "Connection: X-Forwarded-For\r\n", "Forwarded: for=127.0.0.1\r\n"} {
				if status, answer := p.send("GET /metrics", headers, ""); status != 403 {
					t.Errorf("%q: %d %.200s", headers, status, answer)
				}
			}
		})
	}
}
