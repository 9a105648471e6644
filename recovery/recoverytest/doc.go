// Package recoverytest has test doubles and helpers for the packages below
// recovery: an observer that records events, an in-memory board, and functions
// that parse requests and decompress files or fail the test. It has no tests of
// its own.
package recoverytest
