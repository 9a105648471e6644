package classify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/rebound-llm/rebound/recovery"
)

// transportRules recognise failures that left no answer to read, by phase and
// cause. What was read before a break is classified by its content instead.
func transportRules() []rule {
	noAnswer := func(is func(error) bool) func(*view) bool {
		return func(v *view) bool {
			return v.Err != nil && v.empty && v.http == 0 && v.Phase <= recovery.PhaseStatus && is(v.Err)
		}
	}
	timedOut := noAnswer(isTimeout)
	return []rule{
		{name: "flawed-answer", class: recovery.ModelOutputInvalid, when: func(v *view) bool { return errors.Is(v.Err, recovery.ErrFlawed) }},
		{name: "stream-stall", class: recovery.StreamCut, when: func(v *view) bool {
			return v.Phase >= recovery.PhaseBody && v.Err != nil && v.empty && isTimeout(v.Err)
		}},
		{name: "stream-cut", class: recovery.StreamCut, when: func(v *view) bool {
			return v.Phase == recovery.PhaseStream && v.empty
		}},
		{name: "body-cut", class: recovery.StreamCut, when: func(v *view) bool {
			return v.Phase == recovery.PhaseBody && v.http < 400 && (v.Err != nil || v.broken)
		}},
		{name: "empty-body", class: recovery.EmptyResponse, when: func(v *view) bool {
			return v.Phase == recovery.PhaseBody && v.http < 400 && (v.empty || v.object)
		}},
		{name: "canceled", class: recovery.Unknown, when: noAnswer(func(err error) bool { return errors.Is(err, context.Canceled) })},
		{name: "connect-timeout", class: recovery.Timeout, when: func(v *view) bool { return v.Phase == recovery.PhaseConnect && timedOut(v) }},
		{name: "header-timeout", class: recovery.Timeout, when: timedOut},
		{name: "dns", class: recovery.ServerError, when: noAnswer(func(err error) bool {
			var e *net.DNSError
			return errors.As(err, &e)
		})},
		{name: "tls", class: recovery.ServerError, when: noAnswer(isTLS)},
		{name: "connection-refused", class: recovery.ServerError, when: noAnswer(func(err error) bool {
			return errors.Is(err, syscall.ECONNREFUSED) || strings.Contains(err.Error(), "connection refused")
		})},
		{name: "unreachable", class: recovery.ServerError, when: noAnswer(func(err error) bool {
			return errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH) || errors.Is(err, syscall.EHOSTDOWN)
		})},
		{name: "connection-reset", class: recovery.ServerError, when: noAnswer(func(err error) bool {
			return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNABORTED) ||
				strings.Contains(err.Error(), "connection reset") || strings.Contains(err.Error(), "broken pipe")
		})},
		{name: "connection-closed", class: recovery.ServerError, when: noAnswer(func(err error) bool {
			return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
				strings.Contains(err.Error(), "EOF") || strings.Contains(err.Error(), "GOAWAY") || strings.Contains(err.Error(), "server closed")
		})},
		{name: "connection-failed", class: recovery.ServerError, when: noAnswer(func(error) bool { return true })},
	}
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, syscall.ETIMEDOUT) ||
		errors.As(err, &n) && n.Timeout()
}

func isTLS(err error) bool {
	var record tls.RecordHeaderError
	var verify *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var alert tls.AlertError
	return errors.As(err, &record) || errors.As(err, &verify) || errors.As(err, &unknown) || errors.As(err, &host) ||
		errors.As(err, &invalid) || errors.As(err, &alert) || strings.Contains(err.Error(), "tls: ") || strings.Contains(err.Error(), "x509: ")
}
