// Package redact removes secrets from text. What the gateway shows of others' text, or of its own
// configuration, passes one of three functions, depending on the origin of the text:
//
//	Known   exactly the gateway's own keys, in what clients read: errors, their headers, streams
//	Text    whatever looks like a credential, in causes and log lines, which contain text of others
//	Quote   keys and passwords, in the operator's own configuration, whose rest must stay readable
//
// Known leaves everything else unchanged, because clients process it. Text removes too much rather
// than too little. [Hidden] replaces a secret.
//
// The package does not decide which texts are shown, and does not know the purpose of a secret:
// package proxy removes keys that a client may not forward, and the planner judges files that may not
// be read.
package redact

// Hidden replaces a secret.
const Hidden = "[redacted]"
