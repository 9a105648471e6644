// Package doctor implements "rebound doctor": it tests the configured targets with a few
// small requests and reports which failures the gateway can recover there, and how.
//
// Each target gets at most ten requests of about 200 tokens, with the gateway's own
// addresses, headers and credentials, but directly, so that refusals and faults show
// unchanged. The gateway's own code classifies refusals, edits refused requests and
// continues cut answers.
//
//	doctor.go     choosing the targets, and checks of the gateway itself
//	probe.go      one target: requests, refusals and edits
//	answer.go     parsing answers
//	questions.go  the tests, in order
//	window.go     the long prompts of --window
//	recovery.go   what is recovered, and the suggested configuration
//	report.go     the report for the user
//
// It is not a benchmark and does not judge models: it notes a bad answer only if that
// matters for agents.
package doctor
