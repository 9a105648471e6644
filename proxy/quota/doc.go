// Package quota limits the usage of gateway keys, and of all clients together: requests and tokens per
// minute, simultaneous requests, tokens and money per day.
//
//	Admit  charges the expected usage of a request, or refuses it: one call of the store
//	End    charges the difference to the actual usage: in the background, many requests in one call
//
// Meters are in the store, shared by all replicas. While the store's server is unreachable each
// replica uses its share: a limit divided by the number of replicas last seen. Each replica reports
// its number of simultaneous requests regularly, so that those of a crashed replica expire.
//
// Nothing waits here: a refused client learns when to retry. The package is not responsible for
// identifying clients, for the form of errors, or for sharing this process among keys, which package
// proxy does.
package quota
