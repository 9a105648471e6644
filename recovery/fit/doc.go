// Package fit makes a request fit its target's context window, only when it
// must, and the same way again on every later request of the session.
//
// flow.go shows the way from a request that is too long to the body that goes upstream, in order.
// What it calls:
//
//	count (a package)
//	           tokens of a request, anchored on what upstreams reported
//	limits     what a target's window is, and the room for an answer
//	history    the conversation as the planner reads it, each message read once
//	plan       which edits bring the request to the target size, the first that suffice:
//	             results, arguments, long
//	                        what is longer is cut to one length, as great as the target allows:
//	                        old results, arguments of old calls, and anything that alone takes
//	                        much of the budget: of a person's message what was pasted into it
//	             summary, digest
//	                        one text in the place of the old turns: what the summariser says,
//	                        if there is one, and lines that the program quotes
//	             attachments, output
//	                        not for the history's tokens: what a limit of bytes asks for first,
//	                        and a lower limit of the answer
//	protect    what no edit touches
//	recipe, sealed
//	           an edit as a content hash and numbers, or as a text that nobody else can
//	           read: the same bytes on every replica
//	edits      a history with edits, and the body that they make
//	check      the last look before anything is sent
//	memory, stored
//	           recipes per session: read where another process may know more,
//	           written before the answer leaves
//	compress   the same for one request alone, without a session
//
// What stays of a text that is cut are the lines that say most (excerpt): errors,
// hashes, numbers, places, declarations, and its ends. A digest is made of such
// lines of all that goes, in their order; files and what became of them, what the
// user demands, and open errors come first. Where even so there is no room, what is
// protected becomes less: the user's words and errors in the middle, and the recent
// turns but the last.
//
// What was read of a message is kept in the process by its bytes (readings), so
// that a request of a session with edits costs some milliseconds.
//
// A person's words are never shortened, only what was pasted. Those that stand beyond their share of
// the budget may be told in a summary or digest, which quotes their beginning.
//
// A request whose instructions, task, tools and last turn alone exceed the window
// is not fitted: the upstream's own error is better than a history with holes.
// Nothing here sends a request; a recovery.Completer does. Whether a target with a larger window
// exists is for the strategies.
package fit
