// Package proxy is the edge: HTTP in, HTTP out. A request becomes an Exchange,
// the engine of package recovery runs it, and what comes of it becomes a response.
//
//	server.go       routes, limits, drain
//	auth.go         who may use the gateway
//	pool.go         what all requests share, evenly among gateway keys
//	limits.go       what gateway keys may use, charged by package quota
//	chat.go         one completion: request, exchange, last error
//	attempt.go      one attempt, as the engine asks for it: upstream/ and stream/
//	passthrough.go  every other path
//	errors.go       what a client reads when nothing helped
//
// It does not decide what is tried again: that is package recovery.
package proxy
