// Package recoverytest has what the tests of several steps of the recovery
// need in the place of the real thing: an observer that keeps what it is told,
// shared state that is not shared, and readers of requests and of compressed files that fail a test.
// It tests nothing itself.
package recoverytest
