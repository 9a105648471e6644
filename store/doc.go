// Package store keeps small values with a lifetime, meters, rings, boards and
// bounded logs, and knows nothing of what they mean.
//
//	Store    what every implementation does: store/memory in the process, store/redis on a server
//	Shared   a server-backed store that never fails a request: bounded time, a breaker,
//	         local state while the server is away, and back by itself
//	Mirror   a local copy of boards for reads on the request's path, written behind
//	Cache    values in the process, up to a size of all of them
//	Vault    values for who knows a secret, in the process and encrypted in a store
//
// A gateway with a server reads and writes Mirror(Shared(redis, memory)); one
// without reads and writes Mirror(memory). The Mirror is for boards and logs;
// values, meters and rings are read and written at the store itself. The conformance suite of every
// Store is store/storetest.
//
// The package is not responsible for encodings, for key names, for what is
// worth keeping, or for the configuration file.
package store
