// Package hostiletest makes input that costs careless readers more than its
// size: families that can be made of any size, so that tests can see how the
// work on them grows. All tests of what reads a client's, a tool's or an
// upstream's bytes use the same ones.
package hostiletest
