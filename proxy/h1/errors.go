package h1

import (
	"context"
	"errors"
	"io"
	"syscall"
	"time"
)

// ErrHeaderTooLarge means that a response's head has more bytes than allowed.
var ErrHeaderTooLarge = errors.New("header too large")

// RequestError means that the request cannot be written as HTTP/1.1. Nothing was sent.
type RequestError struct{ Err error }

func (e *RequestError) Error() string { return "invalid request: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *RequestError) Unwrap() error { return e.Err }

// DialError means that there is no connection: lookup, connect or handshake failed, or the request's
// context ended during them. Nothing was sent.
type DialError struct {
	Addr string // host:port
	Err  error
}

func (e *DialError) Error() string { return "connecting to " + e.Addr + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *DialError) Unwrap() error { return e.Err }

// BeforeResponseError means that the request was sent, at least in part, and the connection failed
// before the first byte of a response. The server may have processed it.
type BeforeResponseError struct{ Err error }

func (e *BeforeResponseError) Error() string { return "waiting for a response: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *BeforeResponseError) Unwrap() error { return e.Err }

// RequestBodyError means that the request's own body could not be read, or did not have the announced
// length. The server is not at fault.
type RequestBodyError struct{ Err error }

func (e *RequestBodyError) Error() string { return "reading the request's body: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *RequestBodyError) Unwrap() error { return e.Err }

// HeaderError means that a response's head was cut short, malformed or too large
// ([ErrHeaderTooLarge]).
type HeaderError struct{ Err error }

func (e *HeaderError) Error() string { return "reading the response's header: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *HeaderError) Unwrap() error { return e.Err }

// BodyError means that a response's body was cut short (io.ErrUnexpectedEOF or
// an error of the connection) or not framed correctly.
type BodyError struct{ Err error }

func (e *BodyError) Error() string { return "reading the response's body: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *BodyError) Unwrap() error { return e.Err }

// ctxErr returns why the context has ended, or nil. A deadline that has passed counts even if the
// context's own timer is late.
func ctxErr(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if d, ok := ctx.Deadline(); ok && !time.Now().Before(d) {
		return context.DeadlineExceeded
	}
	return nil
}

// unexpected turns io.EOF within a message into io.ErrUnexpectedEOF, so that no reader takes it for
// the end of a body.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// peerClosed reports whether an error means that the peer has closed the connection.
func peerClosed(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNABORTED)
}
