// Package quota bounds what gateway keys, and all clients together, may use:
// requests and tokens per minute, requests at once, tokens and money per day.
//
//	Admit  charges what a request is expected to use, or refuses it: one call of the store
//	End    charges the difference to what it has used: behind, many requests in one call
//
// Meters are kept in the store, for all replicas. While its server is away each
// replica goes by its share: a limit divided by the replicas that were last seen.
// Requests at once are told as a sum per replica and repeated while they last, so
// that a replica which crashes gives them up by itself.
//
// Nothing waits here: who is refused is told when to come again. The package is
// not responsible for who a client is, for what an error looks like, or for the
// sharing of this process among keys, which package proxy sees to.
package quota
