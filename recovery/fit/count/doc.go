// Package count says how many tokens a request has, as its upstream will report them.
//
//	count, tools, media, image
//	           the tokens of a body: exact for plain conversations of OpenAI's models,
//	           of everything else an approximation
//	meter      the same, with a memory of the parts that were counted
//	calibrate  how each model's reports differ from what is counted
//	anchor     what an upstream reported for the beginning of this very prompt: only what
//	           follows it has to be estimated
//
// How large a window is, and what becomes of a request that exceeds it, is not its concern.
package count
