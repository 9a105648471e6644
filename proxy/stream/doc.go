// Package stream reads streamed answers and delivers them.
//
//	Reader     bytes of an upstream into SSE events, framing kept
//	chat.go    what an event of a chat completion means (the wire format's home)
//	Answer     one attempt's answer: held until it is meaningful (the commit
//	           gate), then passed on event for event (deliver.go); its pauses (pause.go)
//	fit.go     an answer for a client that has the beginning of another
//	seam.go    where a continuation meets what the client already has
//	Whole      an answer that is no stream: read, checked, sent with one write
//	Sink       the client's side: headers, bytes, flushes, keep-alive comments
//	Compose    an answer that the gateway itself writes
//
// Tool calls are not passed on as they come (hold.go). From the first event with
// a call on, events wait in order until the choice has ended:
//
//	calls.go      the calls are put together, however the server sends them
//	wholecalls.go those of a complete message, each of which is there at once
//	Mender        judges them, with the text
//	pass          the very bytes that waited go out, with one write
//	replace       the same in the likeness of what waited (likeness.go), or
//	              spliced into a complete answer (mendwhole.go)
//	ask           nothing goes out: Broken has the flaw, and the answer as it is
//	              for a later delivery (flawed.go)
//
// Text and reasoning never wait, except for text that may be a call that
// the server did not recognise, and where the Mender wants to have it whole. What breaks while a call
// waits leaves nothing of it behind.
//
// It makes no request and does not decide what follows a failure.
package stream
