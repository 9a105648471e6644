// Package memory is the store of one process: bounded, expiring, without
// goroutines. It is the whole store of a gateway without a server, and the local
// store of one with a server.
//
// Everything is bounded: the number of items, their total size, and each item by
// the bounds of package store. Expired items are never returned; a read removes
// the one it finds, and each write removes a few, the earliest first. Beyond a
// bound, the least recently used items are removed.
//
// The package is not responsible for surviving a restart or for sharing.
package memory
