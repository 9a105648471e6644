// Package demo is "rebound demo": it starts the scripted upstream (package upstreamtest) and the
// gateway in this process, on the loopback, lets a small agent meet every fault
// twice, straight and through the gateway, and prints both side by side.
//
// The agent is what most programs have: an HTTP client with the retries, the
// waits and the idea of success of the usual SDKs. The gateway is the real one,
// with time limits that are a tenth of the defaults. Where a conversation is changed or a note added, the row
// also looks at what the upstream got. What a model makes of a note no script can
// show: it is only said that one went out.
//
//	demo.go     starts everything, asks, gathers
//	faults.go   the rows, and the requests of each
//	talk.go     conversations and tools
//	agent.go    the agent; wires.go how it reads streams; calls.go what it makes of tool calls
//	events.go   what the gateway says it did
//	table.go    what the user reads
//
// The agent and the faults that need one upstream are also "rebound crashtest": there the
// gateway is any, and outside.
//
//	crash.go       waits for the gateway, asks
//	crash_rows.go  which faults, and what is right
//	crash_card.go  what is counted and printed
//
// It is not a benchmark and not a test of the gateway: it shows, on real sockets,
// what a user would see. It needs no network, no key and no configuration.
package demo
