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
// Where something is wrong it also says whether the agent gets on (Progress), and what
// persons and instructions rule out (Preferences; rules in configs/rules/preferences).
//
// The package does not decide what to do about a failure, does not recognise
// sessions and keeps nothing. Everything in it is pure and safe for concurrent use.
package inspect
