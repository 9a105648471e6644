// Package stream reads streamed answers and delivers them.
//
//	Reader     bytes of an upstream into SSE events, framing kept
//	Format     one wire format: a decoder and an encoder (below)
//	Answer     one attempt's answer: held until it is meaningful (the commit
//	           gate), then passed on event for event (deliver.go); its pauses (pause.go)
//	continuation.go an answer for a client that has its beginning from another attempt
//	seam.go    where a continuation meets the text that the client has
//	Whole      a complete JSON answer: read, checked, sent in one write
//	Sink       the client's side: headers, bytes, flushes, keep-alive comments
//	Compose    an answer that the gateway itself writes
//
// # Formats
//
// The decoder returns the meaning of an event, or of a complete answer (Delta), and assembles calls
// from their pieces (calls). Unchanged events keep their bytes. Everything else goes through the
// encoder:
//
//	a repaired call, text or end   encode, with an edit of a stretch of events
//	a continuation                 encoder(client).event: the client's identity, indexes, numbers
//	an answer of the gateway's own blank, an empty answer, with an edit
//	the gateway's identity         identify
//	a missing finish reason        finish
//	the end of a broken stream     End
//
// Messages (Anthropic's) is an example of what a format needs. Its events have names. Blocks have
// consecutive indexes, which continue after the client's. message.id stays that of the first attempt;
// usage is cumulative and counts both. Thinking is sent only once, because a signature is valid for
// its own block only. Pings keep an answer alive (Ping).
//
// A new format is a type in this package with the methods of Format, its decoder, in one file, and
// those of encoder in another. testdata/streams has examples of whole streams, input and output.
//
// Tool calls are held back (hold.go). From the first event with a call on, events wait in order until
// the choice has ended:
//
//	calls.go      assembles the calls, in whatever form the server sends them
//	Mender        judges them, with the text
//	pass          the held bytes are sent unchanged, in one write
//	replace       the encoder changes the held events, or a complete answer (mendwhole.go)
//	ask           nothing is sent: Broken has the flaw, and the unchanged answer
//	              for a later delivery (flawed.go)
//
// Text and reasoning never wait, with two exceptions: text that may be a call that the server did not
// recognise, if the Mender wants to see it complete, and events of Messages that are sent with the
// next one (Delta.late). If an answer breaks while a call is held, the client gets nothing of the
// call.
//
// The package makes no requests and does not decide what follows a failure.
package stream
