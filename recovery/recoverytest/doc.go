// Package recoverytest has what the tests of several steps of the recovery
// need in the place of the real thing: an observer that keeps what it is told,
// and shared state that is not shared. It tests nothing itself.
package recoverytest
