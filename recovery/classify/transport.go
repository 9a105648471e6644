package classify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"syscall"

	"github.com/rebound-llm/rebound/recovery"
)

// transportRule recognises a failure that left no answer to read, by its phase
// and its cause. These are no texts, so these rules are code.
type transportRule struct {
	name  string
	class recovery.Class
	when  func(*view) bool
}

// transport returns the rule that matches, or nil: what was read before a break
// is classified by its content instead.
func transport(v *view) *transportRule {
	for i := range transportRules {
		if r := &transportRules[i]; r.when(v) {
			return r
		}
	}
	return nil
}

var transportRules = [...]transportRule{
	{"flawed-answer", recovery.ModelOutputInvalid, func(v *view) bool { return errors.Is(v.Err, recovery.ErrFlawed) }},
	{"stream-stall", recovery.StreamCut, func(v *view) bool {
		return v.Phase >= recovery.PhaseBody && v.Err != nil && v.empty && isTimeout(v.Err)
	}},
	{"stream-cut", recovery.StreamCut, func(v *view) bool { return v.Phase == recovery.PhaseStream && v.empty }},
	{"body-cut", recovery.StreamCut, func(v *view) bool {
		return v.Phase == recovery.PhaseBody && v.http < 400 && (v.Err != nil || v.broken)
	}},
	{"empty-body", recovery.EmptyResponse, func(v *view) bool {
		return v.Phase == recovery.PhaseBody && v.http < 400 && (v.empty || v.object)
	}},
	{"canceled", recovery.Unknown, noAnswer(func(err error) bool { return errors.Is(err, context.Canceled) })},
	{"connect-timeout", recovery.Timeout, func(v *view) bool { return v.Phase == recovery.PhaseConnect && noAnswer(isTimeout)(v) }},
	{"header-timeout", recovery.Timeout, noAnswer(isTimeout)},
	{"dns", recovery.ServerError, noAnswer(isA[*net.DNSError])},
	{"tls", recovery.ServerError, noAnswer(isTLS)},
	{"connection-refused", recovery.ServerError, noAnswer(func(err error) bool {
		return isOneOf(err, syscall.ECONNREFUSED) || says(err.Error(), "connection refused")
	})},
	{"unreachable", recovery.ServerError, noAnswer(func(err error) bool {
		return isOneOf(err, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.EHOSTDOWN)
	})},
	{"connection-reset", recovery.ServerError, noAnswer(func(err error) bool {
		return isOneOf(err, syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNABORTED) || says(err.Error(), "connection reset", "broken pipe")
	})},
	{"connection-closed", recovery.ServerError, noAnswer(func(err error) bool {
		return isOneOf(err, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed) || says(err.Error(), "EOF", "GOAWAY", "server closed")
	})},
	{"connection-failed", recovery.ServerError, noAnswer(func(error) bool { return true })},
}

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
