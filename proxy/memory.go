package proxy

import (
	"net/http"
	"sync/atomic"
)

// memory is what the bodies of all requests in work take, in bytes. Safe for
// concurrent use; the zero value is ready. It never waits: a request that finds
// no room is refused, and its client asks again.
type memory struct{ taken atomic.Int64 }

// share is one request's part of the memory. One goroutine owns it. Its free
// must be called, once or more often.
type share struct {
	of    *memory
	limit int64
	taken int64
}

func (m *memory) share(limit int64) share { return share{of: m, limit: limit} }

// take asks for n bytes more, before they are allocated.
func (s *share) take(n int64) error {
	if n <= 0 {
		return nil
	}
	if s.of.taken.Add(n) > s.limit {
		s.of.taken.Add(-n)
		return noRoom()
	}
	s.taken += n
	return nil
}

// atLeast sees to it that the share has n bytes.
func (s *share) atLeast(n int64) error { return s.take(n - s.taken) }

// give returns n of its bytes.
func (s *share) give(n int64) {
	s.of.taken.Add(-n)
	s.taken -= n
}

// free returns all of them.
func (s *share) free() { s.give(s.taken) }

// noRoom is what a client gets while limits.memory is spent. The rest of its body
// is not read.
func noRoom() *Error {
	e := failf(http.StatusServiceUnavailable, "no_memory", "This gateway is answering as many and as large requests as it may (limits.memory). Try again in a moment.")
	e.Header = http.Header{"Connection": {"close"}, "Retry-After": {"1"}}
	return e
}
