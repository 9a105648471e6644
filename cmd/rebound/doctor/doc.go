// Package doctor is "rebound doctor": it asks the configured targets a few small
// questions and says what the gateway will recover with them, how, and what not.
//
// A target is sent at most ten requests of some 200 tokens, with the gateway's own
// addresses, headers and credentials, and straight, without the gateway in between:
// what is refused or broken is seen as it comes. How a refusal is read and mended, and
// how a cut answer is continued, is the gateway's own code.
//
//	doctor.go     which targets, and what concerns the gateway itself
//	probe.go      one target: requests, refusals and their edits
//	answer.go     what comes back
//	questions.go  the questions, in order
//	window.go     the larger ones, which are announced first
//	recovery.go   what is recovered, and the configuration that fits
//	report.go     what the user reads
//
// It is not a benchmark, and it does not judge models: a model that answers a question
// badly is noted where that matters for agents, no more.
package doctor
