package recovery

import "fmt"

// guard runs a part of the recovery. Where that breaks it tells of it and
// returns false: the request then goes on as through a plain proxy.
func (r *run) guard(part string, f func()) (ok bool) {
	defer func() {
		if p := recover(); p != nil {
			ev := r.event(EventRecoveryFailed, nil)
			ev.Cause = clipCause(fmt.Sprintf("the gateway's %s broke: %v", part, p))
			r.Observer.Observe(ev)
		}
	}()
	f()
	return true
}

// clipCause bounds what a panic says.
func clipCause(s string) string {
	const most = 300
	if len(s) > most {
		s = s[:most]
	}
	return s
}
