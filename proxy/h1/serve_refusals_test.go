package h1_test

import "strings"

// badHeads are requests that are no requests. What follows one must never be
// taken for a request: each has one behind it.
func badHeads() []talk {
	next := "GET /smuggled HTTP/1.1\r\n" + hostA + "\r\n"
	var all []talk
	for _, b := range []struct{ name, head, std, ours string }{
		{name: "no request at all", head: "hello\r\n\r\n"},
		{name: "an empty line first", head: "\r\n"},
		{name: "0.9", head: "GET /\r\n"},
		{name: "no version", head: "GET / \r\n" + hostA + "\r\n"},
		{name: "no target", head: "GET  HTTP/1.1\r\n" + hostA + "\r\n"},
		{name: "two spaces", head: "GET  / HTTP/1.1\r\n" + hostA + "\r\n"},
		{name: "a space behind", head: "GET / HTTP/1.1 \r\n" + hostA + "\r\n"},
		{name: "a space before", head: " GET / HTTP/1.1\r\n" + hostA + "\r\n"},
		{name: "a space in the target", head: "GET /a b HTTP/1.1\r\n" + hostA + "\r\n"},
		{name: "tabs", head: "GET\t/\tHTTP/1.1\r\n" + hostA + "\r\n"},
		{name: "bad method", head: "G(T / HTTP/1.1\r\n" + hostA + "\r\n"},
		{name: "NUL in the method", head: "G\x00T / HTTP/1.1\r\n" + hostA + "\r\n"},
		{name: "NUL in the target", head: "GET /\x00 HTTP/1.1\r\n" + hostA + "\r\n"},
		{name: "DEL in the target", head: "GET /\x7f HTTP/1.1\r\n" + hostA + "\r\n"},
		{name: "CR in the target", head: "GET /\rX HTTP/1.1\r\n" + hostA + "\r\n"},
		{name: "target without a slash", head: "GET a HTTP/1.1\r\n" + hostA + "\r\n"},
		{name: "bad escape", head: "GET /%zz HTTP/1.1\r\n" + hostA + "\r\n"},
		{name: "bad port", head: "GET http://a:b/ HTTP/1.1\r\n" + hostA + "\r\n"},
		{name: "small http", head: "GET / http/1.1\r\n" + hostA + "\r\n"},
		{name: "HTTP/1", head: "GET / HTTP/1\r\n" + hostA + "\r\n"},
		{name: "HTTP/1.10", head: "GET / HTTP/1.10\r\n" + hostA + "\r\n"},
		{name: "HTTP/01.1", head: "GET / HTTP/01.1\r\n" + hostA + "\r\n"},
		{name: "HTTPS/1.1", head: "GET / HTTPS/1.1\r\n" + hostA + "\r\n"},
		{name: "HTTP/1.+1", head: "GET / HTTP/1.+\r\n" + hostA + "\r\n"},
		{name: "HTTP/3.0", head: "GET / HTTP/3.0\r\n" + hostA + "\r\n", std: "505", ours: "505"},
		{name: "HTTP/0.9", head: "GET / HTTP/0.9\r\n" + hostA + "\r\n", std: "505", ours: "505"},
		{name: "HTTP/2 without its preface", head: "GET / HTTP/2.0\r\n" + hostA + "\r\n", std: "505", ours: "505"},
		{name: "no host", head: "GET / HTTP/1.1\r\n\r\n"},
		{name: "two hosts", head: "GET / HTTP/1.1\r\n" + hostA + hostA + "\r\n"},
		{name: "two hosts in 1.0", head: "GET / HTTP/1.0\r\n" + hostA + "Host: b\r\n\r\n"},
		{name: "bad host", head: "GET / HTTP/1.1\r\nHost: a b\r\n\r\n"},
		{name: "a slash in the host", head: "GET / HTTP/1.1\r\nHost: a/\\\r\n\r\n"},
		{name: "no colon", head: "GET / HTTP/1.1\r\n" + hostA + "X\r\n\r\n"},
		{name: "no name", head: "GET / HTTP/1.1\r\n" + hostA + ": b\r\n\r\n"},
		{name: "space before the colon", head: "POST / HTTP/1.1\r\n" + hostA + "Content-Length : 5\r\n\r\n"},
		{name: "tab before the colon", head: "POST / HTTP/1.1\r\n" + hostA + "Transfer-Encoding\t: chunked\r\n\r\n"},
		{name: "space in a name", head: "GET / HTTP/1.1\r\n" + hostA + "X Y: b\r\n\r\n"},
		{name: "NUL in a name", head: "GET / HTTP/1.1\r\n" + hostA + "X\x00Y: b\r\n\r\n"},
		{name: "name beyond ASCII", head: "GET / HTTP/1.1\r\n" + hostA + "\xc3\xa4: b\r\n\r\n"},
		{name: "NUL in a value", head: "GET / HTTP/1.1\r\n" + hostA + "X: a\x00b\r\n\r\n"},
		{name: "CR in a value", head: "GET / HTTP/1.1\r\n" + hostA + "X: a\rY: b\r\n\r\n"},
		{name: "CR CR LF", head: "GET / HTTP/1.1\r\n" + hostA + "X: a\r\r\n\r\n"},
		{name: "fold before the first header", head: "GET / HTTP/1.1\r\n " + hostA + "\r\n"},
		{name: "value begins in a fold", head: "GET / HTTP/1.1\r\n" + hostA + "X\r\n : b\r\n\r\n"},
	} {
		std := b.std
		if std == "" {
			std = "400"
		}
		tt := talk{name: b.name, say: b.head + next, want: std + "\nend"}
		if b.ours != "" {
			tt.ours = b.ours + "\nend"
		}
		all = append(all, tt)
	}
	return append(all,
		talk{name: "HTTP/2 preface", eof: true, say: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00", want: "200 PRI * \"\"\nend", ours: "505\nend"},
		talk{name: "HTTP/1.2", say: "GET /a HTTP/1.2\r\n" + hostA + "\r\n", want: `200 GET /a ""`, ours: "505\nend"},
		talk{name: "fold", say: "GET /a HTTP/1.1\r\n" + hostA + "X: a\r\n b\r\n\r\n", want: `200 GET /a ""`, ours: "400\nend"},
		talk{name: "head without an end", eof: true, say: "GET / HTTP/1.1\r\n" + hostA, want: "400\nend", ours: "end"},
		talk{name: "line without an end", eof: true, say: "GET / HT", want: "400\nend", ours: "end"},
		talk{name: "nothing", eof: true, want: "end"},
		talk{name: "too long a line", say: "GET /" + strings.Repeat("x", 200_000) + " HTTP/1.1\r\n" + hostA + "\r\n", want: "431\nend"},
		talk{name: "too many bytes", say: "GET / HTTP/1.1\r\n" + hostA + strings.Repeat("X-A: "+strings.Repeat("y", 500)+"\r\n", 400) + "\r\n", want: "431\nend"},
		talk{name: "too many lines", say: "GET /a HTTP/1.1\r\n" + hostA + strings.Repeat("A:b\r\n", 1100) + "\r\n", want: `200 GET /a ""`, ours: "431\nend"},
		talk{name: "unknown expectation", say: "POST / HTTP/1.1\r\n" + hostA + "Expect: tea\r\nContent-Length: 2\r\n\r\nhi" + next, want: "417\nend"},
		talk{name: "refused after a good one", say: "GET /1 HTTP/1.1\r\n" + hostA + "\r\nGET\r\n\r\n" + next, want: "200 GET /1 \"\"\n400\nend"},
	)
}

// badFrames are requests whose end is not clear: with each of them somebody
// once had a server take a body for a request.
func badFrames() []talk {
	next := "GET /smuggled HTTP/1.1\r\n" + hostA + "\r\n"
	chunks := "\r\n5\r\nhello\r\n0\r\n\r\n"
	var all []talk
	for _, b := range []struct{ name, headers, std, ours string }{
		{name: "two lengths", headers: "Content-Length: 5\r\nContent-Length: 6\r\n"},
		{name: "a list of lengths", headers: "Content-Length: 5, 5\r\n"},
		{name: "a list of two lengths", headers: "Content-Length: 5, 6\r\n"},
		{name: "length with a sign", headers: "Content-Length: +5\r\n"},
		{name: "negative length", headers: "Content-Length: -5\r\n"},
		{name: "negative nothing", headers: "Content-Length: -0\r\n"},
		{name: "hexadecimal length", headers: "Content-Length: 0x5\r\n"},
		{name: "length with an underscore", headers: "Content-Length: 1_0\r\n"},
		{name: "length with a point", headers: "Content-Length: 5.0\r\n"},
		{name: "length in words", headers: "Content-Length: five\r\n"},
		{name: "length with a space", headers: "Content-Length: 1 5\r\n"},
		{name: "empty length", headers: "Content-Length:\r\n"},
		{name: "length beyond 63 bits", headers: "Content-Length: 9223372036854775808\r\n"},
		{name: "length beyond 64 bits", headers: "Content-Length: 18446744073709551621\r\n"},
		{name: "length folded away", headers: "Content-Length:\r\n 5, 6\r\n"},
		{name: "xchunked", headers: "Transfer-Encoding: xchunked\r\n", std: "501"},
		{name: "chunked and identity", headers: "Transfer-Encoding: chunked, identity\r\n", std: "501"},
		{name: "identity", headers: "Transfer-Encoding: identity\r\n", std: "501"},
		{name: "gzip, chunked", headers: "Transfer-Encoding: gzip, chunked\r\n", std: "501"},
		{name: "chunked twice in a line", headers: "Transfer-Encoding: chunked, chunked\r\n", std: "501"},
		{name: "chunked twice", headers: "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", std: "501"},
		{name: "chunked, then identity", headers: "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", std: "501"},
		{name: "chunked with a parameter", headers: "Transfer-Encoding: chunked;a=b\r\n", std: "501"},
		{name: "quoted chunked", headers: "Transfer-Encoding: \"chunked\"\r\n", std: "501"},
		{name: "empty transfer encoding", headers: "Transfer-Encoding:\r\n", std: "501"},
		{name: "vertical tab before chunked", headers: "Transfer-Encoding: \x0bchunked\r\n"},
		{name: "Kelvin sign", headers: "Transfer-Encoding: chun\u212aed\r\n", std: "501"},
		{name: "comma behind", headers: "Transfer-Encoding: chunked,\r\n", std: "501"},
		{name: "chunked in a fold, then more", headers: "Transfer-Encoding: chunked\r\n , identity\r\n", std: "501", ours: "400"},
		{name: "bad length, and chunked", headers: "Content-Length: x\r\nTransfer-Encoding: chunked\r\n"},
	} {
		std := b.std
		if std == "" {
			std = "400"
		}
		tt := talk{name: b.name, say: "POST / HTTP/1.1\r\n" + hostA + b.headers + chunks + next, want: std + "\nend"}
		if b.ours != "" {
			tt.ours = b.ours + "\nend"
		}
		all = append(all, tt)
	}
	smuggled := "200 GET /smuggled \"\""
	return append(all,
		talk{name: "length and chunked", say: "POST /a HTTP/1.1\r\n" + hostA + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n" + chunks + next,
			want: "200 POST /a \"hello\"\n" + smuggled, ours: "400\nend"},
		talk{name: "chunked and length", say: "POST /a HTTP/1.1\r\n" + hostA + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n" + chunks + next,
			want: "200 POST /a \"hello\"\n" + smuggled, ours: "400\nend"},
		talk{name: "chunked in 1.0", say: "POST /a HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 15\r\nTransfer-Encoding: chunked\r\n" + chunks + next,
			want: "200 POST /a \"5\\r\\nhello\\r\\n0\\r\\n\\r\\n\"\n" + smuggled, ours: "400\nend"},
		talk{name: "only chunked in 1.0", say: "POST /a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n" + chunks + next, want: "200 POST /a \"\"\nend", ours: "400\nend"},
		talk{name: "chunked behind a space", say: "POST /a HTTP/1.1\r\n" + hostA + "Transfer-Encoding:  \tchunked \t\r\n" + chunks + next, want: "200 POST /a \"hello\"\n" + smuggled},
		talk{name: "chunked in a fold", say: "POST /a HTTP/1.1\r\n" + hostA + "Transfer-Encoding:\r\n chunked\r\n" + chunks + next, want: "200 POST /a \"hello\"\n" + smuggled, ours: "400\nend"},
	)
}

// badBodies are bodies that cannot be read to an end: the handler is told, and
// what follows is nothing.
func badBodies() []talk {
	next := "GET /smuggled HTTP/1.1\r\n" + hostA + "\r\n"
	var all []talk
	for _, b := range []struct{ name, chunks, read string }{
		{name: "no size", chunks: "\r\nhello\r\n0\r\n\r\n"},
		{name: "size in words", chunks: "five\r\nhello\r\n0\r\n\r\n"},
		{name: "size with a sign", chunks: "+5\r\nhello\r\n0\r\n\r\n"},
		{name: "negative size", chunks: "-5\r\nhello\r\n0\r\n\r\n"},
		{name: "size with 0x", chunks: "0x5\r\nhello\r\n0\r\n\r\n"},
		{name: "size with an underscore", chunks: "1_0\r\nhello\r\n0\r\n\r\n"},
		{name: "size beyond 64 bits", chunks: "10000000000000005\r\nhello\r\n0\r\n\r\n"},
		{name: "size that is negative in 64 bits", chunks: "fffffffffffffffb\r\nhello\r\n0\r\n\r\n", read: "*"},
		{name: "space before the size", chunks: " 5\r\nhello\r\n0\r\n\r\n"},
		{name: "size and LF", chunks: "5\nhello\r\n0\r\n\r\n"},
		{name: "size and CR", chunks: "5\rhello\r\n0\r\n\r\n"},
		{name: "CR in an extension", chunks: "5;a\rb\r\nhello\r\n0\r\n\r\n"},
		{name: "LF in an extension", chunks: "5;a\nhello\r\n0\r\n\r\n"},
		{name: "longer than announced", chunks: "4\r\nhello\r\n0\r\n\r\n", read: "hell"},
		{name: "LF after the data", chunks: "5\r\nhello\n0\r\n\r\n", read: "hello"},
		{name: "CR after the data", chunks: "5\r\nhello\r0\r\n\r\n", read: "hello"},
		{name: "no end of the data", chunks: "5\r\nhello0\r\n\r\n", read: "hello"},
		{name: "long extension", chunks: "5;" + strings.Repeat("a", 9000) + "\r\nhello\r\n0\r\n\r\n"},
		{name: "last chunk and LF", chunks: "5\r\nhello\r\n0\n\r\n", read: "hello"},
	} {
		first := "200 POST /a \"" + b.read + "\" cut"
		if b.read == "*" {
			first = "200 POST /a \"hello\\r\\n0\\r\\n\\r\\nGET /smuggled HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n\" cut"
		}
		tt := talk{name: b.name, eof: true, say: "POST /a HTTP/1.1\r\n" + hostA + "Transfer-Encoding: chunked\r\n\r\n" + b.chunks + next, want: first + "\nend"}
		if b.read == "*" {
			tt.ours = "200 POST /a \"\" cut\nend"
		}
		all = append(all, tt)
	}
	return append(all,
		talk{name: "space before an extension", eof: true, say: "POST /a HTTP/1.1\r\n" + hostA + "Transfer-Encoding: chunked\r\n\r\n5 ;a\r\nhello\r\n0\r\n\r\n",
			want: "200 POST /a \"\" cut\nend", ours: "200 POST /a \"hello\"\nend"}, // RFC 9112, section 7.1.1 has it
		talk{name: "body cut", eof: true, say: "POST /a HTTP/1.1\r\n" + hostA + "Content-Length: 9\r\n\r\nhello", want: "200 POST /a \"hello\" cut\nend"},
		talk{name: "body missing", eof: true, say: "POST /a HTTP/1.1\r\n" + hostA + "Content-Length: 9\r\n\r\n", want: "200 POST /a \"\" cut\nend"},
		talk{name: "chunks cut in the data", eof: true, say: "POST /a HTTP/1.1\r\n" + hostA + "Transfer-Encoding: chunked\r\n\r\n9\r\nhello", want: "200 POST /a \"hello\" cut\nend"},
		talk{name: "chunks cut after the data", eof: true, say: "POST /a HTTP/1.1\r\n" + hostA + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", want: "200 POST /a \"hello\" cut\nend"},
		talk{name: "chunks cut in the size", eof: true, say: "POST /a HTTP/1.1\r\n" + hostA + "Transfer-Encoding: chunked\r\n\r\n5", want: "200 POST /a \"\" cut\nend"},
		talk{name: "trailers cut", eof: true, say: "POST /a HTTP/1.1\r\n" + hostA + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\n", want: "200 POST /a \"hello\" cut\nend"},
		talk{name: "end of the trailers cut", eof: true, say: "POST /a HTTP/1.1\r\n" + hostA + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n", want: "200 POST /a \"hello\" cut\nend"},
		talk{name: "endless trailers", eof: true, say: "POST /a HTTP/1.1\r\n" + hostA + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n" + strings.Repeat("A: "+strings.Repeat("b", 500)+"\r\n", 400) + "\r\n", want: "200 POST /a \"hello\" cut\nend"},
	)
}
