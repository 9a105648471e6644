package ending

import (
	"context"
	"slices"
	"sync"
)

// Context ends alone or with its parent, like one of context.WithCancelCause.
// That one costs a channel that nobody waits for and a map with a single entry,
// for every request and every attempt. [context.AfterFunc], and contexts that
// are derived from this one, use its AfterFunc method.
//
// Err returns the cause itself, because [context.Cause] knows no cause of a
// context that is not the library's. Begin the zero value before use. Safe for
// concurrent use.
type Context struct {
	context.Context             // the parent
	up              *Context    // the parent again, where it is of this type
	place           int         // this one's number among those that up tells
	untie           func() bool // ends the watch over another parent; nil without one

	mu    sync.Mutex
	cause error         // nil until it has ended
	done  chan struct{} // nil until somebody asks for it
	after []waiting     // who is told, in no order
	one   [1]waiting    // the memory of after for the usual number
	last  int           // number of the newest
}

// waiting is who is told of the end: a function that is called, or a context
// that was made of this one.
type waiting struct {
	number int
	call   func()
	child  *Context
}

var _ context.Context = (*Context)(nil)

// Begin ties a context that is not used yet to its parent.
func (c *Context) Begin(parent context.Context) {
	c.mu.Lock() // until the watch is known that End has to stop
	defer c.mu.Unlock()
	c.Context, c.after = parent, c.one[:0]
	if up, ok := parent.(*Context); ok {
		c.up = up
		c.place, c.cause = up.tell(waiting{child: c})
		return
	}
	if parent.Done() != nil {
		c.untie = context.AfterFunc(parent, func() { c.End(context.Cause(parent)) })
	}
}

// AfterFunc is [context.AfterFunc], without its costs where the context has a
// method for that or cannot end; stop is nil then.
func AfterFunc(ctx context.Context, f func()) (stop func() bool) {
	if own, ok := ctx.(interface {
		AfterFunc(func()) func() bool
	}); ok {
		return own.AfterFunc(f)
	}
	if ctx.Done() == nil {
		return nil
	}
	return context.AfterFunc(ctx, f)
}

// End ends it, once; nil means context.Canceled.
func (c *Context) End(cause error) {
	if cause == nil {
		cause = context.Canceled
	}
	c.mu.Lock()
	if c.cause != nil {
		c.mu.Unlock()
		return
	}
	c.cause = cause
	if c.done != nil {
		close(c.done)
	}
	after := c.after
	c.after = nil
	c.mu.Unlock()
	switch {
	case c.up != nil:
		c.up.forget(c.place)
	case c.untie != nil:
		c.untie()
	}
	for _, w := range after {
		if w.child != nil {
			w.child.End(cause)
		} else {
			go w.call()
		}
	}
}

// Done implements context.Context.
func (c *Context) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done = make(chan struct{})
		if c.cause != nil {
			close(c.done)
		}
	}
	return c.done
}

// Err implements context.Context: it is why the context was ended.
func (c *Context) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause
}

// AfterFunc is what [context.AfterFunc] does for this context.
func (c *Context) AfterFunc(f func()) (stop func() bool) {
	number, ended := c.tell(waiting{call: f})
	if ended != nil {
		go f()
		return func() bool { return false }
	}
	return func() bool { return c.forget(number) }
}

// tell has w told of the end, and returns its number; or why it has ended already.
func (c *Context) tell(w waiting) (number int, ended error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause != nil {
		return 0, c.cause
	}
	c.last++
	w.number = c.last
	c.after = append(c.after, w)
	return w.number, nil
}

// forget stops the telling of one; false if that was done or stopped before.
func (c *Context) forget(number int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.after, func(w waiting) bool { return w.number == number })
	if i < 0 {
		return false
	}
	c.after = slices.Delete(c.after, i, i+1)
	return true
}
