// Package stream reads streamed answers and delivers them.
//
//	Reader   bytes of an upstream into SSE events, framing kept
//	chat.go  what an event of a chat completion means (the wire format's home)
//	Answer   one attempt's answer: held until it is meaningful (the commit
//	         gate), then passed on event for event; its tail when it is cut
//	seam.go  where a continuation meets what the client already has
//	Sink     the client's side: headers, bytes, flushes, keep-alive comments
//
// It makes no request and does not decide what follows a failure.
package stream
