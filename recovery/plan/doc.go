// Package plan asks a model how an agent that is stuck may go on. Rules decide
// whether it is asked; it only says what to do.
//
//	exchange → trouble: a loop, or the same failure again that no chain explains, or no progress
//	         → a plan at hand, that was made since the trouble's last turn? It goes into Exchange.Plan
//	         → else what is known to help, without a planner: once in a trouble
//	         → else the planner is asked, off the client's sight, for the session's next request;
//	           from the third time on this request waits for it, Config.Wait at most
//	         → prompt: goal, steps, the failure, facts, tools; what tools printed is fenced data
//	         → answer: read tolerantly, checked against its schema and against the request:
//	           the tool exists, its parameters fit, nothing that is risky or forbidden
//	         → band by confidence: act, propose (or wait for a person's approval), escalate
//
// A planner that is late, away, or of no use gives way to a rule: other parameters
// at the first failure, the user at repeated ones. It is asked at most twice for one
// tool and failure; another tool in between begins anew.
//
// A healthy request costs a look at what the stages before found. The package does
// not word notes, stop sessions, judge results or speak to anybody: it calls what
// [Parts] hold.
package plan
