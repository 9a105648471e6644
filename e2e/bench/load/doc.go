// Package load drives one target with chat completions and records what came
// back: how long each answer took, how late each streamed chunk was, what failed.
//
// A closed loop ([Plan] without a rate) sends a connection's next request when
// its last was answered: the load that CPU per request is measured under. An
// open loop sends request i at start + i/rate whatever happened before, and
// counts its latency from that instant, so that a stall of the target is seen by
// every request that was due in it (no coordinated omission).
//
// Every connection holds its own conversation, so that a gateway which keeps
// state per conversation keeps as much of it as it would for as many clients.
// Only loopback addresses are accepted.
package load
