// Package store keeps small values with a lifetime, meters, rings, boards and
// bounded logs, and knows nothing of what they mean.
//
//	Store    what every implementation does: store/memory in the process, store/redis on a server
//	Shared   a store on a server that never fails a request: values and logs are local first, and one
//	         writer copies them; bounded time, a breaker, and back by itself
//	Mirror   the boards: a local copy for reads on the request's path, written behind
//	Cache    values in the process, up to a size of all of them
//	Vault    values for who knows a secret, in the process and encrypted in a store
//
// A gateway with a server has a Shared(redis, memory) and a Mirror of its boards; one without has memory and a Mirror
// of that. Boards are used through the Mirror alone, everything else at the store itself. The conformance suite of
// every Store is store/storetest.
//
// The package is not responsible for encodings, for key names, for what is
// worth keeping, or for the configuration file.
package store
