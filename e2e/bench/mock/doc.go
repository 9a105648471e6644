// Package mock is the benchmark's upstream: a chat completions endpoint over a
// hand-written HTTP/1.1 loop, one goroutine per connection, at about 10 µs of
// CPU per answer. It shares its core with the load generator, so what it saves
// is what the comparison does not see.
//
// The model's name says how to answer, so that a gateway need not forward any
// header: "m-lat50-n100-d20-b4000-ts" waits 50 ms; as JSON it answers 4,000
// bytes of content; as a stream 100 chunks, 20 ms apart. With "ts" each chunk
// carries the time it was sent as ~nanoseconds~, from which the load generator
// takes the delay of every single chunk.
//
// It trusts its callers: it does not validate JSON, knows no faults and reads
// bodies of a declared length only. The upstream for tests of behaviour is
// proxy/upstreamtest.
package mock
