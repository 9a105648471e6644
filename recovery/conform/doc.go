// Package conform changes a request so that a target takes it which refused its
// history, its tool schemas or its content.
//
//	pairing.go  every call answered once, right behind it
//	turns.go    who speaks when, and that everybody says something
//	schema.go   JSON Schemas without what a provider does not know
//
// Which of the mends a refusal calls for is a strategy's decision; that a
// target needs it is remembered, so that later requests are right the first
// time. Every mend leaves alone what is well formed already: a healthy history
// goes out as the client sent it.
package conform
