// Package probetest measures what a compression of a session keeps. It is for
// tests only.
//
//	Probes(seed, session) -> facts that must survive
//	compress it, or DropOldest(session, budget) for comparison
//	Present(probe, Text(rewritten)) -> found or lost
//
// Synthetic makes a coding agent's session of any size, for when the real ones
// are too small. A seed gives the same probes and the same bytes on every run.
//
// The package uses the standard library only and shares no rule with the code
// that it tests: what counts as a failure or a constraint is judged here
// narrowly, so that a probe is rarely wrong and some facts are not probed.
package probetest
