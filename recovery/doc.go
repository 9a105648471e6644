// Package recovery decides how a failed completion is retried, and which notes an
// agent's model gets about its own failures.
//
// The life of a request, as the folders name it:
//
//	session    which conversation is this
//	route      which targets serve it, in which order
//	inspect    did its tools fail; does it repeat itself
//	breaker    may the session continue; which targets are available
//	plan       a model proposes what a stuck agent can do
//	annotate   a note for the model, from the recovery chains
//	fit        a shorter history, if the context window demands it
//	           … one attempt, made by a Sender (proxy/upstream) …
//	classify   what went wrong, from status, headers, body or broken stream
//	strategy   how to try again differently: wait, move, edit, fit, resume, re-ask
//	conform    edits of histories and schemas that a target needs
//	repair     check and repair the model's answer before the client gets it
//	learn      remember what requests showed: refusals, windows, pace, outcomes of notes
//
// It has no network, no framework and no database of its own: I/O happens only
// through the small interfaces declared here. The words that the steps share
// (Exchange, Target, Failure, Class, Action, ToolFailure, Draft, Fitted, Event)
// live in this package, so that the steps never import each other.
package recovery
