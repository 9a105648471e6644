package h1

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rebound-llm/rebound/recovery/ending"
)

// linkState says what a connection waits for.
type linkState int32

const (
	linkIdle linkState = iota // for a request: it may be closed at any time
	linkBusy                  // for its handler
	linkOver                  // for nothing
)

// link is one connection of a client. Its goroutine is in serve; what others
// may touch is behind mu or atomic.
type link struct {
	srv    *Server
	nc     net.Conn
	remote string
	in     reader // reads through Read
	state  atomic.Int32

	outMu sync.Mutex
	out   outlet

	// What the next read of the connection may take: owned by whoever reads.
	begun  bool // a byte of the request has come
	posted bool // the request before was a POST

	mu       sync.Mutex
	readBy   time.Time       // wanted by the handler, or for the head
	readSet  time.Time       // set at the connection
	reading  bool            // somebody is in a read of the connection
	ctx      *ending.Context // of the request under way
	watch    *time.Timer     // calls lookOut; made with the first request
	due      bool            // the client may be watched: nobody else reads
	watching chan struct{}   // closed when the watch has ended; nil without one
	early    [1]byte         // what the watch read
	has      bool
	lost     error // what the watch found instead
}

func newLink(s *Server, nc net.Conn) *link {
	k := &link{srv: s, nc: nc, remote: nc.RemoteAddr().String()}
	k.in = reader{src: k, reads: &s.reads, plain: true}
	k.out = outlet{nc: nc, timeout: s.cfg.WriteTimeout}
	return k
}

// serve answers requests until one side has had enough.
func (k *link) serve() {
	defer k.srv.forget(k)
	defer k.nc.Close()
	defer func() {
		if v := recover(); v != nil {
			k.release()
			if v != http.ErrAbortHandler {
				k.srv.cfg.Log.Error("a handler panicked", "panic", v, "stack", string(debug.Stack()))
			}
		}
	}()
	for {
		t, err := k.receive()
		if err != nil {
			k.refuse(err)
			return
		}
		if t == nil || !k.answer(t) {
			return
		}
	}
}

// receive reads the next request's head. It returns nil without an error when
// there is none.
func (k *link) receive() (*turn, error) {
	raw, err := k.head()
	if err == nil && k.posted && len(raw) <= len("\r\n") {
		k.in.r += len(raw) // some clients end a body with one line too many: RFC 9112, section 2.2
		raw, err = k.head()
	}
	switch {
	case errors.Is(err, ErrHeaderTooLarge):
		return nil, refusal{http.StatusRequestHeaderFieldsTooLarge, err.Error()}
	case errors.Is(err, os.ErrDeadlineExceeded) && k.begun:
		return nil, refusal{http.StatusRequestTimeout, "the request's head took too long"}
	case errors.Is(err, ErrMalformed):
		return nil, malformed("%v", err)
	case err != nil:
		return nil, nil
	}
	if !k.state.CompareAndSwap(int32(linkIdle), int32(linkBusy)) {
		return nil, nil
	}
	t, err := k.parse(raw)
	if err != nil {
		return nil, err
	}
	k.posted = t.req.Method == http.MethodPost
	k.in.r += len(raw)
	if k.in.buffered() == 0 {
		k.in.release() // the handler may take long
	}
	return t, nil
}

// head waits for a head, and reads it.
func (k *link) head() ([]byte, error) {
	if k.begun = false; k.in.buffered() > 0 {
		k.start()
	}
	return k.in.head(k.srv.cfg.MaxHeaderBytes)
}

// answer has a request answered and reports whether the connection can take another.
func (k *link) answer(t *turn) bool {
	t.ctx.Begin(context.Background())
	k.begin(&t.ctx, t.body.done())
	t.req = *t.req.WithContext(&t.ctx)
	k.srv.cfg.Handler.ServeHTTP(&t.reply, &t.req)
	keep := t.reply.finish()
	t.ctx.End(nil)
	k.settle()
	k.freeWrite()
	if t.body.abandon() {
		keep = false
		k.linger()
	}
	// In this order: who ends the server either sees an idle link or is seen.
	return keep && k.state.CompareAndSwap(int32(linkBusy), int32(linkIdle)) && !k.srv.ending.Load()
}

// begin notes that a handler works. What it wanted of reads was of the request before.
func (k *link) begin(ctx *ending.Context, bodyless bool) {
	k.mu.Lock()
	k.ctx = ctx
	k.readBy = time.Time{}
	k.mu.Unlock()
	if state := linkState(k.state.Load()); state == linkOver {
		ctx.End(nil) // between its head and now
	}
	if bodyless {
		k.arm()
	}
}

// settle ends what goes on beside a handler, which has returned.
func (k *link) settle() {
	k.mu.Lock()
	k.ctx = nil
	if k.due {
		k.due = false
		k.watch.Stop()
	}
	if ended := k.watching; ended != nil {
		k.set(longAgo())
		k.mu.Unlock()
		<-ended
		k.mu.Lock()
	}
	k.readBy = time.Time{}
	k.mu.Unlock()
}

// release is settle after a panic: the client is no longer of interest.
func (k *link) release() {
	k.gone()
	k.settle()
}

// gone tells the handler that nobody waits for its answer.
func (k *link) gone() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ctx != nil {
		k.ctx.End(nil)
	}
}

// retire closes the connection if it waits for a request.
func (k *link) retire() {
	if k.state.CompareAndSwap(int32(linkIdle), int32(linkOver)) {
		_ = k.nc.Close()
	}
}

// abort cancels the request and closes the connection.
func (k *link) abort() {
	k.state.Store(int32(linkOver))
	k.gone()
	_ = k.nc.Close()
}

// write writes to the client.
func (k *link) write(p []byte) error {
	k.outMu.Lock()
	defer k.outMu.Unlock()
	return k.out.write(p)
}

// writeAll writes pieces of which one is large, with as few system calls as can be.
func (k *link) writeAll(pieces net.Buffers) error {
	k.outMu.Lock()
	defer k.outMu.Unlock()
	return k.out.writeAll(pieces)
}

// limitWrite replaces the time-out of writes by a deadline; the zero time gives it back.
func (k *link) limitWrite(t time.Time) error {
	k.outMu.Lock()
	defer k.outMu.Unlock()
	k.out.fixed = !t.IsZero()
	return k.out.limit(t)
}

// freeWrite takes back what a handler has set.
func (k *link) freeWrite() {
	k.outMu.Lock()
	defer k.outMu.Unlock()
	if k.out.fixed {
		k.out.fixed = false
		_ = k.out.limit(time.Time{})
	}
}

// linger lets a client that is still sending read its answer: to close on
// bytes that were not read would reset the connection.
func (k *link) linger() {
	if half, ok := k.nc.(interface{ CloseWrite() error }); !ok || half.CloseWrite() != nil {
		return
	}
	if k.nc.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
		_, _ = io.Copy(io.Discard, k.nc)
	}
}

// refuse answers what is no request, if it can be answered.
func (k *link) refuse(err error) {
	var r refusal
	if !errors.As(err, &r) {
		return
	}
	kind, body := k.srv.cfg.Refuse(r.status, r.reason)
	t := &turn{}
	t.req = http.Request{Method: http.MethodGet, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Close: true}
	t.body.link = k
	t.reply = reply{link: k, turn: t}
	t.reply.Header().Set("Content-Type", kind)
	t.reply.WriteHeader(r.status)
	_, _ = t.reply.Write(body)
	t.reply.finish()
	k.linger()
}
