// Package breaker knows what may be called now: which targets (Set), and
// whether a conversation may go on at all (Sessions, session.go).
//
// Three things keep a target from being asked: its breaker is open (the share
// of failures in a sliding window was too high), its key is cooling down (the
// upstream said how long), or, for blind resends only, too many of them are
// under way. What one replica finds out is posted on boards that all replicas
// read; counting is local.
//
// It makes no request and no decision about one: the engine asks Check and
// Begin, and reports with Done.
package breaker
