// Package demo implements "rebound demo": it starts the scripted upstream (package upstreamtest)
// and the gateway in this process, runs a small agent through every fault directly and through
// the gateway, and prints both results side by side.
//
// The agent behaves like the usual SDKs: the same retries, waits and criteria for success. The
// gateway is the real one, with a tenth of the default time limits. If the gateway should edit a
// conversation or add a note, the row also checks the request that the upstream gets. It cannot
// show what a model does with a note.
//
//	demo.go     starting, asking and judging
//	faults.go   the rows and their requests
//	talk.go     conversations and tools
//	agent.go    the agent; wires.go reads its streams; calls.go checks its tool calls
//	show.go     the faults after the table, for the status page
//	events.go   the gateway's events
//	table.go    the output
//
// It also implements "rebound crashtest", which runs the same agent and the faults that need one
// upstream against any gateway.
//
//	crash.go       waiting for the gateway, and asking
//	crash_rows.go  the faults and their correct outcomes
//	crash_card.go  the counts and the output
//
// It is neither a benchmark nor a test of the gateway: it shows on real sockets what a user would
// see. The demo needs no network, no API key and no configuration.
package demo
