// Package fit makes a request fit its target's context window, only when it
// must, and the same way again on every later request of the session.
//
//	meter      tokens of a request, anchored on what upstreams reported
//	limits     what a target's window is
//	plan       which edits bring the request to the target size, the first tiers that suffice:
//	             reread     older results of a call that was made again
//	             overtaken  files that were changed after they were read
//	             results    old results to first, last and error lines
//	             arguments  old call arguments to their keys
//	             long       a single message that is too long
//	             summary    the oldest turns, as the summariser tells them
//	             digest     the oldest turns, as the program itself can quote them
//	protect    what no edit touches
//	recipe     an edit as a content hash and numbers: the same bytes on every replica
//	check      the last look before anything is sent
//	memory     recipes per session: read where another process may know more,
//	           written before the answer leaves
//	Fitter     the contract with the engine
//
// The digest needs nobody, and is for requests that would otherwise not fit: the
// user's demands word for word, files and what became of them, open errors,
// commands, and what was going on. It then goes down to the target, and takes the
// place of earlier digests and summaries without losing what they tell. Where
// even so there is no room, what is protected becomes less: the user's words and
// errors in the middle, large recent results, the recent turns but the last.
//
// What was read of a message is kept in the process by its bytes (readings), so
// that a request of a session with edits costs some milliseconds.
//
// A person's words are never shortened. Those that stand beyond their share of
// the budget may be told in a summary or digest, which quotes their beginning.
//
// A request whose instructions, task, tools and last turn alone exceed the window
// is not fitted: the upstream's own error is better than a history with holes.
// Nothing here sends a request; a recovery.Completer does. Whether a target with a larger window
// exists is for the strategies.
package fit
