// Package transcript reads a request body without losing a byte of it, and
// edits it in one pass.
//
// Parse checks the bytes once: valid JSON (RFC 8259), bounded nesting, no
// duplicate top-level field, and the types of the few fields that the gateway
// itself depends on. What it returns is an index over the client's bytes, not
// a decoded copy: unknown fields, key order, number spelling and whitespace
// stay what they are. An Editor collects changes and writes them in one splicing
// pass; it copies every byte outside the changes.
//
// The names of a wire format's fields live in that format's reader (chat.go,
// responses.go and the files beside them) and nowhere else. Where a format splits a
// turn of the model into several elements, they are one Message. State says how much a
// request depends on what its account has stored, and so which recoveries may touch it.
//
// Bytes that are not valid UTF-8 pass unchanged: the upstream decides on them.
// Which edits make sense, whether a history is well formed, and how many
// tokens it has, are other packages' business.
package transcript
