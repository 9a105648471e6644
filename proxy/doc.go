// Package proxy is the HTTP edge of the gateway. It parses a request into an Exchange, has the engine
// of package recovery run it, and writes the result as the response.
//
//	server.go                 routes, drain; the part that a reload replaces is in core.go
//	filter.go auth.go         checks of origin, host and gateway key
//	admin.go login.go         access to /rebound/
//	body.go write.go          slow senders, stalled readers, memory of bodies
//	pool.go limits.go         fair sharing of places and memory among gateway keys; quotas
//	restricted.go paths.go    rules for gateway keys: allowed models and paths
//	completion.go             one completion: request, exchange, last error
//	wires.go                  what differs between wire formats and between APIs
//	attempt.go mend.go        one attempt for the engine, with packages upstream and stream
//	complete.go prefill.go    requests that the gateway makes itself
//	windows.go owners.go      context windows from lists of models; the owner and upstream of each response
//	stored.go                 stored responses that broke off: fetched, or kept and sent in full later
//	thoughts.go               reasoning that a provider requires and clients do not send
//	passthrough.go repeat.go  every other path
//	errors.go                 errors for clients
//
// It does not decide what is retried: package recovery does.
package proxy
