// Package fit shortens a request's history so that the request fits its target's context
// window, only when it must, and in the same way on every later request of the session.
//
// flow.go shows the steps from a request that is too long to the body that goes upstream.
// They use:
//
//	count (a package)
//	           the tokens of a request, anchored on what upstreams reported
//	limits     a target's window, and the reserve for the answer
//	history    the parsed conversation; each message is parsed once
//	shrink     the edits that bring the request to the target size, by tier, the first that suffice:
//	             results, arguments, long
//	                        old results, arguments of old calls, and single texts that take much
//	                        of the budget are cut to one length, the greatest that suffices;
//	                        of a user's message only what was pasted into it
//	             summary, digest
//	                        one text replaces the oldest turns: a model's summary, if there is
//	                        a summariser, and quoted lines
//	             attachments, output
//	                        for a limit of bytes, attachments are removed first; for the
//	                        window, the output limit may be lowered
//	protect    the messages that no edit may change
//	recipe, sealed
//	           an edit as a content hash and numbers, or as an encrypted text: the same
//	           bytes on every replica
//	revision   a history with edits, and the body that they give
//	check      the last check before a fitted request is sent
//	memory, stored
//	           the edits of each session: read when another process may have newer ones,
//	           written before the answer leaves
//	compress   the same for a single request without a session
//
// A shortened text keeps its most informative lines (excerpt): errors, hashes, numbers, paths,
// declarations, and its first and last line. A digest quotes such lines of all removed
// messages, in their order. Files and what became of them, the user's demands, and open
// errors have priority. If the request still does not fit, protection is weakened in steps: first
// for the user's messages and errors in the middle, then for all recent turns but the last.
//
// Parsed messages are cached by their bytes, so that a request of a session with edits costs
// a few milliseconds.
//
// A user's own words are never shortened in place, only pasted text is. User messages beyond
// their share of the budget may give way to a summary or digest, which quotes their demands.
//
// A request whose instructions, task, tools and last turn alone exceed the window is not
// fitted: the upstream's own error is better than a history with holes. The package sends no
// requests itself; summaries go through a recovery.Completer. Choosing a target with a larger
// window is left to the strategies.
package fit
