//go:build unix

package storetest

import (
	"bufio"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// RedisEnv names the environment variable with the URL of a server that tests
// use instead of starting one.
const RedisEnv = "REBOUND_TEST_REDIS"

// Redis returns the URL of a server: that of REBOUND_TEST_REDIS, which other tests
// share, or a new one. Use it with Prefix.
func Redis(t testing.TB) (url string) {
	t.Helper()
	if url := os.Getenv(RedisEnv); url != "" {
		return url
	}
	return StartRedis(t).URL()
}

// Prefix returns a key prefix that no other test uses.
func Prefix(t testing.TB) string {
	t.Helper()
	b := make([]byte, 8)
	if _, err := rand.Read(b); err != nil {
		t.Fatal(err)
	}
	return "test-" + hex.EncodeToString(b) + ":"
}

// Server is a redis-server process of a test. Its methods are for the test's goroutine.
type Server struct {
	t        testing.TB
	dir      string
	port     int
	args     []string
	sentinel bool
	secure   *tls.Config // for the connections of Command; nil without TLS
	login    []string    // the AUTH command of Command; empty without a user

	cmd *exec.Cmd // nil after Kill
}

// StartRedis starts a server on a free loopback port, without persistence, and
// kills it when the test ends. args are further options of redis-server.
func StartRedis(t testing.TB, args ...string) *Server {
	t.Helper()
	s := newServer(t)
	s.args = append([]string{"--port", strconv.Itoa(s.port)}, args...)
	s.Restart()
	return s
}

func newServer(t testing.TB) *Server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Fatal("redis-server is not installed: make test installs it (Debian: apt-get install redis-server), or set " + RedisEnv)
	}
	s := &Server{t: t, dir: t.TempDir(), port: freePort(t)}
	t.Cleanup(s.Kill)
	return s
}

// freePort returns a port that was free a moment ago. It is below the kernel's
// range for outgoing connections, so that those of other tests do not take the
// port of a server that will be restarted.
func freePort(t testing.TB) int {
	t.Helper()
	b := make([]byte, 2)
	for range 200 {
		if _, err := rand.Read(b); err != nil {
			t.Fatal(err)
		}
		port := 10000 + (int(b[0])<<8+int(b[1]))%22000
		l, err := net.Listen("tcp", addr(port))
		if err != nil {
			continue
		}
		l.Close()
		return port
	}
	t.Fatal("no free port")
	return 0
}

func addr(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// Addr returns the host:port of the server.
func (s *Server) Addr() string { return addr(s.port) }

// URL returns the redis:// URL of the server.
func (s *Server) URL() string { return "redis://" + s.Addr() + "/0" }

// Restart kills the server if it runs and starts it again, empty, on the same port.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	log := filepath.Join(s.dir, "log")
	args := append([]string{}, s.args...)
	if s.sentinel {
		args = append(args, "--sentinel")
	} else {
		args = append(args, "--save", "", "--appendonly", "no")
	}
	args = append(args, "--bind", "127.0.0.1", "--dir", s.dir, "--logfile", log, "--daemonize", "no")
	cmd := exec.Command("redis-server", args...)
	killWithTest(cmd)
	if err := cmd.Start(); err != nil {
		s.t.Fatalf("starting redis-server: %v", err)
	}
	s.cmd = cmd
	end := time.Now().Add(20 * time.Second)
	for {
		answer, err := s.Command("PING")
		if err == nil && answer == "PONG" {
			return
		}
		if time.Now().After(end) {
			text, _ := os.ReadFile(log)
			s.t.Fatalf("redis-server on %s does not answer: %q, %v\n%s", s.Addr(), answer, err, text)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// Kill kills the server, which loses everything. It may be called again.
func (s *Server) Kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	s.cmd = nil
}

// Pause stops the server with SIGSTOP: connections stay open, the kernel accepts
// new ones, and nothing is answered.
func (s *Server) Pause() { s.signal(syscall.SIGSTOP) }

// Resume continues a paused server, which then answers the waiting commands.
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	s.t.Helper()
	if s.cmd == nil {
		s.t.Fatal("the server is not running")
	}
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// Command sends a command and returns the first line of the reply, or the content
// of a bulk string. An error reply is an error. Tests use it to write what no
// store writes.
func (s *Server) Command(args ...string) (string, error) {
	conn, err := net.DialTimeout("tcp", s.Addr(), time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", err
	}
	if s.secure != nil {
		conn = tls.Client(conn, s.secure)
	}
	r := bufio.NewReader(conn)
	if len(s.login) > 0 {
		if _, err := roundTrip(conn, r, s.login); err != nil {
			return "", err
		}
	}
	return roundTrip(conn, r, args)
}

// Do is Command for a command whose failure ends the test.
func (s *Server) Do(args ...string) string {
	s.t.Helper()
	answer, err := s.Command(args...)
	if err != nil {
		s.t.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
	return answer
}

func roundTrip(conn net.Conn, r *bufio.Reader, args []string) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := conn.Write([]byte(b.String())); err != nil {
		return "", err
	}
	line, err := r.ReadString('\n')
	line = strings.TrimRight(line, "\r\n")
	switch {
	case err != nil:
		return "", err
	case strings.HasPrefix(line, "-"):
		return "", fmt.Errorf("the server says %s", line[1:])
	case strings.HasPrefix(line, "$") && line != "$-1":
		n, err := strconv.Atoi(line[1:])
		if err != nil {
			return "", err
		}
		text := make([]byte, n)
		for read := 0; read < n; {
			k, err := r.Read(text[read:])
			if err != nil {
				return "", err
			}
			read += k
		}
		return string(text), nil
	}
	return strings.TrimLeft(line, "+:"), nil
}
