// Package memory is the store of one process: bounded, expiring, without
// goroutines. It is the whole store of a gateway without a server and the
// fallback of one with a server.
//
// Everything is bounded: the number of items, their size together, and each
// item by the bounds of package store. What is expired is never returned; it is
// removed when it is met and, a few items per write, soonest end first. When
// a bound is reached, the least recently used items go.
//
// The package is not responsible for surviving a restart or for sharing.
package memory
