// Package trajectory models what an agent did, for all steps of a recovery: what a tool
// is for, which command line a call runs, which programs are in it, whether it waits or only
// reads, and when two calls are equivalent.
//
//	request → History: turns, and the results of each with the calls that they
//	         answer; in text protocols the user message after an action
//	Call   → Kind, Line, Command: computed once, when needed
//	line   → Command: parsed as a shell does, with limits in size and depth
//	Call   → Key: without counters, numbers of jobs, pauses, comments and
//	         the model's own comments on its call
//	tool   → Tool: what an agent can do with it and what its parameters hold, by
//	         names and schemas
//	Call   → Deeds: what it does that a person may have forbidden
//	line   → Invocations: the programs with their words, and the files they write
//	names  → Distance, Nearest: similarity of names
//	Call   → Files, Attempt: the files it uses, and what two attempts share
//	output → Envelope: exit code, streams and error of a JSON result
//	       → Hash: without times, durations, addresses and temporary names
//
// It does not judge whether a result is a failure, and decides nothing.
package trajectory
