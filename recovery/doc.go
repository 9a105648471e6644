// Package recovery decides how a failed completion is tried again.
//
// The life of a request, as the folders name it:
//
//	session    which conversation is this
//	route      which targets serve it, in which order
//	breaker    which of them may be asked now
//	           … one attempt, made by a Sender (proxy/upstream) …
//	classify   what went wrong, from status, headers, body or broken stream
//	strategy   how to try again differently: wait, move, edit, resume
//	learn      what was found out: refused parameters, limits, pace
//
// It has no network, no framework and no database of its own: I/O happens only
// through the small interfaces declared here. The words that the steps share
// (Exchange, Target, Failure, Class, Action, Event) live in this package, so
// that the steps never import each other.
package recovery
