// Package classify says what went wrong with one upstream attempt.
//
// Evidence (status, headers, body, one event of a stream, a transport error)
// is first read into a neutral Signal: wrappers, nesting and encodings are
// taken off, whoever put them on. An ordered list of rules then names the class:
// codes before phrases, the particular before the general, statuses last; the
// first rule that matches decides. The rules are data, see package rule and
// configs/rules/upstream; only failures without an answer are recognised by
// code. Last, the facts are taken from the text: limits, counts, parameters,
// waits.
//
// A new class is one row in specs.go, a rule, and a sample in testdata; tests
// find what was forgotten.
//
// Everything here is pure, total and bounded: no network, no clock, no state
// that changes, no input that makes it panic or take long. It decides nothing:
// what is done about a class is the engine's affair, guided by the class's
// plan. Of the request it knows only which words of an error stand in it, too: they
// decide nothing about others.
package classify
