// Package storetest has what tests of stores need: the conformance suite that
// every store.Store passes (Run), and real servers: one (StartRedis, Redis), one
// with TLS and a user (Secure), Sentinel and Cluster. Servers can be paused,
// killed and restarted on the same port.
//
// A machine without redis-server fails these tests rather than skipping them.
//
// The package is for tests only and does not know any client library.
package storetest
