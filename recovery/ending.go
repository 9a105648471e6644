package recovery

import (
	"context"
	"slices"
	"sync"
)

// ending is the context of one attempt: that of its exchange, with an end of
// its own. context.WithCancelCause would do the same; but every request has
// one, and what it costs there are a channel that nobody waits for and a map
// for the one that is told. [context.AfterFunc] and the contexts that are made
// of this one know its method of that name.
//
// Err tells the cause itself: [context.Cause] finds no other for a context that
// is not the library's.
type ending struct {
	context.Context             // the exchange's
	untie           func() bool // ends the watch over that

	mu    sync.Mutex
	cause error         // nil until it has ended
	done  chan struct{} // nil until somebody asks for it
	after []waiting     // who is told, in no order
	one   [1]waiting    // the memory of after for the usual number
	last  int           // number of the newest
}

// waiting is a function that is called at the end.
type waiting struct {
	number int
	call   func()
}

var _ context.Context = (*ending)(nil)

// begin ties a context that is not used yet to its parent.
func (e *ending) begin(parent context.Context) {
	e.mu.Lock() // until the watch is known that end has to stop
	defer e.mu.Unlock()
	e.Context, e.after = parent, e.one[:0]
	e.untie = context.AfterFunc(parent, func() { e.end(context.Cause(parent)) })
}

// end ends it, once; nil means context.Canceled.
func (e *ending) end(cause error) {
	if cause == nil {
		cause = context.Canceled
	}
	e.mu.Lock()
	if e.cause != nil {
		e.mu.Unlock()
		return
	}
	e.cause = cause
	if e.done != nil {
		close(e.done)
	}
	after := e.after
	e.after = nil
	e.mu.Unlock()
	e.untie()
	for _, w := range after {
		go w.call()
	}
}

// Done implements context.Context.
func (e *ending) Done() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.done == nil {
		e.done = make(chan struct{})
		if e.cause != nil {
			close(e.done)
		}
	}
	return e.done
}

// Err implements context.Context: it is why the attempt was ended.
func (e *ending) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cause
}

// AfterFunc is what [context.AfterFunc] does for this context.
func (e *ending) AfterFunc(f func()) (stop func() bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cause != nil {
		go f()
		return func() bool { return false }
	}
	e.last++
	number := e.last
	e.after = append(e.after, waiting{number, f})
	return func() bool { return e.forget(number) }
}

// forget stops a call; false if it was made or stopped before.
func (e *ending) forget(number int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	i := slices.IndexFunc(e.after, func(w waiting) bool { return w.number == number })
	if i < 0 {
		return false
	}
	e.after = slices.Delete(e.after, i, i+1)
	return true
}
