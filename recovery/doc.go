// Package recovery decides how a failed completion is tried again, and what an
// agent's model is told about its own failures.
//
// The life of a request, as the folders name it:
//
//	session    which conversation is this
//	route      which targets serve it, in which order
//	inspect    what its tools answered; does it repeat itself
//	breaker    may it go on; which targets may be asked now
//	plan       a model asked what an agent may do that is stuck
//	annotate   a note for the model, from the recovery chains
//	fit        a smaller history, where the window demands it
//	           … one attempt, made by a Sender (proxy/upstream) …
//	classify   what went wrong, from status, headers, body or broken stream
//	strategy   how to try again differently: wait, move, edit, fit, resume, re-ask
//	conform    the edits of histories and schemas that a target needs
//	repair     the model's answer, checked and mended before the client sees it
//	learn      what was found out: refusals, windows, pace
//
// It has no network, no framework and no database of its own: I/O happens only
// through the small interfaces declared here. The words that the steps share
// (Exchange, Target, Failure, Class, Action, ToolFailure, Draft, Fitted, Event)
// live in this package, so that the steps never import each other.
package recovery
