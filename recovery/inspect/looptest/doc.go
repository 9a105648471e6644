// Package looptest makes labelled agent sessions for testing a loop detector:
// request bodies in the chat format, as an agent sends them one after the
// other. It is for tests only.
//
//	At(seed, i): repeated calls and texts
//	RoundsAt(seed, i): the same for cycles and counters
//	WorkAt(label, seed, i): compilers, tests, linters, deployments and polls of eleven agents
//	At: plan (a style, a task, turns) -> write each message once -> one body per request
//	script.go: the notation of scenarios and situations: calls and their results
//
// Half of the cases or more are healthy look-alikes, such as polling or the
// same test between edits; the others contain a planted loop with the index of
// the body at which a detector may report and of the one at which it must have
// reported. A seed gives the same bytes on every run and machine.
//
// The package uses the standard library only and is independent of the detector
// that it tests: its labels come from what it planted.
package looptest
