// Package session identifies the conversation that a request belongs to. From the request alone it also finds the turn of
// the user, and whether the request is a side request of the client.
//
// # Identity
//
// A client's X-Rebound-Session alone decides the identity: it stays valid after compaction and changed prompts, and works
// from the first request on. Otherwise the identity is derived from the parts of a conversation that do not change,
// without any stored data:
//
//	credential | hints | system prompt | first user message |
//	user message that the first answer answers | text, tool names and tool-call ids of the first answer
//
// The first answer distinguishes two runs of the same task. A request without an answer has no session yet and needs none.
// No part alone is enough: clients number calls from zero, models greet with the same words, runs of one task begin with
// the same prompt.
//
// Splitting a conversation is the smaller mistake: a session that is not recognised loses its remembered state, but a
// session that is confused with another gets the other's breaker. So hints (session headers, cache keys) are one more part
// of the hash. They can separate conversations and never merge them: after a client's own compaction, which replaces the
// first messages with a summary, a new session begins, with or without a hint. Only an explicit name continues the
// session.
//
// Known caches the derived identities, so that they are not derived again for every request of a conversation.
//
// Clients change some parts from request to request. These do not affect the hash:
//
//   - content as a string or as parts, null, empty or absent; cache marks; key
//     order, whitespace and escapes of the JSON; white space around a text;
//   - the arguments of calls, which some clients rewrite;
//   - reasoning that stands in <think> at the start of an answer, which some
//     clients send back only for the last turn;
//   - <system-reminder> blocks, which some clients move to the newest message;
//   - dates and times in the system prompt, which some clients rebuild for
//     every request; other changes of the prompt (working directory, list of
//     files, mode) do begin a new session, because for other clients such a
//     part is the only difference between two users of one service;
//   - acknowledgements that a client itself puts after a preamble ("Got it.
//     Thanks for the context!"): they are skipped in the search for the first
//     answer, otherwise all conversations of the client would be one.
//
// One request cannot distinguish two conversations that are equal in all parts, nor few-shot examples written as messages,
// which look like a conversation's beginning. A hint or the explicit name separates them.
//
// All hashes are keyed with the credential: one tenant's name or id never selects another's session, and ids reveal
// nothing about texts or secrets.
//
// # Not here
//
// The package stores no state of a session; the packages that use it decide what they store, and for how long. Package
// inspect finds loops and tool failures.
package session
