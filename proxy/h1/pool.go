package h1

import (
	"slices"
	"sync"
	"time"
)

// pool keeps idle connections, the most recently used on top: it is the least likely to have been
// closed by the server, and connections that the load does not need age at the bottom. One timer
// serves all of them; it runs only while there are any.
type pool struct {
	timeout time.Duration // not positive: no limit
	perHost int

	mu      sync.Mutex
	idle    map[hostKey][]*conn // oldest first
	timer   *time.Timer         // calls reap; created with the first connection
	armed   bool                // the timer is running
	closing bool                // CloseIdleConnections was called and no request has followed
	noisy   map[hostKey]bool    // hosts that have sent unexpected bytes
}

// get returns the connection that became idle last, or nil. The caller owns it and must check whether
// it is alive.
func (p *pool) get(key hostKey) *conn {
	p.mu.Lock()
	p.closing = false
	stack := p.idle[key]
	if len(stack) == 0 {
		p.mu.Unlock()
		return nil
	}
	c := stack[len(stack)-1]
	stack[len(stack)-1] = nil
	p.idle[key] = stack[:len(stack)-1]
	p.mu.Unlock()
	return c
}

// put adds an idle connection, or closes it if there is no room.
func (p *pool) put(c *conn) {
	c.idleSince = time.Now()
	p.mu.Lock()
	stack := p.idle[c.key]
	if p.closing || p.noisy[c.key] || len(stack) >= p.perHost {
		p.mu.Unlock()
		c.retire()
		return
	}
	if p.idle == nil {
		p.idle = make(map[hostKey][]*conn)
	}
	p.idle[c.key] = append(stack, c)
	if !p.armed && p.timeout > 0 {
		p.arm(p.timeout)
	}
	p.mu.Unlock()
}

// distrust prevents the reuse of connections to a host from now on.
func (p *pool) distrust(key hostKey) {
	p.mu.Lock()
	if p.noisy == nil {
		p.noisy = make(map[hostKey]bool)
	}
	p.noisy[key] = true
	p.mu.Unlock()
	p.drop(key)
}

// drop closes the idle connections to a host.
func (p *pool) drop(key hostKey) {
	p.mu.Lock()
	idle := p.idle[key]
	delete(p.idle, key)
	p.mu.Unlock()
	for _, c := range idle {
		c.abort() // the peer reads no TLS close notification
	}
}

// arm starts the timer. p.mu is held.
func (p *pool) arm(d time.Duration) {
	p.armed = true
	if p.timer == nil {
		p.timer = time.AfterFunc(d, p.reap)
		return
	}
	p.timer.Reset(d)
}

// reap closes connections that were idle for too long and starts the timer for the next.
func (p *pool) reap() {
	now := time.Now()
	var old []*conn
	p.mu.Lock()
	next := time.Duration(-1)
	for key, stack := range p.idle {
		n, _ := slices.BinarySearchFunc(stack, now.Add(-p.timeout), func(c *conn, t time.Time) int {
			if c.idleSince.After(t) {
				return 1
			}
			return -1
		})
		old = append(old, stack[:n]...)
		if n == len(stack) {
			delete(p.idle, key)
			continue
		}
		if n > 0 {
			p.idle[key] = slices.Clone(stack[n:])
		}
		if d := stack[n].idleSince.Add(p.timeout).Sub(now); next < 0 || d < next {
			next = d
		}
	}
	p.armed = false
	if next >= 0 {
		p.arm(max(next, p.timeout/16)) // not once per connection
	}
	p.mu.Unlock()
	for _, c := range old {
		c.retire()
	}
}

// closeAll closes all idle connections, and those that become idle before the next request.
func (p *pool) closeAll() {
	p.mu.Lock()
	idle := p.idle
	p.idle = nil
	p.closing = true
	if p.armed {
		p.timer.Stop()
		p.armed = false
	}
	p.mu.Unlock()
	for _, stack := range idle {
		for _, c := range stack {
			c.retire()
		}
	}
}

// count returns the number of idle connections.
func (p *pool) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, stack := range p.idle {
		n += len(stack)
	}
	return n
}
