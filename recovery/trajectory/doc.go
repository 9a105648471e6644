// Package trajectory is the model of what an agent did, which the steps of a
// recovery share: what a tool is for, which command line a call runs, which
// programs are in it, whether it waits or only looks, and when two calls are the
// same but for what says nothing.
//
//	request → History: turns, and the results of each with the calls that they
//	         answer; in text protocols the user message after an action
//	Call   → Kind, Line, Command: decided once, when somebody asks
//	line   → Command: parsed as a shell does, bounded in size and depth
//	Call   → Same, Key: without counters, numbers of jobs, pauses, comments and
//	         the model's own words on its call
//	tool   → Ability: what an agent can do with it and what its parameters hold, by
//	         names, schemas and what calls gave it
//	Call   → Deeds: what it does that a person may have ruled out
//	line   → Invocations: the programs with their words, and the files they write
//	names  → Distance, Nearest: how far one is from another
//	Call   → Files, Attempt: what it does to which files, and what two tries share
//	output → Envelope: exit code, streams and error of one that is JSON
//	       → Hash: without times, durations, addresses and temporary names
//
// It does not judge whether a result is a failure, and decides nothing.
package trajectory
