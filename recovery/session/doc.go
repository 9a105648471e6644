// Package session says which conversation a request belongs to, and what the
// request alone tells about where that conversation stands.
//
// # Identity
//
// A client's X-Rebound-Session names the conversation with authority: it holds
// over compaction and changed prompts, and from the first request on. Otherwise
// the identity is derived from what a conversation carries along unchanged, with
// no look-up and nothing stored:
//
//	credential | hints | system prompt | first user message |
//	user message that the first answer answers | text, tool names and tool-call ids of the first answer
//
// The first answer tells two runs of the same task apart. A request without
// one has no session yet and needs none. Every part is there because others
// fail: clients number calls from zero, models greet with the same words, runs
// of one task begin with the same prompt.
//
// Of the two possible mistakes the package prefers to split: a session that is
// not recognised loses what was remembered of it, one that is confused with
// another gets the other's breaker. So hints (session headers, cache keys) are
// one more part of the hash. They can separate conversations and never merge
// them: after a client's own compaction, which puts a summary in the place of
// the first messages, a new session begins, hint or not. Only the explicit name
// carries over.
//
// Known saves deriving the same once more for every request of a conversation; it
// decides nothing.
//
// What clients change from request to request is taken out before hashing:
//
//   - content as a string or as parts, null, empty or absent; cache marks; key
//     order, whitespace and escapes of the JSON; white space around a text;
//   - the arguments of calls, which some clients rewrite;
//   - reasoning that stands in <think> at the start of an answer, which some
//     clients send back only for the last turn;
//   - <system-reminder> blocks, which some clients move to the newest message;
//   - dates and times in the system prompt, which some clients rebuild for
//     every request; other parts of it that change (working directory, list of
//     files, mode) do begin a new session, because elsewhere just such a part
//     tells two users of one service apart;
//   - acknowledgements that a client itself puts behind a preamble ("Got it.
//     Thanks for the context!"): they are skipped in the search for the first
//     answer, else all its conversations would be one.
//
// What cannot be told apart from one request: two conversations that are equal
// in all parts, and few-shot examples written as messages, which look like a
// conversation's beginning. A hint or the explicit name separates them.
//
// Everything is keyed with the credential: one tenant's name or id never
// reaches another's session, and ids reveal nothing of texts or secrets.
//
// # Not here
//
// What is remembered of a session, and for how long, is up to those who
// remember it. Loops and tool failures are package inspect's.
package session
