// Package hostiletest generates input that is expensive for careless readers: families of any size, so that
// tests can measure how the work grows. All tests of code that reads a client's, a tool's or an upstream's bytes
// use the same families.
package hostiletest
