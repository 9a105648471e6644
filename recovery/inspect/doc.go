// Package inspect reads what an agent's tools answered: which results are
// failures, and of which kind. Which result answers which call is trajectory's.
//
//	result  → open: the wrappers of known agents, until the program's own text
//	          and the outcome (exit code, error flag) are known
//	        → evidence: structure (JSON error), whether the call was ended for its
//	          time, the summary of a test runner, an exception, then the lines where
//	          errors stand
//	        → Judge: failure or not, category, confidence, line, fingerprint
//
// What recognises lines is data: configs/rules/tools, compiled by package rule. A
// [Rules] scans each line once and tries only the rules that may match it. A rule on
// failures that is certain or likely is a form that only a failing program prints,
// and may decide alone; a guess is a wording and counts only where the call is known
// to have failed, at the head or the end of what it printed. Other rules say what is
// no failure of the call: entries of logs, source, what a search found. Where two
// categories show, a known relation decides or nobody is told. Where a long output
// has no known outcome, only a shell's or a system's form as its last line, or an
// error with its stack, counts. What a reading tool returns is data, whatever it
// says. Messages whose kind is a matter of opinion stay below Threshold.
//
// What a request's history says is the stage's:
//
//	news       → may there be anything to read at all
//	history    → turns, steps, persons' messages; past: what each turn came to, which is
//	             remembered from one request to the next
//	position   → where it stands, for the session's ring
//	loops      → rounds of the same turns, counters, no progress, or a monologue
//	outcomes   → what followed the failures before
//
// and, only where something is wrong: progress (does the agent get on), preferences (what
// persons and instructions rule out; rules in configs/rules/preferences), environment
// (is the computer to blame). Two calls are the same by trajectory.Call.Key, two results
// by step.outcome; waiting.go says when the same again is patience. All of it looks
// back to a person's last new message, and never further than 60 turns.
//
// The package does not decide what to do about a failure, does not recognise
// sessions, and keeps only what it can find out again. All that is exported is safe for
// concurrent use.
package inspect
