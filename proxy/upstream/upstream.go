package upstream

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rebound-llm/rebound/proxy/coding"
	"github.com/rebound-llm/rebound/proxy/h1"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Upstream sends requests to one configured upstream. Safe for concurrent use.
type Upstream struct {
	cfg       Config
	base      *url.URL // with modelMark in place of {model}
	transport http.RoundTripper
	extra     http.Header         // headers from the configuration; read only
	forward   []string            // further headers of clients that are sent; read only
	auth      string              // name of the header with the credential
	keys      map[string][]string // its values, by label; read only
	commands  map[string]*command // keys from commands, by label; read only
	prefill   atomic.Value        // recovery.Prefill, once the server was asked
	answered  atomic.Bool         // see Answered
}

// New creates an upstream. It opens no connection.
func New(name string, cfg Config) (*Upstream, error) {
	u, err := url.Parse(strings.ReplaceAll(cfg.base(), "{model}", modelMark))
	if err != nil {
		return nil, fmt.Errorf("upstream %s: %w", name, err)
	}
	t, err := newTransport(cfg)
	if err != nil {
		return nil, fmt.Errorf("upstream %s: %w", name, err)
	}
	up := &Upstream{cfg: cfg, base: u, transport: t, auth: http.CanonicalHeaderKey(cfg.Credential())}
	for _, name := range cfg.ForwardHeaders {
		up.forward = append(up.forward, http.CanonicalHeaderKey(name))
	}
	up.extra = make(http.Header, len(cfg.Headers))
	for k, v := range cfg.Headers {
		up.extra.Set(k, v)
	}
	up.keys = make(map[string][]string, len(cfg.Keys))
	up.commands = map[string]*command{}
	for _, k := range cfg.Keys {
		if up.keys[k.Name] = []string{up.credential(k.Value)}; len(k.Command) > 0 {
			up.commands[k.Name] = &command{name: k.Name, args: k.Command, ttl: k.TTL}
		}
	}
	return up, nil
}

// credential returns a key as the value of the credential's header.
func (u *Upstream) credential(key string) string {
	if u.auth == "Authorization" {
		return "Bearer " + key
	}
	return key
}

// pingIdle is the silence on an HTTP/2 connection before a ping, and pingTimeout the limit for its
// answer.
const (
	pingIdle    = 15 * time.Second
	pingTimeout = 10 * time.Second
)

// newTransport returns the h1 client, or net/http's transport for HTTP/2 or a forward proxy.
func newTransport(cfg Config) (http.RoundTripper, error) {
	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12}
	if cfg.CAFile != "" {
		pem, err := os.ReadFile(cfg.CAFile)
		if err != nil {
			return nil, fmt.Errorf("reading ca_file: %w", err)
		}
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, errors.New("ca_file: holds no certificate")
		}
		tlsConfig.RootCAs = pool
	}
	if cfg.ClientCert != "" {
		cert, err := tls.LoadX509KeyPair(cfg.ClientCert, cfg.ClientKey)
		if err != nil {
			return nil, fmt.Errorf("loading client_cert: %w", err)
		}
		tlsConfig.Certificates = []tls.Certificate{cert}
	}
	proxied := cfg.ForwardProxy()
	if proxied == nil && !cfg.HTTP2 {
		return h1.New(h1.Config{
			DialTimeout: cfg.ConnectTimeout, TLSHandshakeTimeout: cfg.ConnectTimeout, MaxIdlePerHost: cfg.MaxIdleConns, TLS: tlsConfig, DialContext: cfg.DialContext,
		}), nil
	}
	var proxy func(*http.Request) (*url.URL, error)
	if proxied != nil {
		proxy = http.ProxyURL(proxied)
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!cfg.HTTP2 || strings.HasPrefix(cfg.URL, "https:"))
	protocols.SetHTTP2(cfg.HTTP2)
	protocols.SetUnencryptedHTTP2(cfg.HTTP2)
	return &http.Transport{
		Proxy:               proxy,
		Protocols:           protocols,
		DialContext:         h1.NewDialer(cfg.ConnectTimeout).DialContext,
		TLSClientConfig:     tlsConfig,
		TLSHandshakeTimeout: cfg.ConnectTimeout,
		MaxIdleConnsPerHost: cfg.MaxIdleConns,
		IdleConnTimeout:     90 * time.Second,
		DisableCompression:  true,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: pingIdle, PingTimeout: pingTimeout},
	}, nil
}

// API returns the API that it has.
func (u *Upstream) API() transcript.API { return u.cfg.API() }

// OwnKeys reports whether it uses keys of the gateway's own.
func (u *Upstream) OwnKeys() bool { return len(u.cfg.Keys) > 0 }

// Secrets returns its own keys, which no client may read. OnSecret reports changes.
func (u *Upstream) Secrets() []string {
	list := make([]string, len(u.cfg.Keys))
	for i, k := range u.cfg.Keys {
		if list[i] = k.Value; u.commands[k.Name] != nil {
			list[i] = u.commands[k.Name].printed()
		}
	}
	return list
}

// OnSecret sets a function that is called, in any goroutine, after a command has printed a key. It
// must be set before the first request.
func (u *Upstream) OnSecret(changed func()) {
	for _, c := range u.commands {
		c.changed = changed
	}
}

// Spends reports whether the gateway authenticates itself to it, so that clients of the gateway spend
// the operator's money.
func (u *Upstream) Spends() bool { return len(u.cfg.Keys) > 0 || u.cfg.ClientCert != "" }

// AnyKey returns the label of an own key, for calls outside the model map, or "" without one.
func (u *Upstream) AnyKey() string {
	if len(u.cfg.Keys) == 0 {
		return ""
	}
	return u.cfg.Keys[0].Name
}

// Several reports whether it has more than one own key.
func (u *Upstream) Several() bool { return len(u.cfg.Keys) > 1 }

// Has reports whether it has an own key with this label.
func (u *Upstream) Has(label string) bool { _, ok := u.keys[label]; return ok }

// Lean reports whether the transport no longer uses a request's body once the response's body is
// closed, so that its buffer can be reused.
func (u *Upstream) Lean() bool { _, ok := u.transport.(*h1.Transport); return ok }

// Close closes idle connections.
func (u *Upstream) Close() {
	if c, ok := u.transport.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// Local reports whether slow first tokens are normal, as on local servers.
func (u *Upstream) Local() bool { return u.cfg.Local() }

// ServerPrefill returns the value set by SetServerPrefill, or "" before. Safe for concurrent use.
func (u *Upstream) ServerPrefill() recovery.Prefill {
	p, _ := u.prefill.Load().(recovery.Prefill)
	return p
}

// SetServerPrefill records how the server continues an answer.
func (u *Upstream) SetServerPrefill(p recovery.Prefill) { u.prefill.Store(p) }

// Request is one request to an upstream.
type Request struct {
	Method string
	Path   string // below the base, escaped, with a leading slash
	Query  string // the client's, raw
	Model  string // for URLs that contain it
	Key    string // label of the upstream's own key; ignored if there is none
	// Header has the client's headers, without those that its Connection header names (see
	// Forwardable). Hop-by-hop headers and the gateway's own are not sent. It is not modified.
	Header http.Header
	// Narrow allows only headers and queries that are known to be harmless, even if the upstream gets
	// the client's credential.
	Narrow bool
	Body   []byte    // the body, or
	Reader io.Reader // a body that can be read once
	Length int64     // of Reader, -1 unknown
	// Follow reports whether one redirect to a path below the base URL is followed; only requests with
	// a Body are redirected. nil follows none.
	Follow func(path string) bool

	printed string // the key that its command printed
}

// Do sends the request. The response's body must be closed. Errors before anything was sent satisfy
// Unsent, or are ErrPath or a *CredentialError. After a 401, Do gets a new key from the key's command,
// if it has one, and sends the request again.
func (u *Upstream) Do(ctx context.Context, r Request) (*http.Response, error) {
	at, err := u.url(r)
	if err != nil {
		return nil, err
	}
	c := u.commands[r.Key]
	if c != nil {
		if r.printed, err = c.key(ctx, ""); err != nil {
			return nil, err
		}
	}
	resp, err := u.once(ctx, r, at)
	if err != nil {
		return nil, err
	}
	if c != nil && resp.StatusCode == http.StatusUnauthorized && r.Reader == nil {
		if other, err := c.key(ctx, r.printed); err == nil && other != r.printed {
			_ = resp.Body.Close()
			r.printed = other
			if resp, err = u.once(ctx, r, at); err != nil {
				return nil, err
			}
		}
	}
	u.answered.Store(true)
	if to := u.follow(r, at, resp); to != nil {
		_ = resp.Body.Close()
		return u.once(ctx, r, to)
	}
	return resp, nil
}

// once sends a request to one URL.
func (u *Upstream) once(ctx context.Context, r Request, at *url.URL) (*http.Response, error) {
	req := (&http.Request{Method: r.Method, URL: at, Header: u.header(r), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}).WithContext(ctx)
	switch {
	case r.Reader != nil:
		req.Body, req.ContentLength = io.NopCloser(r.Reader), r.Length
	case len(r.Body) > 0:
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(r.Body)), nil }
		req.Body, _ = req.GetBody()
		req.ContentLength = int64(len(r.Body))
	}
	if u.Lean() {
		return u.transport.RoundTrip(req)
	}
	var connected atomic.Bool // a net/http transport does not tell in its errors whether it had a connection
	trace := &httptrace.ClientTrace{GetConn: func(string) { connected.Store(false) }, GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}
	resp, err := u.transport.RoundTrip(req.WithContext(httptrace.WithClientTrace(ctx, trace)))
	if err != nil && !connected.Load() {
		err = &h1.DialError{Addr: at.Host, Err: err}
	}
	return resp, err
}

// Answered reports whether the host has answered any request since the gateway started. Safe for
// concurrent use.
func (u *Upstream) Answered() bool { return u.answered.Load() }

// Succeed copies from the upstream that this one replaces the Answered state, if the host is the same,
// and the keys that equal commands have printed. It must be called before the first request; old may be
// nil.
func (u *Upstream) Succeed(old *Upstream) {
	if old == nil {
		return
	}
	if old.base.Host == u.base.Host && old.base.Scheme == u.base.Scheme {
		u.answered.Store(old.Answered())
	}
	for name, c := range u.commands {
		if o := old.commands[name]; o != nil && slices.Equal(o.args, c.args) {
			o.mu.Lock()
			c.value, c.at = o.value, o.at
			o.mu.Unlock()
		}
	}
}

// Address returns the scheme and host of the URL.
func (u *Upstream) Address() string { return u.base.Scheme + "://" + u.base.Host }

// Unsent reports whether Do failed before it sent anything.
func Unsent(err error) bool {
	var dial *h1.DialError
	return errors.As(err, &dial)
}

// UnknownHost reports whether Do failed because the host name does not exist.
func UnknownHost(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) && dns.IsNotFound
}

// Reason describes briefly why nothing could be sent.
func Reason(err error) string {
	var dns *net.DNSError
	var timeout net.Error
	var op *net.OpError
	switch {
	case errors.As(err, &op) && op.Op == "proxyconnect":
		return "no connection to the forward proxy"
	case UnknownHost(err):
		return "no such host"
	case errors.As(err, &dns):
		return "the name lookup failed"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTDOWN):
		return "no route to it"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "the connection timed out"
	}
	return "the connection failed"
}

// Decode removes a content coding that the upstream used although it was not asked to. A body with an
// unknown coding stays as it is, for the client to handle. A body that does not begin like its coding
// only loses the header. A body that expands too much gives an error when read; the decoded size is
// otherwise not limited here, but by readers.
func Decode(resp *http.Response) error {
	given := resp.Header["Content-Encoding"]
	if len(given) == 0 {
		return nil
	}
	name, err := coding.Name(given)
	if err != nil || name == "" {
		return nil
	}
	body := bufio.NewReader(resp.Body)
	if start, _ := body.Peek(len("event:")); len(start) > 0 && !coding.Begins(name, start) {
		resp.Body = decoded{body, resp.Body}
		resp.Header.Del("Content-Encoding")
		return nil
	}
	r, err := coding.NewReader(name, body)
	if err != nil {
		return err
	}
	resp.Body = decoded{r, resp.Body}
	resp.Header.Del("Content-Encoding")
	resp.Header.Del("Content-Length")
	resp.ContentLength = -1
	return nil
}

// decoded is a body without its content coding.
type decoded struct {
	io.Reader
	io.Closer
}
