// Package annotate writes the note that tells a model how to go on after its
// tools failed, or after it began to repeat itself.
//
//	exchange → failure: the most certain of the new results, of the ten
//	           categories, at or above Config.Confidence; and the firmest loop
//	         → chain of its category, minus what is forbidden, risky or needs a
//	           tool that the request does not offer
//	         → order by confidence × simplicity, or by what a Chooser has learned
//	         → steps: each template's slots are filled from this conversation
//	           (the path that an earlier result printed, the tool that exists);
//	           what occurrence 1, 2, … put first is not proposed again; at most
//	           two, then ask_user
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
