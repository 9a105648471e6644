package app_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

// dial connects to a gateway; the connection ends with the test.
func dial(t *testing.T, g *gateway) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", g.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return c
}

// refusedWith reads one answer and returns its status and its error code.
func refusedWith(t *testing.T, c net.Conn) (int, string) {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var envelope struct{ Error struct{ Type, Code string } }
	if err := json.NewDecoder(resp.Body).Decode(&envelope); err != nil || envelope.Error.Type != "rebound_error" {
		t.Errorf("%d: not an error envelope: %v", resp.StatusCode, err)
	}
	return resp.StatusCode, envelope.Error.Code
}

// A client that has sent half of its request does not delay a stop, and gets an error with the reason.
func TestHalfSentBodiesDoNotDelayAStop(t *testing.T) {
	t.Parallel()
	up := upstreamtest.New(upstreamtest.Options{}).Start(t)
	g := launch(t, strings.Replace(text(up), "drain: 5s", "drain: 1m", 1))
	var conns []net.Conn
	for _, begin := range []string{
		"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
		"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
		"POST /v1/files HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\nContent-Length: 100\r\n\r\nx",
	} {
		c := dial(t, g)
		fmt.Fprint(c, begin)
		conns = append(conns, c)
	}
	silent, head := dial(t, g), dial(t, g)
	fmt.Fprint(head, "POST /v1/chat/completions HT")
	eventually(t, 10*time.Second, "all bodies are being read", func() bool { return reading() >= len(conns) })
	begun := time.Now()
	if err := g.stop(); err != nil {
		t.Error(err)
	}
	if d := time.Since(begun); d > 4*time.Second {
		t.Errorf("the stop took %v", d)
	}
	for _, c := range conns {
		if status, code := refusedWith(t, c); status != http.StatusServiceUnavailable || code != "draining" {
			t.Errorf("%d %s", status, code)
		}
	}
	for _, c := range []net.Conn{silent, head} {
		if _, err := io.ReadAll(c); err != nil && os.IsTimeout(err) {
			t.Error("a connection without a request is still open")
		}
	}
}

// A broken request body is the client's error, also if the body is streamed to the upstream.
func TestBrokenBodiesAreTheClients(t *testing.T) {
	t.Parallel()
	up := upstreamtest.New(upstreamtest.Options{}).Start(t)
	g := launch(t, text(up, "limits: {body_timeout: 200ms}"))
	for _, tt := range []struct {
		name, body string
		end        bool
		status     int
		code       string
	}{
		{"malformed", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n", false, 400, "incomplete_body"},
		{"cut", "Content-Length: 10\r\n\r\nhello", true, 400, "incomplete_body"},
		{"slow", "Content-Length: 10\r\n\r\nhello", false, 408, "slow_body"},
	} {
		for _, kind := range []string{"application/octet-stream", "application/json"} {
			t.Run(tt.name+" "+kind, func(t *testing.T) {
				c := dial(t, g)
				fmt.Fprintf(c, "POST /v1/files HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\n%s", kind, tt.body)
				if tt.end {
					_ = c.(*net.TCPConn).CloseWrite()
				}
				if status, code := refusedWith(t, c); status != tt.status || code != tt.code {
					t.Errorf("%d %s", status, code)
				}
			})
		}
	}
}

// Memory is counted for received bytes, not for an announced Content-Length.
func TestAnnouncedBodiesTakeNoMemory(t *testing.T) {
	const clients = 200
	up := upstreamtest.New(upstreamtest.Options{}).Start(t)
	g := launch(t, text(up))
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	for range clients {
		fmt.Fprint(dial(t, g), "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 60000000\r\n\r\n{")
	}
	eventually(t, 20*time.Second, "all bodies are being read", func() bool { return reading() >= clients })
	if each := (heap() - before) / clients; each > 128<<10 {
		t.Errorf("each takes %d KB", each>>10)
	}
}

// reading returns the number of goroutines of this process that read a request body.
func reading() int {
	buf := make([]byte, 8<<20)
	return strings.Count(string(buf[:runtime.Stack(buf, true)]), "proxy.(*upload).Read(")
}

// A client that reads nothing of its answer is disconnected, and its upstream request cancelled, over
// HTTP/1.1 and HTTP/2. The time limit can change while the gateway runs.
func TestStalledReaders(t *testing.T) {
	t.Parallel()
	const endless = "endless@big=20000000,chunks=200"
	w := watch(t, "limits: {write_stall: 1h}")
	ask := func(version int) {
		c := dial(t, w.gateway)
		_ = c.SetDeadline(time.Time{}) // the client never gives up
		if version == 1 {
			body := chat(endless, true, "")
			fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
			return
		}
		tr := cleartext2()
		tr.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10}
		tr.DialContext = func(context.Context, string, string) (net.Conn, error) { return c, nil }
		resp, err := (&http.Client{Transport: tr}).Post(w.url+"/v1/chat/completions", "application/json", strings.NewReader(chat(endless, true, "")))
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { _ = resp.Body.Close() }) // never read
	}
	active := func() int { return int(w.up.Stats().Active) }
	// One change may be loaded twice, so that the number of reloads does not tell which limit is in force.
	limit := func(stall string) {
		w.put(t, text(w.up, "limits: {write_stall: "+stall+"}", modelMap("m", "default in-"+stall)))
		w.hup <- syscall.SIGHUP
		eventually(t, time.Minute, "the reload", func() bool { return w.must(chat("m", false, "")).target() == "default/in-"+stall })
	}
	for version := 1; version <= 2; version++ {
		ask(version)
		eventually(t, time.Minute, "the answer is under way", func() bool { return active() == version })
		limit("300ms")
		ask(version)
		eventually(t, time.Minute, "the second answer is under way", func() bool { return count(w.up, endless) >= 2*version })
		// The first one stays: its reader may take an hour.
		eventually(t, time.Minute, "only the second answer is given up", func() bool { return active() == version })
		limit("1h")
	}
}

// cleartext2 returns a transport for HTTP/2 without TLS, as proxies use it.
func cleartext2() *http.Transport {
	tr := &http.Transport{Protocols: new(http.Protocols)}
	tr.Protocols.SetUnencryptedHTTP2(true)
	return tr
}

// HTTP/2 without TLS: answers, streams, errors, and a client that leaves.
func TestCleartextHTTP2(t *testing.T) {
	t.Parallel()
	up := upstreamtest.New(upstreamtest.Options{}).Start(t)
	g := launch(t, text(up))
	tr := cleartext2()
	defer tr.CloseIdleConnections()
	g.client = &http.Client{Transport: tr}
	for _, stream := range []bool{false, true} {
		resp, err := g.open(t.Context(), chat("m", stream, ""))
		if err != nil {
			t.Fatal(err)
		}
		if r := read(resp); !r.ok() || resp.ProtoMajor != 2 || r.target() != "default/m" {
			t.Errorf("HTTP/%d: %v", resp.ProtoMajor, r)
		}
	}
	if r := g.ask(t.Context(), `{"model":1}`); r.status != 400 || !strings.Contains(string(r.body), `"rebound_error"`) {
		t.Errorf("%v", r)
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	resp, err := g.open(ctx, chat("slow@gap=50ms,chunks=1000", true, ""))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	leave()
	eventually(t, 20*time.Second, "the upstream is rid of the request", func() bool { return up.Stats().Active == 0 })
}

// The limit for stalled readers does not end an answer whose upstream is slow.
func TestSlowAnswersAreNoStalledReaders(t *testing.T) {
	t.Parallel()
	up := upstreamtest.New(upstreamtest.Options{}).Start(t)
	config := strings.Replace(text(up, "limits: {write_stall: 1s}"), "idle: 500ms, idle_pinged: 2s", "idle: 20s, idle_pinged: 20s", 1)
	g := launch(t, strings.Replace(config, "min: 1s", "min: 20s", 1))
	two := cleartext2()
	defer two.CloseIdleConnections()
	var clients sync.WaitGroup
	for _, client := range []*http.Client{g.client, {Transport: two}} {
		for _, stream := range []bool{false, true} {
			with := *g
			with.client = client
			clients.Go(func() {
				if r := with.ask(t.Context(), chat("late@first=2s,gap=1500ms,chunks=3", stream, "")); !r.ok() {
					t.Error(r)
				}
			})
		}
	}
	clients.Wait()
}

// certify writes a certificate for 127.0.0.1 and its key into a folder, and returns a pool that trusts it.
func certify(t *testing.T, dir string, serial int64) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"tls.pem": {Type: "CERTIFICATE", Bytes: der}, "tls.key": {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool.AddCert(cert)
	return pool
}

// With a certificate, clients use TLS, and HTTP/2 if they support it. A renewed certificate is used without
// a restart, and running requests are not affected.
func TestTLSAndRenewal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := certify(t, dir, 1)
	w := watch(t, fmt.Sprintf("tls: {cert: %q, key: %q}", filepath.Join(dir, "tls.pem"), filepath.Join(dir, "tls.key")))
	w.url = strings.Replace(w.url, "http:", "https:", 1)
	trusting := func(pool *x509.CertPool, http2 bool) *http.Client {
		tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: http2}
		t.Cleanup(tr.CloseIdleConnections)
		return &http.Client{Transport: tr}
	}
	for _, http2 := range []bool{false, true} {
		w.client = trusting(first, http2)
		resp, err := w.open(t.Context(), chat("m", true, ""))
		if err != nil {
			t.Fatal(err)
		}
		if r := read(resp); !r.ok() || (resp.ProtoMajor == 2) != http2 {
			t.Errorf("%s: %v", resp.Proto, r)
		}
	}
	slow, err := w.open(t.Context(), chat("slow@gap=50ms,chunks=40", true, ""))
	if err != nil {
		t.Fatal(err)
	}
	second := certify(t, dir, 2)
	w.client = trusting(second, true)
	eventually(t, 20*time.Second, "the renewed certificate is used", func() bool { return w.ask(t.Context(), chat("m", false, "")).ok() })
	if r := read(slow); !r.ok() {
		t.Errorf("a stream over the renewal: %v", r)
	}
	if err := os.WriteFile(filepath.Join(dir, "tls.pem"), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, "a broken certificate is reported", func() bool { return w.logged(t, refused) > 0 })
	w.client = trusting(second, false)
	w.must(chat("m", false, ""))
}
