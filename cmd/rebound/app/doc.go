// Package app is the one place that knows and wires every part of the gateway:
// store, boards, breakers, facts, engine, edge and telemetry. It is embeddable:
// tests and the demo run it in process.
//
// A reload builds a new core and swaps one pointer; the store, the breakers,
// what was learnt, and the listener live on.
package app
