package proxy_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestAnswersDuringUploads: an upstream may answer a forwarded upload before it has
// read all of it. The answer comes whole, and so does the upload, if it is wanted.
func TestAnswersDuringUploads(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		first, _ := io.CopyN(io.Discard, r.Body, 10)
		switch r.URL.Path {
		case "/v1/audio/refused":
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			fmt.Fprint(w, "too large")
			return
		case "/v1/audio/meanwhile":
			rc := http.NewResponseController(w)
			_ = rc.EnableFullDuplex()
			fmt.Fprint(w, "begun, ")
			_ = rc.Flush()
		}
		rest, err := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, first+rest, " bytes ", err)
	}))
	t.Cleanup(up.Close)
	g := startCalm(t, up.URL, "")
	for _, size := range []int{1 << 10, 100 << 10, 3 << 20} {
		for _, chunked := range []bool{false, true} {
			for path, want := range map[string]string{
				"refused":   "413 too large",
				"meanwhile": fmt.Sprintf("200 begun, %d bytes <nil>", size),
				"whole":     fmt.Sprintf("200 %d bytes <nil>", size),
			} {
				t.Run(fmt.Sprintf("%s %d chunked=%v", path, size, chunked), func(t *testing.T) {
					var all sync.WaitGroup
					for range 20 {
						all.Go(func() {
							var body io.Reader = bytes.NewReader(make([]byte, size))
							if chunked {
								body = io.MultiReader(body)
							}
							if got := posted(g.url+"/v1/audio/"+path, body); got != want {
								t.Errorf("got %q, want %q", got, want)
							}
						})
					}
					all.Wait()
				})
			}
		}
	}
}

// On HTTP/2 such an answer ends its own stream only: others go on on the connection.
func TestAnswersDuringUploadsHTTP2(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		fmt.Fprint(w, "too large")
	}))
	t.Cleanup(up.Close)
	g := startCalm(t, up.URL, "")
	two := &http.Transport{Protocols: new(http.Protocols)}
	two.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(two.CloseIdleConnections)
	for again := range 2 {
		body, more := io.Pipe()
		go func() { _, _ = more.Write(make([]byte, 100)) }()
		reused := false
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { reused = i.Reused }})
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, g.url+"/v1/audio/refused", body)
		req.Header.Set("Content-Type", "multipart/form-data; boundary=x")
		begun := time.Now()
		resp, err := two.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		_, _ = resp.Body.Close(), more.Close()
		if d := time.Since(begun); string(text) != "too large" || err != nil || d > time.Second || reused != (again > 0) {
			t.Errorf("%q, %v after %v, on a used connection: %t", text, err, d, reused)
		}
	}
}

// posted is the status and the body of the answer to an upload, or what went wrong.
func posted(url string, body io.Reader) string {
	resp, err := http.Post(url, "multipart/form-data; boundary=x", body)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Sprintf("%d %s and %v", resp.StatusCode, text, err)
	}
	return fmt.Sprintf("%d %s", resp.StatusCode, text)
}

// TestHalfClosedClient: a client that closes its sending side counts as gone. It must never read the end of an answer
// that no upstream gave.
func TestHalfClosedClient(t *testing.T) {
	asked := make(chan struct{}, 1)
	up := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(up.Close)
	g := startCalm(t, up.URL, "")
	for _, path := range []string{"chat/completions", "responses", "messages", "embeddings", "completions"} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(g.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		const body = `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Hello."}],"input":"Hello."}`
		fmt.Fprintf(conn, "POST /v1/%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
		<-asked
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(conn) // a reset is as good as an end
		if len(got) > 0 {
			t.Errorf("%s: the client got %q", path, got)
		}
		_ = conn.Close()
	}
}
