// Package classify names the class of a failed upstream attempt.
//
// It first reads the evidence (status, headers, body, one stream event, a
// transport error) into a neutral Signal, without the wrappers, nesting and
// encodings that gateways add. An ordered list of rules then names the class:
// codes before phrases, specific rules before general ones, statuses last. The
// first rule that matches decides. The rules are data, see package rule and
// configs/rules/upstream; only failures without an answer are recognised in
// code. Last, the facts are read from the text: limits, counts, parameters,
// waits.
//
// A new class needs a row in specs.go, a rule, and a sample in testdata; tests
// report a missing one.
//
// Everything here is pure, total and bounded: no network, no clock, no mutable
// state, and no input makes it panic or run long. The package does not recover:
// the engine does, by the class's plan. It uses the request only to find text
// that an error quotes from it: quoted text alone never puts a failure into a
// class that affects other requests.
package classify
