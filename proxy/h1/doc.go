// Package h1 is an HTTP/1.1 client for one hop to an upstream: [Transport] is an
// [net/http.RoundTripper]. Responses are parsed by net/http ([net/http.ReadResponse]).
//
// It exists because net/http's Transport is expensive for a gateway: there each connection has a
// goroutine that reads and one that writes, and each request is handed to both and back. Here the
// goroutine that makes a request also writes it and reads its response. The error types also show in
// which phase a request failed.
//
// The steps of a request:
//
//	RoundTrip    build the request's head, and validate every byte of it
//	pool         take the idle connection that was used last, if its peer is quiet; else dial
//	exchange     send, read heads until one is final, return the response
//	end of body  the connection returns to the pool; on any other end it is closed
//
// Goroutines are started only for a body that is not in memory or larger than 64 KiB, because a server
// may answer before it has read all of it, and by package context when a request is cancelled.
//
// Request bodies. A body counts as in memory if the request has GetBody. Such a body is no longer used
// once RoundTrip has returned an error or the response's body has ended or was closed: its buffer may
// be reused. Other bodies must not be reused until they are closed, as with net/http.
//
// Response bodies. The connection is kept only if the body was read up to io.EOF, or if its rest was
// already buffered at Close. A caller that stops at the last event of a stream should therefore read
// on for a moment, or the next request needs a new connection.
//
// Retries. There is one, which other layers do not notice: the request is sent once more on a new
// connection if its body is in memory and a reused connection failed before a byte of a response, in
// one of two ways. The peer had closed the connection, within two seconds of writing, and the request
// is idempotent or was not written completely. Or the peer has died silently and acknowledged nothing.
//
// Unexpected bytes. A connection on which a server sends more than the response is closed. Because
// such bytes could be taken for the response to another client's request, connections to this host are
// not reused from then on.
//
// The package is not responsible for redirects, cookies, proxies, compression, HTTP/2, upgrades (101
// is an error) and hop-by-hop headers, nor for the time limit of a response, which is the request's
// context. It adds no headers except Host, Content-Length, Transfer-Encoding and, if asked,
// Connection: close.
package h1
