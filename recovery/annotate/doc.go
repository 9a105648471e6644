// Package annotate writes the note that tells a model how to go on after its
// tools failed, or after it began to repeat itself.
//
//	exchange → ladder (of package inspect): the failure, how often the same and its kind
//	           happened, how many notes about the kind were due before
//	         → first time: nothing, unless a finder has a fact that the result does not
//	           have: a path that an earlier result printed, the tool or parameter that
//	           exists, the program that is here instead, …
//	         → again: the fact as the very call to make, else the next strategy of the
//	           kind's chain that the request can follow, ordered by confidence ×
//	           simplicity or by what a Chooser has learned; none twice; then the user is
//	           asked, once; then nothing
//	         → a loop: when it is found, firmly the third time, with the user the fourth
//	         → note: bounded, one form, quotes marked as data → Exchange.Guidance
//
// The chains are data. Everything from the exchange to the note is pure and
// deterministic, so a client's retry and another replica get the same note.
// What tools printed is searched with bounds, newest first, and quoted on one
// line without control characters and marks; it is never an instruction.
//
// The package does not detect failures or loops, does not stop sessions, and
// keeps nothing. Where the note goes is the transcript's business: the tail.
package annotate
