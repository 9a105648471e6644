// Package inspect decides which of an agent's tool results are failures, and of which
// category. Package trajectory matches results with calls.
//
//	result  → open: removes the wrappers of known agents, until the program's own text
//	          and the outcome (exit code, error flag) are known
//	        → evidence: structure (JSON error), a time limit, the summary of a test
//	          runner, an exception, then the lines where errors usually are
//	        → Judge: failure or not, category, confidence, line, fingerprint
//
// The rules that match lines are data: configs/rules/tools, compiled by package rule. A
// [Rules] scans each line once and tries only the rules that may match it. A certain or
// likely rule about failures matches a form that only a failing program prints, and may
// decide alone. A guess matches a wording and counts only if the call is known to have
// failed, at the beginning or the end of its output. Other rules match what is not a failure
// of the call: log entries, source code, search results. If two categories match, a known
// relation decides, or the confidence stays below Threshold. In a long output of unknown
// outcome, only a shell's or a system's form as its last line, or an error with its stack,
// counts. The result of a reading tool is data, whatever it says. Messages of debatable
// category stay below Threshold.
//
// The stage inspects the history of a request:
//
//	hasNewResults → is there anything to inspect
//	history       → turns, steps, user messages; summary: the findings of each turn, which
//	                are cached across requests
//	position      → where the history stands, for the session's ring
//	loops         → repeated rounds of turns, counters, no progress, or a monologue
//	outcomes      → what followed earlier failures
//
// Only if something is wrong it also computes progress (does the agent advance), preferences
// (what users and instructions forbid; rules in configs/rules/preferences) and environment
// (is the computer the cause). Two calls are equal by trajectory.Call.Key, two results by
// step.outcome; waiting.go decides when a repetition is waiting. All of this looks back to the
// user's last new message, and at most 60 turns.
//
// The package does not decide what to do about a failure, does not identify sessions, and
// caches only what it can compute again. All exported identifiers are safe for concurrent
// use.
package inspect
