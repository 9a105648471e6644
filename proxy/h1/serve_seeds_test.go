package h1_test

import (
	"bytes"
	"fmt"
	"strings"
)

// vocabulary is what requests are made of, right and wrong ones.
func vocabulary() []string {
	return []string{
		"GET ", "POST ", "HEAD ", "PUT ", "CONNECT ", "OPTIONS ", "/", "/a?b", "*", "http://b/", "a:1", "//", "%2f", " HTTP/1.1\r\n", " HTTP/1.0\r\n", " HTTP/1.2\r\n",
		"\r\n", "\n", "\r", " ", "\t", "\x00", "\x0b", "\x7f", "\xa0", ":", ": ", ";", ",", "=", "\"", "+",
		"Host: a\r\n", "Host", "Content-Length: ", "content-length:", "Content-Length", "Transfer-Encoding: ", "TRANSFER-ENCODING:", "Transfer-Encoding", "chunked", "Chunked", "identity", "gzip", "x",
		"Connection: close\r\n", "Connection: keep-alive\r\n", "Connection: ", "Expect: 100-continue\r\n", "Expect: tea\r\n", "Trailer: A\r\n", "A: b\r\n", "Pragma: no-cache\r\n", "Upgrade: h2c\r\n",
		"0", "1", "2", "5", "9", "a", "F", "-1", "+5", "0x5", "_", "9223372036854775807", "18446744073709551616", "ffffffffffffffff",
		"hello", "0\r\n\r\n", "0\r\n", "5\r\nhello\r\n", "5;a=b\r\nhello\r\n", "3 \r\nabc\r\n", "A: b\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "POST / HTTP/1.1\r\nHost: a\r\n", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", "GET / HTTP/1.0\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/1.1",
	}
}

// spell makes bytes of a choice of words.
func spell(choice []byte) []byte {
	words := vocabulary()
	var b []byte
	for _, c := range choice {
		b = append(b, words[int(c)%len(words)]...)
	}
	return b
}

// spoken are some choices of words to begin with.
func spoken() (all [][]byte) {
	words := vocabulary()
	choose := func(text ...string) {
		var b []byte
		for _, s := range text {
			for i, w := range words {
				if w == s {
					b = append(b, byte(i))
				}
			}
		}
		all = append(all, b)
	}
	choose("POST / HTTP/1.1\r\nHost: a\r\n", "Content-Length: ", "5", "\r\n", "\r\n", "hello", "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	choose("POST / HTTP/1.1\r\nHost: a\r\n", "Transfer-Encoding: ", "chunked", "\r\n", "\r\n", "5\r\nhello\r\n", "0\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	choose("POST / HTTP/1.1\r\nHost: a\r\n", "Transfer-Encoding: ", "chunked", "\r\n", "Trailer: A\r\n", "Expect: 100-continue\r\n", "\r\n", "5;a=b\r\nhello\r\n", "0\r\n", "A: b\r\n\r\n")
	choose("GET ", "/a?b", " HTTP/1.0\r\n", "Connection: keep-alive\r\n", "\r\n", "HEAD ", "/", " HTTP/1.1\r\n", "Host: a\r\n", "Connection: close\r\n", "\r\n")
	return all
}

// smuggling are requests in the ways in which proxies and servers were once
// made to disagree about where one ends: a length, chunks, or both, spelled in
// a way that one of them takes for something else. Each has another behind it.
func smuggling() (all []string) {
	next := "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
	for _, te := range []string{
		"Transfer-Encoding: chunked", "Transfer-Encoding:chunked", "Transfer-Encoding:\tchunked", "Transfer-Encoding:  chunked ", "transfer-encoding: CHUNKED",
		"Transfer-Encoding : chunked", "Transfer-Encoding\t: chunked", "Transfer-Encoding\x0b: chunked", "Transfer-Encoding\xa0: chunked", "Transfer-Encoding\x00: chunked",
		"Transfer_Encoding: chunked", "Transfer Encoding: chunked", " Transfer-Encoding: chunked", "\tTransfer-Encoding: chunked", "\x00Transfer-Encoding: chunked",
		"X: a\nTransfer-Encoding: chunked", "X: a\rTransfer-Encoding: chunked", "X: a\r\n\rTransfer-Encoding: chunked", "X: a\r\r\nTransfer-Encoding: chunked", "X\r\n: a\r\nTransfer-Encoding: chunked",
		"Transfer-Encoding: xchunked", "Transfer-Encoding: chunkedx", "Transfer-Encoding: chunk", "Transfer-Encoding: 'chunked'", "Transfer-Encoding: \"chunked\"",
		"Transfer-Encoding: \x00chunked", "Transfer-Encoding: chunked\x00", "Transfer-Encoding: \x0bchunked", "Transfer-Encoding: \xa0chunked", "Transfer-Encoding: \x85chunked", "Transfer-Encoding: chunked\r",
		"Transfer-Encoding:\n chunked", "Transfer-Encoding:\r\n chunked", "Transfer-Encoding:\r\n\tchunked\r\n ", "Transfer-Encoding:\r\n\r\n chunked",
		"Transfer-Encoding: chunked, identity", "Transfer-Encoding: identity, chunked", "Transfer-Encoding: chunked, chunked", "Transfer-Encoding: , chunked", "Transfer-Encoding: chunked,", "Transfer-Encoding: chunked;q=1",
		"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked", "Transfer-Encoding:\r\nTransfer-Encoding: chunked",
		"Transfer-Encoding: chun\u212aed", "Transfer-Encoding: chunked\r\nConnection: clo\u017fe",
		"Transfer-Encoding", "Transfer-Encoding:", "TE: chunked", "Content-Encoding: chunked", "Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked", "X: a",
	} {
		for _, length := range []string{"", "Content-Length: 3\r\n", "Content-Length: 15\r\n"} {
			head := "POST / HTTP/1.1\r\nHost: a\r\n"
			body := "\r\n5\r\nhello\r\n0\r\n\r\n" + next
			all = append(all, head+length+te+"\r\n"+body)
			if length != "" {
				all = append(all, head+te+"\r\n"+length+body)
			}
		}
	}
	for _, length := range []string{"5", " 5 ", "+5", "-5", "0x5", "05", "5 5", "5,5", "5, 6", "5\r\nContent-Length: 5", "5\r\nContent-Length: 6", "5\r\ncontent-length: +5", "5\x00", "\x0b5", "5\xa0", "\u0665", "",
		"5\r\n ", "\r\n 5", "5\r\n 0", "5;", "5e0", "4294967301", "9223372036854775807", "9223372036854775808", "18446744073709551621", strings.Repeat("0", 40) + "5", strings.Repeat("9", 40)} {
		for _, method := range []string{"POST", "GET", "HEAD"} {
			all = append(all, method+" / HTTP/1.1\r\nHost: a\r\nContent-Length: "+length+"\r\n\r\nhello"+next)
		}
	}
	for _, size := range []string{"5", "05", "+5", "-5", "0x5", " 5", "5 ", "5\t", "5;", "5;a=b", "5; a", "5 ;a", "5;a\n", "5\n", "5\r", "5\r\r", "5_", "5g", "", ";", "\x00", "0000000000000005", "00000000000000005", "100000005", "fffffffffffffffb", "10000000000000005"} {
		for _, end := range []string{"\r\n", "\n", "\r", "", "\r\n\r\n", "xx"} {
			all = append(all, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"+size+"\r\nhello"+end+"0\r\n\r\n"+next)
		}
		all = append(all, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0"+size+"\r\n\r\n"+next)
	}
	for _, target := range []string{"/", "*", "//", "///x", "/a//b", "/..", "http://b", "http://b/", "http://b?x", "http://", "http:///a", "http:/a", "ftp://b/a", "HTTP://b/", "b:80", "b", "/a#b", "/ä", "/\xff", "/%", "/%00", "/%2", "?", "#", "\\", "/\\", "/\x01", "/a\x00", "http://u:p@b/", "http://[::1]/", "http://[::1", "http://b:x/", "mailto:a", ":", "/:"} {
		for _, method := range []string{"GET", "CONNECT", "OPTIONS"} {
			all = append(all, fmt.Sprintf("%s %s HTTP/1.1\r\nHost: a\r\n\r\n%s", method, target, next))
		}
	}
	for _, host := range []string{"", "a", "a:80", "a b", "a/b", "a@b", "[::1]", "a\x00", "ä", "a,b", "a\r\nHost: b", "a\r\nhost: a", "a\r\n b", "<a>", "a;b", "%41", "a%zz"} {
		all = append(all, "GET / HTTP/1.1\r\nHost: "+host+"\r\n\r\n"+next, "GET http://b/ HTTP/1.1\r\nHost: "+host+"\r\n\r\n"+next, "GET / HTTP/1.0\r\nHost: "+host+"\r\nConnection: keep-alive\r\n\r\n"+next)
	}
	return append(all, strings.Repeat(next, 50), "\r\n"+next, "\n"+next, "\r\n\r\n\r\n"+next, "POST / HTTP/1.1\r\nHost: a\r\n\r\n\r\n\r\n\r\n"+next, "POST / HTTP/1.1\r\nHost: a\r\n\r\n\n\n"+next,
		"GET / HTTP/1.0\r\nConnection: \u212aeep-alive\r\n\r\n"+next,
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+next, "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAA\r\n\r\n"+next,
		"GET /\r\n"+next, "GET / HTTP/0.9\r\n\r\n"+next, "GET / HTTP/1.2\r\nHost: a\r\n\r\n"+next, "GET / HTTP/2.0\r\nHost: a\r\n\r\n"+next,
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", string(bytes.Repeat([]byte{0}, 100)), "GET / HTTP/1.1\r\nHost: a\r\nX: "+strings.Repeat("y", 70_000/2)+"\r\n\r\n"+next)
}
