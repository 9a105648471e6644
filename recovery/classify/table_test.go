package classify_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/classify"
	"github.com/rebound-llm/rebound/recovery/strategy"
)

// classes are all classes that package recovery declares.
var classes = []recovery.Class{
	recovery.ContextLengthExceeded, recovery.MaxOutputExceeded, recovery.RateLimit, recovery.QuotaExhausted, recovery.Overloaded,
	recovery.ServerError, recovery.Timeout, recovery.StreamCut, recovery.EmptyResponse, recovery.UnsupportedParameter,
	recovery.InvalidToolSchema, recovery.ToolPairing, recovery.InvalidJSONBody, recovery.InvalidRequest, recovery.ContentPolicy,
	recovery.Auth, recovery.Permission, recovery.ModelNotFound, recovery.PayloadTooLarge, recovery.ModelOutputInvalid,
	recovery.ImageOrMediaError, recovery.Unknown,
}

// TestComplete: every class has a row, a rule and a sample.
func TestComplete(t *testing.T) {
	tb := classify.New(configs.UpstreamRules)
	planned := map[string]bool{}
	for _, st := range strategy.All() {
		planned[st.Name] = false
	}
	if got, want := len(classify.Specs()), len(classes); got != want {
		t.Errorf("%d rows for %d classes", got, want)
	}
	// Code recognises these before any rule; TestTransport has their samples.
	ruled := map[recovery.Class]bool{recovery.StreamCut: true, recovery.EmptyResponse: true}
	rules, err := tb.Rules()
	if err != nil {
		t.Fatal(err)
	}
	for i := range rules.Len() {
		ruled[recovery.Class(rules.Rule(i).Class)] = true
	}
	sampled := map[string]bool{
		string(recovery.StreamCut): true, string(recovery.EmptyResponse): true,
	}
	for _, s := range read(t, "testdata/errors.jsonl") {
		sampled[s.Class] = true
	}
	for _, c := range classes {
		s := tb.Spec(c)
		if s.Class != c || s.Meaning == "" || s.Status < 400 {
			t.Errorf("%s: row %+v", c, s)
		}
		for _, p := range s.Plan {
			if _, ok := planned[p]; !ok {
				t.Errorf("%s plans %q, which is no strategy", c, p)
			}
			planned[p] = true
		}
		if s.Scope == recovery.ScopeRequest && (s.Counts || s.Cools) {
			t.Errorf("%s is about the request and yet held against the target", c)
		}
		if !ruled[c] {
			t.Errorf("%s: no rule", c)
		}
		if !sampled[string(c)] {
			t.Errorf("%s: no sample in testdata", c)
		}
	}
	for name, ok := range planned {
		if !ok {
			t.Errorf("no class plans %q", name)
		}
	}
	if got := tb.Spec("unheard_of"); got.Class != recovery.Unknown {
		t.Errorf("an unknown class has the row of %s", got.Class)
	}
}

type slowError struct{}

func (slowError) Error() string   { return "i/o timeout" }
func (slowError) Timeout() bool   { return true }
func (slowError) Temporary() bool { return true }

func TestTransport(t *testing.T) {
	tb := classify.New(configs.UpstreamRules)
	refused := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	reset := &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	for _, c := range []struct {
		name  string
		ev    recovery.Evidence
		class recovery.Class
		rule  string
	}{
		{"refused", recovery.Evidence{Phase: recovery.PhaseConnect, Err: refused}, recovery.ServerError, "connection-refused"},
		{"dns", recovery.Evidence{Phase: recovery.PhaseConnect, Err: &net.DNSError{Err: "no such host"}}, recovery.ServerError, "dns"},
		{"dns timeout", recovery.Evidence{Phase: recovery.PhaseConnect, Err: &net.DNSError{Err: "i/o timeout", IsTimeout: true}}, recovery.Timeout, "connect-timeout"},
		{"tls", recovery.Evidence{Phase: recovery.PhaseConnect, Err: fmt.Errorf("connecting: %w", x509.UnknownAuthorityError{})}, recovery.ServerError, "tls-handshake"},
		{"tls later", recovery.Evidence{Phase: recovery.PhaseHeaders, Err: errors.New("remote error: tls: bad record MAC")}, recovery.ServerError, "tls"},
		{"tls to a plain port", recovery.Evidence{Phase: recovery.PhaseConnect, Err: tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}}, recovery.ServerError, "wrong-scheme"},
		{"plain to a tls port", recovery.Evidence{Phase: recovery.PhaseHeaders, Err: fmt.Errorf("reading: %w",
			tls.RecordHeaderError{Msg: "server answers with a TLS alert"})}, recovery.ServerError, "wrong-scheme"},
		{"plain to apache", recovery.Evidence{Phase: recovery.PhaseStatus, Status: 400, Body: []byte("You're speaking plain HTTP to an SSL-enabled server port.")}, recovery.ServerError, "wrong-scheme"},
		{"unreachable", recovery.Evidence{Phase: recovery.PhaseConnect, Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH)}, recovery.ServerError, "unreachable"},
		{"connect timeout", recovery.Evidence{Phase: recovery.PhaseConnect, Err: slowError{}}, recovery.Timeout, "connect-timeout"},
		{"reset", recovery.Evidence{Phase: recovery.PhaseHeaders, Err: reset}, recovery.ServerError, "connection-reset"},
		{"eof", recovery.Evidence{Phase: recovery.PhaseHeaders, Err: fmt.Errorf("reading head: %w", io.EOF)}, recovery.ServerError, "connection-closed"},
		{"goaway", recovery.Evidence{Phase: recovery.PhaseHeaders, Err: errors.New("http2: server sent GOAWAY and closed the connection")}, recovery.ServerError, "connection-closed"},
		{"deadline", recovery.Evidence{Phase: recovery.PhaseHeaders, Err: context.DeadlineExceeded}, recovery.Timeout, "header-timeout"},
		{"canceled", recovery.Evidence{Phase: recovery.PhaseHeaders, Err: context.Canceled}, recovery.Unknown, "canceled"},
		{"odd", recovery.Evidence{Phase: recovery.PhaseHeaders, Err: errors.New("odd")}, recovery.ServerError, "connection-failed"},
		{"empty body", recovery.Evidence{Phase: recovery.PhaseBody, Status: 200}, recovery.EmptyResponse, "empty-body"},
		{"nothing in it", recovery.Evidence{Phase: recovery.PhaseBody, Status: 200, Body: []byte(`{"id":"x"}`)}, recovery.EmptyResponse, "empty-body"},
		{"broken body", recovery.Evidence{Phase: recovery.PhaseBody, Status: 200, Body: []byte(`{"id":"x`)}, recovery.StreamCut, "body-cut"},
		{"cut body", recovery.Evidence{Phase: recovery.PhaseBody, Status: 200, Err: io.ErrUnexpectedEOF, Body: []byte(`{"id":"x"`)}, recovery.StreamCut, "body-cut"},
		{"error in a body", recovery.Evidence{Phase: recovery.PhaseBody, Status: 200, Body: []byte(`{"error":{"code":"rate_limit_exceeded","messag` +
			`e":"Slow down"}}`)}, recovery.RateLimit, "throttled-tokens"},
		{"cut stream", recovery.Evidence{Phase: recovery.PhaseStream, Status: 200, Stream: true, Err: io.ErrUnexpectedEOF}, recovery.StreamCut, "stream-cut"},
		{"stalled stream", recovery.Evidence{Phase: recovery.PhaseStream, Status: 200, Stream: true, Err: context.DeadlineExceeded}, recovery.StreamCut, "stream-stall"},
		{"ended stream", recovery.Evidence{Phase: recovery.PhaseStream, Status: 200, Stream: true}, recovery.StreamCut, "stream-cut"},
		{"error event", recovery.Evidence{Phase: recovery.PhaseStream, Status: 200, Stream: true, Body: []byte(`{"type":"error","error":{"type":"o` +
			`verloaded_error","message":"Overloaded"}}`)}, recovery.Overloaded, "overloaded-code"},
		{"unreadable event", recovery.Evidence{Phase: recovery.PhaseStream, Status: 200, Stream: true, Body: []byte(`oops`)}, recovery.ServerError, "stream-error-event"},
		{"redirect to a login page", recovery.Evidence{Phase: recovery.PhaseStatus, Status: 302, Body: []byte("<html><title>302 Found</title></html>")}, recovery.ServerError, "redirect"},
		{"nothing known", recovery.Evidence{}, recovery.Unknown, "unknown"},
	} {
		d := tb.Classify(c.ev)
		if d.Spec.Class != c.class || d.Rule != c.rule {
			t.Errorf("%s: got %s by %s, want %s by %s", c.name, d.Spec.Class, d.Rule, c.class, c.rule)
		}
		setup := slices.Contains([]string{"tls-handshake", "wrong-scheme", "redirect"}, c.rule)
		if d.Spec.Setup != setup || setup && slices.Contains(d.Spec.Plan, "resend") {
			t.Errorf("%s: a mistake of the configuration is %t, planned %v", c.name, d.Spec.Setup, d.Spec.Plan)
		}
	}
}

// TestEveryStatus lists the class of every status without a body.
func TestEveryStatus(t *testing.T) {
	tb := classify.New(configs.UpstreamRules)
	for status, want := range map[int]recovery.Class{
		400: recovery.Unknown, 401: recovery.Auth, 402: recovery.QuotaExhausted, 403: recovery.Permission, 404: recovery.ModelNotFound,
		405: recovery.InvalidRequest, 407: recovery.Auth, 408: recovery.Timeout, 409: recovery.ServerError, 410: recovery.ModelNotFound,
		413: recovery.ContextLengthExceeded, 415: recovery.ImageOrMediaError, 418: recovery.InvalidRequest, 422: recovery.UnsupportedParameter,
		425: recovery.RateLimit, 429: recovery.RateLimit, 451: recovery.Permission, 499: recovery.Timeout,
		500: recovery.ServerError, 501: recovery.ModelNotFound, 502: recovery.ServerError, 503: recovery.Overloaded, 504: recovery.Timeout,
		520: recovery.ServerError, 521: recovery.ServerError, 522: recovery.Timeout, 523: recovery.ServerError, 524: recovery.Timeout,
		525: recovery.ServerError, 529: recovery.Overloaded, 530: recovery.ServerError, 599: recovery.Timeout,
		0: recovery.Unknown, 200: recovery.Unknown, 302: recovery.ServerError, 304: recovery.Unknown, 307: recovery.ServerError,
	} {
		d := tb.Classify(recovery.Evidence{Phase: recovery.PhaseStatus, Status: status})
		if d.Spec.Class != want {
			t.Errorf("bare %d: got %s by %s, want %s", status, d.Spec.Class, d.Rule, want)
		}
	}
}

func TestReadUnwraps(t *testing.T) {
	s := classify.Read(recovery.Evidence{
		Phase: recovery.PhaseStatus, Status: 200, Now: noon, Header: http.Header{"Retry-After": {"3"}},
		Body: []byte(`{"error":{"message":"{\"error\":{\"message\":\"Unsupported parameter: 'x_y'.\",\"type\":\"invalid_request_error\",\"param\":` +
			`\"x_y\",\"code\":\"unsupported_parameter\"}}","code":400}}`),
	})
	if s.Status != 400 || s.Message != "Unsupported parameter: 'x_y'." || s.Param != "x_y" || s.Type != "invalid_request_error" ||
		!s.HasRetryAfter || s.RetryAfter.Seconds() != 3 {
		t.Errorf("got %+v", s)
	}
	if s.Code != "unsupported_parameter" {
		t.Errorf("code %q: the failing party's code says more than a wrapper's status", s.Code)
	}
	s = classify.Read(recovery.Evidence{Phase: recovery.PhaseStatus, Status: 400, Now: noon,
		Body: []byte(`{"error":{"message":"litellm.BadRequestError: AnthropicException - {\"error\":{\"message\":\"Field x is missing.\"}}. Received Model Group=m\nAvailable Model Group Fallbacks=None"}}`)})
	if s.Message != "Field x is missing." {
		t.Errorf("message %q: what stands behind the provider's answer is the wrapper's", s.Message)
	}
}
