// Package inspect reads what an agent's tools answered: which results are new,
// which of them are failures, and of which kind.
//
//	request → Results: the tool results since the last assistant turn, with
//	          their calls; in text protocols the user message after an action
//	result  → open: the wrappers of known agents, until the program's own text
//	          and the outcome (exit code, error flag) are known
//	        → evidence: structure (JSON error), whether the call was ended for its
//	          time, the summary of a test runner, an exception, then the lines where
//	          errors stand, by the tables of rules
//	        → Judge: failure or not, category, confidence, line, fingerprint
//
// The tables are one file per kind of evidence. A strict rule is a form that
// only a failing program prints and may decide alone; a loose one is a wording
// and counts only where the call is known to have failed, at the head or the
// end of what it printed. Where two categories show, a known relation decides or
// nobody is told. Where a long output has no known outcome, only a
// shell's or a system's form as its last line, or an error with its stack,
// counts. What a reading tool returns is data, whatever it says; lists of errors,
// tests' names and sentences on what an error means are none. Messages whose
// kind is a matter of opinion stay below Threshold.
//
// The package does not decide what to do about a failure, does not recognise
// sessions and keeps nothing. Everything in it is pure and safe for concurrent use.
package inspect
