package classify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"syscall"

	"github.com/rebound-llm/rebound/recovery"
)

// transportRule recognises a failure by its phase and cause instead of its text,
// for example one without an answer. Such rules are code.
type transportRule struct {
	name  string
	class recovery.Class
	when  func(*view) bool
	setup bool // the configuration is wrong
}

// transport returns the rule that matches, or nil. An error body that arrived before
// the connection broke is classified by its content instead.
func transport(v *view) *transportRule {
	for i := range transportRules {
		if r := &transportRules[i]; r.when(v) {
			return r
		}
	}
	return nil
}

var transportRules = [...]transportRule{
	{name: "wrong-scheme", class: recovery.ServerError, when: wrongScheme, setup: true},
	{name: "redirect", class: recovery.ServerError, when: redirect, setup: true},
	{name: "flawed-answer", class: recovery.ModelOutputInvalid, when: func(v *view) bool { return errors.Is(v.Err, recovery.ErrFlawed) }},
	{name: "stream-stall", class: recovery.StreamCut, when: func(v *view) bool {
		return v.Phase >= recovery.PhaseBody && v.Err != nil && v.empty && isTimeout(v.Err)
	}},
	{name: "stream-cut", class: recovery.StreamCut, when: func(v *view) bool { return v.Phase == recovery.PhaseStream && v.empty }},
	{name: "body-cut", class: recovery.StreamCut, when: func(v *view) bool {
		return v.Phase == recovery.PhaseBody && v.http < 400 && (v.broken || v.Err != nil && v.empty)
	}},
	{name: ruleEmpty, class: recovery.EmptyResponse, when: func(v *view) bool {
		return v.Phase == recovery.PhaseBody && v.http < 400 && v.empty
	}},
	{name: "canceled", class: recovery.Unknown, when: noAnswer(func(err error) bool { return errors.Is(err, context.Canceled) })},
	{name: "connect-timeout", class: recovery.Timeout, when: func(v *view) bool { return v.Phase == recovery.PhaseConnect && noAnswer(isTimeout)(v) }},
	{name: "header-timeout", class: recovery.Timeout, when: noAnswer(isTimeout)},
	{name: "dns", class: recovery.ServerError, when: noAnswer(isA[*net.DNSError])},
	{name: "tls-handshake", class: recovery.ServerError, when: func(v *view) bool { return v.Phase == recovery.PhaseConnect && noAnswer(isTLS)(v) }, setup: true},
	{name: "tls", class: recovery.ServerError, when: noAnswer(isTLS)},
	{name: "connection-refused", class: recovery.ServerError, when: noAnswer(func(err error) bool {
		return isOneOf(err, syscall.ECONNREFUSED) || says(err.Error(), "connection refused")
	})},
	{name: "unreachable", class: recovery.ServerError, when: noAnswer(func(err error) bool {
		return isOneOf(err, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.EHOSTDOWN)
	})},
	{name: "connection-reset", class: recovery.ServerError, when: noAnswer(func(err error) bool {
		return isOneOf(err, syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNABORTED) || says(err.Error(), "connection reset", "broken pipe")
	})},
	{name: "connection-closed", class: recovery.ServerError, when: noAnswer(func(err error) bool {
		return isOneOf(err, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed) || says(err.Error(), "EOF", "GOAWAY", "server closed")
	})},
	{name: "connection-failed", class: recovery.ServerError, when: noAnswer(func(error) bool { return true })},
}

// noAnswer matches transport errors before any status or body, of the kind that is reports.
func noAnswer(is func(error) bool) func(*view) bool {
	return func(v *view) bool {
		return v.Err != nil && v.empty && v.http == 0 && v.Phase <= recovery.PhaseStatus && is(v.Err)
	}
}

func isA[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}

func isOneOf(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(t error) bool { return errors.Is(err, t) })
}

func isTimeout(err error) bool {
	var n net.Error
	return isOneOf(err, context.DeadlineExceeded, os.ErrDeadlineExceeded, syscall.ETIMEDOUT) || errors.As(err, &n) && n.Timeout()
}

func isTLS(err error) bool {
	return isA[tls.RecordHeaderError](err) || isA[*tls.CertificateVerificationError](err) || isA[x509.UnknownAuthorityError](err) ||
		isA[x509.HostnameError](err) || isA[x509.CertificateInvalidError](err) || isA[tls.AlertError](err) || says(err.Error(), "tls: ", "x509: ")
}

// redirect recognises a redirect, to a login page for example. It is not
// followed: the credential is for the configured host.
func redirect(v *view) bool {
	return v.Phase == recovery.PhaseStatus && slices.Contains([]int{301, 302, 303, 307, 308}, v.http)
}

// wrongScheme recognises TLS sent to a plain HTTP port, and plain HTTP sent to a TLS
// port, which answers with an alert or with the message of Go, nginx or Apache.
func wrongScheme(v *view) bool {
	return isA[tls.RecordHeaderError](v.Err) || v.http == http.StatusBadRequest &&
		says(v.text, "http request to an https server", "plain http request was sent to https port", "speaking plain http to an ssl-enabled server port")
}
