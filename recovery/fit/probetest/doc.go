// Package probetest measures which facts of a session survive compression. It is for tests only.
//
//	Probes(seed, session) -> facts that must survive
//	compress the session, or DropOldest(session, budget) for comparison
//	Present(probe, Text(rewritten)) -> found or lost
//
// Synthetic generates a coding agent's session of any size, for when recorded ones are too
// small. The same seed gives the same probes and the same bytes.
//
// The package uses the standard library only and shares no rules with the code that it
// tests. Its own rules for failures and constraints are narrow: a probe is rarely wrong, and
// some facts are not probed.
package probetest
