// Package agents is the second part of the end-to-end suite: small tasks that
// real agent frameworks, plain loops over SDKs and a command-line agent work on,
// with a scripted model that has the faults of real ones.
//
//	scenario  a task: files, a prompt, how the model plays it, what must hold
//	play      what the model answers, from nothing but the request that it gets
//	Model     the HTTP server that plays, and keeps what it was sent and answered
//	Tap       a proxy before the gateway that keeps what the client really sent and got
//	Evidence  what a leg left behind; checks look at it
//
// The model is deterministic and honest: it knows only what stands in its
// request, so what a client or the gateway lost, it does not know. It is not
// responsible for starting clients: the program e2e is.
package agents
