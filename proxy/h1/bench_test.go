package h1_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rebound-llm/rebound/proxy/h1"
)

// benchServer is set in the environment of a copy of this binary that serves
// the benchmarks, so that the CPU time measured here is the client's alone.
const benchServer = "H1_BENCH_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(benchServer) != "" {
		serveBenchmarks()
		return
	}
	goleak.VerifyTestMain(m)
}

const benchHead = "HTTP/1.1 200 OK\r\nDate: Fri, 20 Nov 2026 12:00:00 GMT\r\nContent-Type: %s\r\nopenai-processing-ms: 312\r\n" +
	"x-request-id: req_0123456789abcdef\r\nx-ratelimit-remaining-requests: 4999\r\nx-ratelimit-remaining-tokens: 159976\r\n"

// serveBenchmarks answers "/json/N" with N bytes and "/stream/N" with N events, until its input ends.
func serveBenchmarks() {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	ts := httptest.NewUnstartedServer(nil) // for its certificate
	ts.StartTLS()
	tln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: ts.TLS.Certificates})
	if err != nil {
		panic(err)
	}
	fmt.Println(ln.Addr(), tln.Addr())
	for _, l := range []net.Listener{ln, tln} {
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go serveBenchmark(c)
			}
		}()
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func serveBenchmark(c net.Conn) {
	defer c.Close()
	br := bufio.NewReaderSize(c, 64<<10)
	var out []byte
	for {
		var path string
		length := 0
		for {
			l, err := br.ReadSlice('\n')
			if err != nil {
				return
			}
			if len(l) == 2 {
				break
			}
			if path == "" {
				path = strings.Fields(string(l))[1]
			} else if v, ok := bytes.CutPrefix(l, []byte("Content-Length: ")); ok {
				length, _ = strconv.Atoi(string(bytes.TrimSpace(v)))
			}
		}
		if _, err := br.Discard(length); err != nil {
			return
		}
		kind, size, _ := strings.Cut(path[1:], "/")
		n, _ := strconv.Atoi(size)
		out = out[:0]
		if kind == "json" {
			out = fmt.Appendf(out, benchHead+"Content-Length: %d\r\n\r\n", "application/json", n)
			out = append(out, bytes.Repeat([]byte{'x'}, n)...)
			if _, err := c.Write(out); err != nil {
				return
			}
			continue
		}
		out = fmt.Appendf(out, benchHead+"Transfer-Encoding: chunked\r\n\r\n", "text/event-stream")
		event := "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word\"}}]}\n\n"
		for range n {
			out = fmt.Appendf(out, "%x\r\n%s\r\n", len(event), event)
			if _, err := c.Write(out); err != nil {
				return
			}
			out = out[:0]
			time.Sleep(time.Millisecond)
		}
		if _, err := c.Write([]byte("0\r\n\r\n")); err != nil {
			return
		}
	}
}

// startBenchServer returns the addresses of the plain and of the TLS listener.
func startBenchServer(b *testing.B) (plain, secure string) {
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), benchServer+"=1", "GOMAXPROCS=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	if _, err := fmt.Fscan(out, &plain, &secure); err != nil {
		b.Fatal(err)
	}
	return plain, secure
}

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkJSON is a request of 1 KB for an answer of 1 KB, 32 at a time.
// Compare cpu-us/op.
func BenchmarkJSON(b *testing.B) {
	plain, secure := startBenchServer(b)
	compare(b, "http://"+plain+"/json/1024", 1<<10, 1)
	b.Run("tls", func(b *testing.B) { compare(b, "https://"+secure+"/json/1024", 1<<10, 1) })
}

// BenchmarkLarge is a request of 100 KB for an answer of 100 KB.
func BenchmarkLarge(b *testing.B) {
	plain, _ := startBenchServer(b)
	compare(b, "http://"+plain+"/json/102400", 100<<10, 1)
}

// BenchmarkStream is a stream of 50 events, a millisecond apart; cpu-us/op is of an event.
func BenchmarkStream(b *testing.B) {
	plain, _ := startBenchServer(b)
	compare(b, "http://"+plain+"/stream/50", 1<<10, 50)
}

func compare(b *testing.B, target string, size, per int) {
	insecure := &tls.Config{InsecureSkipVerify: true}
	own := h1.New(h1.Config{TLS: insecure})
	std := &http.Transport{MaxIdleConnsPerHost: 4096, DisableCompression: true, TLSClientConfig: insecure.Clone()}
	for _, rt := range []struct {
		name string
		http.RoundTripper
	}{{"nethttp", std}, {"h1", own}} {
		b.Run(rt.name, func(b *testing.B) { load(b, rt, target, size, per) })
	}
	own.CloseIdleConnections()
	std.CloseIdleConnections()
}

func load(b *testing.B, rt http.RoundTripper, target string, size, per int) {
	u, err := url.Parse(target)
	if err != nil {
		b.Fatal(err)
	}
	payload := bytes.Repeat([]byte{'y'}, size)
	header := http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json"}, "User-Agent": {"OpenAI/Python 1.99.1"},
		"Authorization": {"Bearer sk-0123456789abcdef0123456789abcdef"}, "X-Stainless-Lang": {"python"}, "X-Stainless-Os": {"Linux"},
	}
	ctx, cancel := context.WithCancel(b.Context()) // as a server's request has
	defer cancel()
	b.ReportAllocs()
	b.SetParallelism(16)
	before := cpu()
	b.RunParallel(func(pb *testing.PB) {
		buf := make([]byte, 32<<10)
		for pb.Next() {
			rctx, done := context.WithCancel(ctx)
			req := (&http.Request{
				Method: http.MethodPost, URL: u, Host: u.Host, Header: header,
				Body: io.NopCloser(bytes.NewReader(payload)), ContentLength: int64(len(payload)),
				GetBody: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(payload)), nil },
			}).WithContext(rctx)
			resp, err := rt.RoundTrip(req)
			if err != nil {
				b.Error(err)
				done()
				return
			}
			for err == nil {
				_, err = resp.Body.Read(buf)
			}
			_ = resp.Body.Close()
			done()
			if err != io.EOF {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64((cpu()-before).Nanoseconds())/1e3/float64(b.N*per), "cpu-us/op")
}
