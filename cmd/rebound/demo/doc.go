// Package demo is "rebound demo": it starts a scripted faulty upstream and the
// gateway in this process, on the loopback, lets a small agent meet every fault
// twice, straight and through the gateway, and prints both side by side.
//
// The agent is what most programs have: an HTTP client with the retries, the
// waits and the idea of success of the usual SDKs. The faults are the scripts of
// package upstreamtest; the gateway is the real one, with time limits that are a
// tenth of the defaults.
//
// It is not a benchmark and not a test of the gateway: it shows, on real sockets,
// what a user would see. It needs no network, no key and no configuration.
package demo
