// Package plan asks a model how an agent that is stuck may go on. Rules decide
// whether it is asked; it only says what to do.
//
//	exchange → trouble: the third rung of the ladder (a firm loop, the third of the same, no progress)
//	         → a plan at hand, that was made since the trouble's last turn? It goes into Exchange.Plan
//	         → else what is known to help, without a planner: once in a trouble
//	         → else the planner is asked, off the client's sight, for the session's next request;
//	           which waits for it, Config.Wait at most
//	         → prompt: goal, steps, the failure, facts, tools; what tools printed is fenced data
//	         → answer: read tolerantly, checked against its schema and against the request:
//	           the tool exists, its parameters fit, nothing that is risky or forbidden
//	         → band by confidence: the model is told, or it is proposed (or waits for a person's
//	           approval), or the user is asked
//
// A planner that is late, away, or of no use gives way to a rule: other parameters first,
// then the user. It is asked at most twice for one tool and failure; another tool in between
// begins anew. After a useless or refused answer it is left alone for an hour, for that client.
//
// A healthy request costs a look at what the stages before found. The package does
// not word notes, stop sessions, judge results or speak to anybody: it calls what
// [Parts] hold.
package plan
