package agents

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Exchange is one request as a client sent it, and the answer as it got it.
type Exchange struct {
	Path     string
	Request  []byte
	Status   int
	Header   http.Header
	Response []byte
	Reads    []Read
	Broken   error // how the answer's connection broke, nil for an answer that came to its end
}

// responses reports whether the format is that of /v1/responses.
func (x *Exchange) responses() bool { return strings.HasSuffix(x.Path, "/responses") }

// messages reports whether the format is that of /v1/messages.
func (x *Exchange) messages() bool { return strings.HasSuffix(x.Path, "/messages") }

// Read is how much of an answer was there at a time.
type Read struct {
	At  time.Time
	Len int
}

// Tap stands between clients and the gateway and changes nothing. It is safe
// for concurrent use.
type Tap struct {
	server *http.Server
	listen net.Listener

	mu    sync.Mutex
	model map[string][]*Exchange
}

// NewTap starts a tap before the server at target (scheme and host).
func NewTap(target string) (*Tap, error) {
	to, err := url.Parse(target)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	t := &Tap{listen: l, model: map[string][]*Exchange{}}
	t.server = &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			return // the client left
		}
		x := t.note(r.URL.Path, body)
		(&httputil.ReverseProxy{
			Rewrite: func(p *httputil.ProxyRequest) {
				p.SetURL(to)
				p.Out.Body = io.NopCloser(bytes.NewReader(body))
				p.Out.ContentLength = int64(len(body))
				p.Out.Header.Del("Accept-Encoding") // bodies are compared
			},
			FlushInterval: -1,
			ErrorLog:      log.New(io.Discard, "", 0), // Broken has it
			ModifyResponse: func(res *http.Response) error {
				t.mu.Lock()
				defer t.mu.Unlock()
				x.Status, x.Header = res.StatusCode, res.Header.Clone()
				res.Body = &tee{ReadCloser: res.Body, tap: t, to: x}
				return nil
			},
		}).ServeHTTP(w, r)
	})}
	go func() { _ = t.server.Serve(l) }()
	return t, nil
}

// URL is the base URL for clients.
func (t *Tap) URL() string { return "http://" + t.listen.Addr().String() + "/v1" }

// Close stops the server.
func (t *Tap) Close() error { return t.server.Close() }

// Exchanges are the requests for a model, in order of arrival.
func (t *Tap) Exchanges(model string) (out []Exchange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, x := range t.model[model] {
		e := *x
		e.Response, e.Reads = bytes.Clone(x.Response), slices.Clone(x.Reads)
		out = append(out, e)
	}
	return out
}

func (t *Tap) note(path string, body []byte) *Exchange {
	model, x := modelOf(body), &Exchange{Path: path, Request: body}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.model[model] = append(t.model[model], x)
	return x
}

// tee keeps what is read.
type tee struct {
	io.ReadCloser
	tap *Tap
	to  *Exchange
}

func (t *tee) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	t.tap.mu.Lock()
	defer t.tap.mu.Unlock()
	t.to.Response = append(t.to.Response, p[:n]...)
	t.to.Reads = append(t.to.Reads, Read{time.Now(), len(t.to.Response)})
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, context.Canceled) {
		t.to.Broken = err
	}
	return n, err
}
