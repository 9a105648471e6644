// Package plan asks a model how a stuck agent can continue. Rules decide
// whether to ask it; the model only proposes what to do.
//
//	exchange → trouble: the third rung of the ladder (a firm loop, the third same failure, no progress)
//	         → a stored plan for this trouble? It goes into Exchange.Plan
//	         → else a strategy that was learned to help, without a planner: once per trouble
//	         → else a call to the planner, independent of the client's request, for the session's
//	           next request, which waits for it, at most Config.Wait
//	         → prompt: goal, steps, the failure, facts, tools; tool output is fenced as data
//	         → answer: parsed tolerantly, checked against its schema and against the request:
//	           the tool exists, its parameters fit, nothing is risky or forbidden
//	         → band by confidence: the model is told to do it, or it is a proposal (or waits for
//	           approval), or the model asks the user
//
// If the planner is late, unreachable or useless, a heuristic replaces it: other parameters first,
// then ask the user. The planner is asked at most twice for one tool and failure; a different tool in
// between resets the count. After a useless or refused answer it is paused for an hour for that client.
//
// A healthy request costs one look at the findings of earlier stages. The package does not word
// notes, stop sessions, judge results or do I/O of its own: it calls what [Parts] contains.
package plan
