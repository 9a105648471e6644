// Package app builds the gateway from its parts: store, boards, breakers, facts, engine, edge and
// telemetry. It can be embedded: tests, the demo and "rebound run" run it in process.
//
// A reload builds a new core and swaps one pointer. The store, the breakers, the learned facts and
// the listener stay.
package app
