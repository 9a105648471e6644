package proxy

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// pool is a resource that all requests of this process share: places, or memory for bodies. Safe for
// concurrent use. It never waits: a request that finds no room is refused, and its client retries.
//
// A gateway key may take its equal share, and more only if other keys have not recently wanted it, so
// that a busy key does not push out the others. Part of each inactive key's share stays free, because
// answers may last long and a new client should be able to begin at once. Clients without a gateway
// key count as one.
type pool struct {
	// open is the fraction of the limit, from 0 to 1, up to which any key may take: for resources like
	// memory, of which one request may need much.
	open  float64
	taken atomic.Int64
	keys  atomic.Int64 // number of gateway keys; 0: nothing is reserved for inactive ones

	mu    sync.Mutex
	users map[string]*user // by gateway key: those that hold something or recently wanted it
}

// user is the use of a pool by one gateway key.
type user struct {
	taken int64
	era   int64    // the era of wants[0]
	wants [2]int64 // the most that it held or asked for at once, in this era and in the previous one
}

// era is the unit in which demand is remembered: for at least one era and at most two.
const era = 5 * time.Second

// want records demand n and returns the user's highest recent demand.
func (u *user) want(now, n int64) int64 {
	switch u.era {
	case now:
	case now - 1:
		u.wants = [2]int64{u.taken, u.wants[0]}
	default:
		u.wants = [2]int64{u.taken, 0}
	}
	u.era = now
	u.wants[0] = max(u.wants[0], n)
	return max(u.wants[0], u.wants[1])
}

// take takes n of limit for a gateway key, or for a client without one. It reports whether there was
// room.
func (p *pool) take(key string, n, limit int64) bool {
	if key != "" {
		p.mu.Lock()
		defer p.mu.Unlock()
		if !p.fair(key, n, limit) {
			return false
		}
	}
	if p.taken.Add(n) > limit {
		p.taken.Add(-n)
		return false
	}
	if key != "" {
		p.users[key].taken += n
	}
	return true
}

// fair reports whether a key may take n more with regard to the other keys.
func (p *pool) fair(key string, n, limit int64) bool {
	now := time.Now().UnixNano() / int64(era)
	u := p.users[key]
	if u == nil {
		if p.users == nil {
			p.users = map[string]*user{}
		}
		u = &user{}
		p.users[key] = u
	}
	u.want(now, u.taken+n)
	if float64(p.taken.Load()+n) <= p.open*float64(limit) {
		return true
	}
	for name, other := range p.users {
		if other.want(now, 0) == 0 {
			delete(p.users, name)
		}
	}
	users, kept := int64(len(p.users)), p.kept(limit)
	left := limit - min(max(p.keys.Load()-users, 0)*kept, limit/2)
	if u.taken+n > kept && p.taken.Load()+n > left {
		return false
	}
	even := (left + users - 1) / users
	for _, other := range p.users {
		if other != u {
			left -= min(max(other.want(now, 0), kept), even)
		}
	}
	return u.taken+n <= max(even, left)
}

// kept returns what is reserved for each inactive key, a quarter of an equal share. All reservations
// together are at most half of the limit.
func (p *pool) kept(limit int64) int64 {
	if keys := p.keys.Load(); keys > 1 {
		return max(1, limit/keys/4)
	}
	return 0
}

// give gives n back.
func (p *pool) give(key string, n int64) {
	p.taken.Add(-n)
	if key != "" && n != 0 {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.users[key].taken -= n
	}
}

// share is one request's part of the memory. One goroutine owns it. Its free must be called, and may
// be called again.
type share struct {
	of    *pool
	key   string
	limit int64
	taken int64
}

// take reserves n more bytes before they are allocated.
func (s *share) take(n int64) error {
	if n <= 0 {
		return nil
	}
	if !s.of.take(s.key, n, s.limit) {
		return noRoom("no_memory", "limits.memory")
	}
	s.taken += n
	return nil
}

// atLeast grows the share to n bytes.
func (s *share) atLeast(n int64) error { return s.take(n - s.taken) }

// give returns n of its bytes.
func (s *share) give(n int64) {
	s.of.give(s.key, n)
	s.taken -= n
}

// free returns all of them.
func (s *share) free() { s.give(s.taken) }

// noRoom is the error while a pool is full. The rest of the request's body is not read.
func noRoom(code, setting string) *Error {
	e := failf(http.StatusServiceUnavailable, code, "This gateway is at its limit (%s), or this gateway key has used its share of it. Try again in a moment.", setting)
	e.Header = http.Header{"Connection": {"close"}, "Retry-After": {"1"}}
	return e
}
