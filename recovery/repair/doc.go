// Package repair validates a model's answer against its request, and repairs
// what can be repaired without a guess.
//
// Mend judges one complete answer in this order:
//
//	marks      the answer imitates the gateway's compression marks: ask again
//	text calls calls written into the text (leak.go) in a model's own dialect: the marks
//	           that begin a call (dialect_marks.go) and the call itself (dialect*.go)
//	calls      for each call: name (names.go), then arguments (call.go):
//	             valid as they are → untouched
//	             unwrap (unwrap.go), parse tolerantly (tolerant*.go), coerce by the schema (coerce.go)
//	             a step counts only if its result validates (schema*.go), else ask again
//	           tools that change something get only lossless steps (guard.go)
//	ids        missing and repeated ids (answer.go)
//	required   a required call that is missing, or an answer of reasoning only (answer.go)
//	content    the JSON that response_format requires (content.go)
//	finish     a finish reason that contradicts the content (answer.go)
//
// All steps keep these rules: a valid answer is never changed; no text of a
// string is invented or altered; missing brackets may be added, values never;
// an ambiguous answer is asked for again; time and memory are bounded (limits in
// config.go), and what exceeds the bounds is not judged.
//
// A Lookout (lookout.go) reports which text of a stream may belong to a call, so that
// the client does not get it too early. A Watch (watch.go) detects runaway repetition in a stream.
//
// Not here: holding and releasing bytes, asking again, and counting how often.
// Answers with several choices, log probabilities or audio are not judged.
package repair
