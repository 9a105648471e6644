package recovery

import "fmt"

// Guard runs f, a part of the recovery, in the caller's goroutine. Where it
// breaks, broke (may be nil) is told of it in words for an event's Cause, and
// the result is false: what f was for then goes on as through a plain proxy.
func Guard(part string, f func(), broke func(cause string)) (ok bool) {
	defer func() {
		if p := recover(); p != nil && broke != nil {
			broke(clipCause(fmt.Sprintf("the gateway's %s broke: %v", part, p)))
		}
	}()
	f()
	return true
}

// guard is Guard with an event of this run.
func (r *run) guard(part string, f func()) (ok bool) {
	return Guard(part, f, func(cause string) {
		ev := r.event(EventDegraded, nil)
		ev.Cause = cause
		r.Observer.Observe(ev)
	})
}

// clipCause bounds what a panic says.
func clipCause(s string) string {
	const most = 300
	if len(s) > most {
		s = s[:most]
	}
	return s
}
