package ending

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// ended is a context that has begun, with what ends its parent.
func ended(t *testing.T) (*Context, context.CancelCauseFunc) {
	t.Helper()
	parent, cancel := context.WithCancelCause(t.Context())
	e := &Context{}
	e.Begin(parent)
	return e, cancel
}

// It ends as a context of the library does: alone or with its parent, once, and
// with everything that was made of it.
func TestEnding(t *testing.T) {
	first, second := errors.New("first"), errors.New("second")
	for name, c := range map[string]struct {
		end  func(e *Context, parent context.CancelCauseFunc)
		want error
	}{
		"alone":       {func(e *Context, _ context.CancelCauseFunc) { e.End(first) }, first},
		"no cause":    {func(e *Context, _ context.CancelCauseFunc) { e.End(nil) }, context.Canceled},
		"with parent": {func(_ *Context, parent context.CancelCauseFunc) { parent(first) }, first},
		"twice":       {func(e *Context, _ context.CancelCauseFunc) { e.End(first); e.End(second) }, first},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, parent := ended(t)
				defer parent(nil)
				child, cancel := context.WithCancel(e)
				defer cancel()
				called := 0
				context.AfterFunc(e, func() { called++ })
				stopped := context.AfterFunc(e, func() { t.Error("a stopped call was made") })
				if !stopped() || stopped() {
					t.Error("stopping is not told once")
				}
				early := e.Done()
				if e.Err() != nil || context.Cause(e) != nil || child.Err() != nil {
					t.Fatal("it ended before its time")
				}
				c.end(e, parent)
				synctest.Wait()
				<-early
				<-e.Done()
				<-child.Done()
				if e.Err() != c.want || context.Cause(e) != c.want || context.Cause(child) != c.want {
					t.Errorf("ended by %v, %v, the child by %v; want %v", e.Err(), context.Cause(e), context.Cause(child), c.want)
				}
				context.AfterFunc(e, func() { called += 10 })
				synctest.Wait()
				if called != 11 {
					t.Errorf("calls: %d", called)
				}
			})
		})
	}
}

// What is asked of it only after its end is told that at once, and its parent
// has forgotten it.
func TestEndingIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, parent := ended(t)
		e.End(nil)
		if e.untie() {
			t.Error("the parent still watches")
		}
		<-e.Done()
		if stop := e.AfterFunc(func() {}); stop() {
			t.Error("a call that was made was stopped")
		}
		parent(errors.New("later"))
		synctest.Wait()
		if !errors.Is(e.Err(), context.Canceled) {
			t.Error(e.Err())
		}
	})
}

// One that was made of another of its kind ends with it, at once and for the
// same cause, and is forgotten by it where it ended before.
func TestEndingOfAChild(t *testing.T) {
	cause := errors.New("cause")
	begun := func(parent context.Context) *Context {
		c := &Context{}
		c.Begin(parent)
		return c
	}
	up := begun(context.Background())
	early, late := begun(up), begun(up)
	early.End(nil)
	if up.Err() != nil || len(up.after) != 1 {
		t.Fatalf("the end of one: %v, %d are still told", up.Err(), len(up.after))
	}
	up.End(cause)
	if !errors.Is(early.Err(), context.Canceled) || late.Err() != cause || context.Cause(late) != cause {
		t.Errorf("ended by %v and %v", early.Err(), late.Err())
	}
	if after := begun(up); after.Err() != cause {
		t.Errorf("begun after the end: %v", after.Err())
	} else {
		<-after.Done()
		after.End(nil)
	}
}
