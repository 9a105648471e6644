//go:build linux

// Command bench measures what the gateway costs, next to what else could stand
// in its place, over one mock upstream and in one run:
//
//	direct        no gateway: what upstream and load generator take themselves
//	nginx         the distribution's package, tuned
//	ReverseProxy  the standard library's, tuned
//	Rebound       with its default configuration
//
// The gateway under test has one core to itself, the upstream and the load
// generator share another. Every round drives all targets in turn and every
// comparison is made within a round, so that a noisy machine disturbs both sides
// alike: trust the ratios and the differences, not the absolute figures. CPU per
// request is what moves least.
//
//	go run ./e2e/bench            the whole run, about ten minutes
//	go run ./e2e/bench -quick     one short round, to see that it works
//
// Packages: mock is the upstream, load the load generator, reverseproxy the
// yardstick. Here: targets and processes, scenarios (what is measured), results
// and tables, gates.
package main
