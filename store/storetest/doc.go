// Package storetest helps to test stores: the conformance suite that every
// store.Store passes (Run), and real servers: a single one (Redis, StartRedis),
// one with TLS and a user (StartSecure), Sentinel and Cluster. Servers can be
// paused, killed and restarted on the same port.
//
// On a machine without redis-server these tests fail; they are not skipped.
//
// The package is for tests only and does not know any client library.
package storetest
