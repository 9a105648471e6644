// Package repair validates what the model answered against what its request
// asked for, and mends what can be mended without a guess.
//
// The flow of Mend, which judges one complete answer:
//
//	marks      an imitation of the gateway's compression marks: ask again
//	leaks      calls that stand in the text (leak.go), in a model's own dialect: its
//	           marks (dialect_marks.go), and how a call is written behind one (dialect*.go)
//	calls      for each call: name (names.go), then arguments (call.go):
//	             valid as they are → untouched
//	             unwrap (unwrap.go), read tolerantly (tolerant*.go), coerce by the schema (coerce.go)
//	             each step only if its result validates (schema*.go), else ask again
//	           tools that change something get only lossless unwrapping (guard.go)
//	ids        missing and repeated ids (mender.go)
//	demands    a required call that is missing; a finish that contradicts the content
//	content    JSON that response_format demands (content.go)
//
// The rules that all steps keep: a valid answer is never touched; no text of a
// string is invented or altered; brackets may be closed, values never are; what
// may mean two things is asked again; all time and memory is bounded (limits in
// config.go), and beyond the bounds an answer is not judged.
//
// A Lookout (lookout.go) says which text of a stream may be a call: what leaks may
// find at the end is not shown before. A Watch (watch.go) looks for runaway repetition while an answer comes in.
//
// Not here: holding and releasing bytes, asking again, counting how often, and
// answers with several choices, log probabilities or audio, which the caller
// does not have judged.
package repair
