// Package h1 is HTTP/1.1 for a gateway, both ends of it: [Server] runs an
// [net/http.Handler] for clients, [Transport] is an [net/http.RoundTripper] for
// one hop to an upstream. In both the goroutine that wants something does all
// the work, and bytes have memory only while they are here.
//
// # Server
//
//	Serve      a goroutine for each connection
//	receive    wait for a head, check what is new in it, make the request of it, or refuse
//	answer     call the handler; watch the client if that takes long
//	reply      gather, frame and write what the handler says
//	settle     end the watch, drop what is left of the body, or linger
//
// # Transport
//
// The client exists because of what net/http's Transport costs a gateway. There, each
// connection has a goroutine that reads and one that writes, and each request
// is handed to both and back: with small JSON answers this client needs about
// two thirds of its CPU time (BenchmarkJSON measures both in one run). On
// streams the two are equal; nothing is lost there.
//
// The life of a request:
//
//	RoundTrip    encode head and small body into one pooled buffer
//	pool         take the idle connection that was used last, if its peer is still there; else dial
//	exchange     write; read heads until one is final; hand out the response
//	socket       on a TCP connection that was idle: look at it, write and wait in one, in three system calls
//	Body.Read    read straight from the connection, through the framing
//	end of body  the connection goes back to the pool; anything else closes it
//
// A goroutine is started only where one is unavoidable: to send a body that is
// not in memory or larger than 64 KiB, since a server may answer before it has
// read all of it; and by package context when a request is cancelled.
//
// Request bodies. A body counts as in memory if the request has GetBody or the
// body has Len and Seek, as one that embeds a *[bytes.Reader]. Such a body is
// not touched any more once RoundTrip has returned an error or the response's
// body has ended or was closed: its buffer may be used again. Other bodies
// must not be used again until they are closed, as with net/http.
//
// Response bodies. Read may return the last bytes together with io.EOF. The
// connection is kept only if the body was read up to io.EOF (or what is left
// had arrived when it was closed): whoever stops at the last event of a stream
// should go on reading for a moment, or else pays for a new connection next
// time. Trailers are read, bounded and dropped.
//
// Retries. There is one, and no other layer can see it: if a connection that
// had been idle turns out to be closed by its peer, before a byte of a response
// and within two seconds of writing, a request whose body is in memory is sent
// once more on a new connection. HTTP offers no way to tell a peer that closed an
// idle connection from one that read the request and died at once; the time
// limit keeps the second case small, since a server that works on a completion
// for longer than that is never asked twice.
//
// The client is not responsible for redirects, cookies, proxies, compression,
// HTTP/2, upgrades (101 is an error) and hop-by-hop headers, nor for how long a
// response may take: the request's context says that. It adds no headers but
// Host, Content-Length, Transfer-Encoding and, if asked, Connection: close.
// A caller that needs a forward proxy uses net/http's Transport.
package h1
