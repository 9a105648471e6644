package h1

import (
	"errors"
	"os"
	"time"
)

// longAgo is a deadline that ends a read at once.
func longAgo() time.Time { return time.Unix(1, 0) }

// Read implements io.Reader for the link's reader: it sees to the deadline of
// each read of the connection, and yields first what the watch has read.
func (k *link) Read(p []byte) (int, error) {
	k.mu.Lock()
	switch {
	case k.has:
		defer k.mu.Unlock()
		p[0], k.has = k.early[0], false
		k.started()
		return 1, nil
	case k.lost != nil:
		defer k.mu.Unlock()
		return 0, k.lost
	}
	k.allowRead()
	k.reading = true
	k.mu.Unlock()
	n, err := k.nc.Read(p)
	k.mu.Lock()
	k.reading = false
	if n > 0 {
		k.started()
	}
	k.mu.Unlock()
	return n, err
}

// start notes that bytes of a request are here.
func (k *link) start() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.started()
}

// started notes a request's first byte: from here on the time for its head
// runs. k.mu is held.
func (k *link) started() {
	if k.begun {
		return
	}
	k.begun = true
	if limit := k.srv.cfg.HeadTimeout; limit > 0 {
		k.readBy = time.Now().Add(limit)
	}
}

// allowRead sets the deadline of a read. While the next request is awaited one
// that is set already is good enough if it is not far off. k.mu is held.
func (k *link) allowRead() {
	if k.begun {
		k.set(k.readBy)
		return
	}
	idle := k.srv.cfg.IdleTimeout
	if idle <= 0 {
		k.set(time.Time{})
		return
	}
	now := time.Now()
	if left := k.readSet.Sub(now); left < idle || left > idle+idle/2 {
		k.set(now.Add(idle + idle/2))
	}
}

// set sets the deadline unless it is set. k.mu is held.
func (k *link) set(t time.Time) {
	if !t.Equal(k.readSet) {
		k.readSet = t
		_ = k.nc.SetReadDeadline(t)
	}
}

// until is the handler's wish for its reads, also for one that is under way.
func (k *link) until(t time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.readBy = t
	if k.reading {
		k.set(t)
	}
}

// arm has the client watched in a moment: its request was read to the end.
func (k *link) arm() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ctx == nil || k.due || k.watching != nil || k.has || k.lost != nil {
		return
	}
	k.due = true
	if k.watch == nil {
		k.watch = time.AfterFunc(watchAfter, k.lookOut)
		return
	}
	k.watch.Reset(watchAfter)
}

// lookOut reads until the client sends something, leaves, or settle ends it.
func (k *link) lookOut() {
	k.mu.Lock()
	if !k.due { // just now the handler has returned
		k.mu.Unlock()
		return
	}
	k.due = false
	ended := make(chan struct{})
	k.watching = ended
	k.set(time.Time{})
	k.mu.Unlock()
	n, err := k.nc.Read(k.early[:])
	k.mu.Lock()
	defer k.mu.Unlock()
	k.watching = nil
	k.has = n > 0
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		k.lost = err
		if k.ctx != nil {
			k.ctx.End(nil)
		}
	}
	close(ended)
}
