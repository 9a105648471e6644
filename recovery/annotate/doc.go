// Package annotate writes the note that tells a model how to continue after its
// tools failed, or after it began to repeat itself.
//
//	exchange → ladder (of package inspect): the failure, how often this failure and its
//	           kind happened, how many notes about the kind were due before
//	         → first time: no note, unless a finder has a fact that is not in the result:
//	           a path that an earlier result printed, the tool or parameter that
//	           exists, an installed program that does the same, …
//	         → again: the fact as the exact call to make, or else the next strategy of the
//	           kind's chain that the request can follow, ordered by confidence ×
//	           simplicity or by what a Chooser has learned; each strategy once; then one
//	           note to ask the user; then none
//	         → a loop: a note when it is found, a firm note the third time, ask the user
//	           the fourth time
//	         → note: limited length, one form, quotes marked as data → Exchange.Guidance
//
// The chains are data. Everything from the exchange to the note is pure and
// deterministic, so a client's retry and another replica get the same note.
// The package searches tool output within limits, newest first, and quotes it on one
// line without control characters and role markers; a quote is never an instruction.
//
// The package does not detect failures or loops, does not stop sessions, and
// stores nothing. Package transcript decides where the note goes: at the end.
package annotate
