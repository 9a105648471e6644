// Package h1 is an HTTP/1.1 client for one hop to an upstream: [Transport] is an
// [net/http.RoundTripper]. Responses are parsed by net/http ([net/http.ReadResponse]).
//
// It exists because of what net/http's Transport costs a gateway. There, each
// connection has a goroutine that reads and one that writes, and each request is
// handed to both and back. Here the goroutine that makes a request writes it and
// reads its response. It also tells in which phase a request failed.
//
// The life of a request:
//
//	RoundTrip    write the head of the request, check every byte of it
//	pool         take the idle connection that was used last, if its peer is quiet; else dial
//	exchange     send, read heads until one is final, hand out the response
//	end of body  the connection goes back to the pool; anything else closes it
//
// A goroutine is started only to send a body that is not in memory or larger than
// 64 KiB, since a server may answer before it has read all of it; and by package
// context when a request is cancelled.
//
// Request bodies. A body counts as in memory if the request has GetBody. Such a
// body is not touched any more once RoundTrip has returned an error or the
// response's body has ended or was closed: its buffer may be used again. Other
// bodies must not be used again until they are closed, as with net/http.
//
// Response bodies. The connection is kept only if the body was read up to io.EOF,
// or if the rest was in its buffer when it was closed: whoever stops at the last
// event of a stream should go on reading for a moment, or else pays for a new
// connection next time.
//
// Retries. There is one, and no other layer can see it: if a connection that had
// been idle turns out to be closed by its peer, before a byte of a response and
// within two seconds of writing, a request is sent once more on a new connection,
// provided that it could not be written whole or is idempotent, and its body is in
// memory.
//
// Unasked bytes. A connection on which a server says more than it was asked for is
// closed. Since the next such answer could be taken for that to another client's
// request, connections to this host are not used twice from then on.
//
// The client is not responsible for redirects, cookies, proxies, compression,
// HTTP/2, upgrades (101 is an error) and hop-by-hop headers, nor for how long a
// response may take: the request's context says that. It adds no headers but
// Host, Content-Length, Transfer-Encoding and, if asked, Connection: close.
package h1
