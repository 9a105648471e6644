package recovery

import "fmt"

// Guard runs f, a part of the recovery, in the caller's goroutine. If f panics, Guard calls broke (which may be nil) with
// a text for an event's Cause and returns false. The caller then continues without that part.
func Guard(part string, f func(), broke func(cause string)) (ok bool) {
	defer func() {
		if p := recover(); p != nil && broke != nil {
			broke(clipCause(fmt.Sprintf("the gateway's %s broke: %v", part, p)))
		}
	}()
	f()
	return true
}

// guard calls Guard and sends an event if f panics.
func (r *run) guard(part string, f func()) (ok bool) {
	return Guard(part, f, func(cause string) {
		ev := r.event(EventDegraded, nil)
		ev.Cause = cause
		r.Observer.Observe(ev)
	})
}

// clipCause shortens the text of a panic.
func clipCause(s string) string {
	const most = 300
	if len(s) > most {
		s = s[:most]
	}
	return s
}
