// Package proxy is the edge: HTTP in, HTTP out. A request becomes an Exchange,
// the engine of package recovery runs it, and what comes of it becomes a response.
//
//	server.go                 routes, drain; what a reload replaces is in core.go
//	filter.go auth.go         who may come in, from where, and with which key
//	admin.go login.go         who may see /rebound/
//	body.go write.go          slow senders, stalled readers, memory of bodies
//	pool.go limits.go         what all requests share, evenly among gateway keys, and what those may use
//	restricted.go secrets.go  what a key with models may do; what must not leave
//	completion.go             one completion: request, exchange, last error
//	attempt.go mend.go        one attempt, as the engine asks for it: upstream/ and stream/
//	complete.go prefill.go    calls of the gateway's own
//	windows.go owners.go      what lists of models tell; who had a response made, and where
//	stored.go                 stored responses that broke off: fetched, or kept and written out later
//	thoughts.go               reasoning that a provider demands back and clients do not send
//	passthrough.go            every other path
//	errors.go                 what a client reads when nothing helped
//
// It does not decide what is tried again: that is package recovery.
package proxy
