// Package stream reads streamed answers and delivers them.
//
//	Reader     bytes of an upstream into SSE events, framing kept
//	Format     one wire format: a decoder and an encoder (below)
//	Answer     one attempt's answer: held until it is meaningful (the commit
//	           gate), then passed on event for event (deliver.go); its pauses (pause.go)
//	continuation.go an answer for a client that has the beginning of another
//	seam.go    where a continuation meets what the client already has
//	Whole      an answer that is no stream: read, checked, sent with one write
//	Sink       the client's side: headers, bytes, flushes, keep-alive comments
//	Compose    an answer that the gateway itself writes
//
// # Formats
//
// The decoder says what an event, or a complete answer, means (Delta), and puts calls
// together from their pieces (calls). Events that go out as they came are never written
// anew: their bytes are passed on. Everything else goes through the encoder:
//
//	a mended call, text or end     encode, with an edit of a stretch of events
//	a continuation                 encoder(client).event: the client's identity, indexes, numbers
//	an answer of the gateway's own blank, an answer that says nothing, with an edit
//	the gateway's identity         identify
//	a missing finish reason        finish
//	the end of a broken stream     End
//
// Messages (Anthropic's) shows what a format needs: its events are named, its blocks get
// dense indexes, which are counted on behind what the client has; message.id stays that of
// the first answer and usage, which is cumulative, counts both; thinking goes out once, as
// a signature holds for its own block only; pings keep an answer alive (Ping).
//
// A new format is a type with the five methods of Format: its decoder in one file, its
// encoder in another. testdata/streams shows whole streams that go in and come out.
//
// Tool calls are not passed on as they come (hold.go). From the first event with
// a call on, events wait in order until the choice has ended:
//
//	calls.go      the calls are put together, however the server sends them
//	Mender        judges them, with the text
//	pass          the very bytes that waited go out, with one write
//	replace       the encoder changes what waited, or a complete answer (mendwhole.go)
//	ask           nothing goes out: Broken has the flaw, and the answer as it is
//	              for a later delivery (flawed.go)
//
// Text and reasoning never wait, except for text that may be a call that
// the server did not recognise, if the Mender wants to have it whole, and for two events of
// Messages that go out with the next one (Delta.late). What breaks while a call waits leaves
// nothing of it behind.
//
// It makes no request and does not decide what follows a failure.
package stream
