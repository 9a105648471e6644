// Package redact takes secrets out of text. What the gateway shows of others' text, or of its own
// configuration, goes through one of three functions; which one depends on whose text it is:
//
//	Known   the gateway's own keys, exactly, in what clients read: errors, their headers, streams
//	Text    whatever looks like a credential, in causes and log lines: others wrote them, a log keeps them
//	Quote   keys and passwords, in the operator's own configuration: all else has to stay readable
//
// Known leaves everything else byte for byte, because a client works with it. Text errs on the side of
// taking out too much. In the place of a secret stands [Hidden].
//
// It does not decide which texts are shown, and it does not know what a secret is for: keys that a
// client may not forward end in package proxy, and files that may not be read are judged by the planner.
package redact

// Hidden takes the place of a secret.
const Hidden = "[redacted]"
