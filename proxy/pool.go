package proxy

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// pool is what all requests of this process share: places, or the memory of
// their bodies. Safe for concurrent use. It never waits: a
// request that finds no room is refused, and its client asks again.
//
// A gateway key may take its even share, and more only as far as the others have
// not lately wanted it: who sends as much as it can pushes nobody out. For each key
// that is away a part of its share is kept free, since answers may last long: who
// comes later can begin at once. Clients without a gateway key are not told apart.
type pool struct {
	// open is the part of the limit, from 0 to 1, up to which everybody may take:
	// for what some need much of at once, like memory.
	open  float64
	taken atomic.Int64
	keys  atomic.Int64 // gateway keys that there are; 0: nothing is kept for those that are away

	mu    sync.Mutex
	users map[string]*user // by gateway key: those that have something, or lately wanted it
}

// user is what a gateway key has of a pool.
type user struct {
	taken int64
	era   int64    // of wants
	wants [2]int64 // the most that it had or asked for at once, in this era and in the one before
}

// era is how long what a key wanted is remembered at least, and half as long as
// at most.
const era = 5 * time.Second

// want is the most that the user wanted lately.
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

// take takes n of limit for a gateway key, or for a client without one.
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

// fair reports whether a key may take n more as far as other keys are concerned.
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

// kept is what stays free for a key that is away, if that is at most half of the limit for all
// such keys: a quarter of an even share.
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

// share is one request's part of the memory. One goroutine owns it. Its free
// must be called, once or more often.
type share struct {
	of    *pool
	key   string
	limit int64
	taken int64
}

// take asks for n bytes more, before they are allocated.
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

// atLeast sees to it that the share has n bytes.
func (s *share) atLeast(n int64) error { return s.take(n - s.taken) }

// give returns n of its bytes.
func (s *share) give(n int64) {
	s.of.give(s.key, n)
	s.taken -= n
}

// free returns all of them.
func (s *share) free() { s.give(s.taken) }

// noRoom is what a client gets while a pool is spent. The rest of its body is not read.
func noRoom(code, setting string) *Error {
	e := failf(http.StatusServiceUnavailable, code, "This gateway is answering as many and as large requests as it may (%s), or as this gateway key may "+
		"while others ask, too. Try again in a moment.", setting)
	e.Header = http.Header{"Connection": {"close"}, "Retry-After": {"1"}}
	return e
}
