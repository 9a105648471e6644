package h1_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/proxy/h1"
)

// talk is what a client says on one connection, and what it is answered.
type talk struct {
	name string
	say  string
	eof  bool // and then the client says that it says no more
	// want has an answer per line: "200 " and the first line of the echo, or
	// the status of a refusal, and at last "end" if the server closes. Without
	// that, the connection must be good for one more request.
	want string
	// ours is what our server does instead, and on purpose.
	ours string
}

// TestConformance says each talk to both servers, in whole and byte by byte.
func TestConformance(t *testing.T) {
	both(t, func(t *testing.T, k kind) {
		s := serveWith(t, k, h1.ServerConfig{Handler: http.HandlerFunc(echo), MaxHeaderBytes: 64 << 10})
		for _, tt := range slices.Concat(goodTalks(), badHeads(), badFrames(), badBodies()) {
			for how, cut := range map[string][]byte{"whole": nil, "bytes": {0}, "pieces": {2, 0, 30, 1, 200}} {
				if how == "bytes" && len(tt.say) > 50_000 {
					continue
				}
				t.Run(tt.name+"/"+how, func(t *testing.T) {
					s.gate.cut.Store(&cut)
					want := tt.want
					if k.ours && tt.ours != "" {
						want = tt.ours
					}
					w := s.connect(t)
					go func() {
						w.say(tt.say)
						if tt.eof {
							_ = w.CloseWrite()
						}
					}()
					hear(t, w, k, strings.Split(want, "\n"))
				})
			}
		}
	})
}

// hear reads the answers of a talk.
func hear(t *testing.T, w *wire, k kind, want []string) {
	for _, line := range want {
		if line == "end" {
			w.ended()
			return
		}
		method := "GET"
		if status, rest, ok := strings.Cut(line, " "); ok && status == "200" {
			method, _, _ = strings.Cut(rest, " ")
		}
		a, err := readAnswer(w.br, method)
		if err != nil {
			t.Fatalf("%v, want %s", err, line)
		}
		if a.StatusCode >= 400 && !k.ours {
			a.bodyErr = nil // net/http does not care if its refusals arrive
		}
		got := fmt.Sprint(a.StatusCode)
		switch {
		case a.StatusCode == 200 && method == "HEAD":
			got += " HEAD " + strings.Split(line, " ")[2] + ` ""`
		case a.StatusCode == 200:
			got += " " + firstLine(a.body)
		case !a.Close:
			t.Errorf("a refusal without Connection: close: %v", a.Header)
		}
		if got != line || a.bodyErr != nil {
			t.Errorf("got  %s (%v)\nwant %s", got, a.bodyErr, line)
		}
	}
	w.works()
}

const hostA = "Host: a\r\n"

// goodTalks are what clients may say.
func goodTalks() []talk {
	long := strings.Repeat("x", 20_000)
	return []talk{
		{name: "GET", say: "GET /a?b=c HTTP/1.1\r\n" + hostA + "\r\n", want: `200 GET /a?b=c ""`},
		{name: "HEAD", say: "HEAD /a HTTP/1.1\r\n" + hostA + "\r\n", want: `200 HEAD /a ""`},
		{name: "OPTIONS star", say: "OPTIONS * HTTP/1.1\r\n" + hostA + "\r\n", want: `200 OPTIONS * ""`},
		{name: "POST", say: "POST /a HTTP/1.1\r\n" + hostA + "Content-Length: 5\r\n\r\nhello", want: `200 POST /a "hello"`},
		{name: "GET with a body", say: "GET /a HTTP/1.1\r\n" + hostA + "Content-Length: 5\r\n\r\nhello", want: `200 GET /a "hello"`},
		{name: "empty body", say: "POST /a HTTP/1.1\r\n" + hostA + "Content-Length: 0\r\n\r\n", want: `200 POST /a ""`},
		{name: "no body is announced", say: "POST /a HTTP/1.1\r\n" + hostA + "\r\n", want: `200 POST /a ""`},
		{name: "own method", say: "BREW /a HTTP/1.1\r\n" + hostA + "\r\n", want: `200 BREW /a ""`},
		{name: "strange method", say: "!#$%&'*+-.^_`|~09z /a HTTP/1.1\r\n" + hostA + "\r\n", want: "200 !#$%&'*+-.^_`|~09z /a \"\""},
		{name: "chunks", say: "POST /a HTTP/1.1\r\n" + hostA + "Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", want: `200 POST /a "hello"`},
		{name: "chunks in capitals", say: "POST /a HTTP/1.1\r\n" + hostA + "TRANSFER-ENCODING: CHUNKED\r\n\r\nA\r\n0123456789\r\n0\r\n\r\n", want: `200 POST /a "0123456789"`},
		{name: "no chunk", say: "POST /a HTTP/1.1\r\n" + hostA + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", want: `200 POST /a ""`},
		{name: "many zeros", say: "POST /a HTTP/1.1\r\n" + hostA + "Transfer-Encoding: chunked\r\n\r\n0005\r\nhello\r\n000\r\n\r\n", want: `200 POST /a "hello"`},
		{name: "chunk extensions", say: "POST /a HTTP/1.1\r\n" + hostA + "Transfer-Encoding: chunked\r\n\r\n2;a=b\r\nhe\r\n3; q=\"x;y\"\r\nllo\r\n0;z\r\n\r\n", want: `200 POST /a "hello"`},
		{name: "space after the size", say: "POST /a HTTP/1.1\r\n" + hostA + "Transfer-Encoding: chunked\r\n\r\n5 \t\r\nhello\r\n0 \r\n\r\n", want: `200 POST /a "hello"`},
		{name: "trailers", say: "POST /a HTTP/1.1\r\n" + hostA + "Trailer: A\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\nC: d\r\n\r\n", want: `200 POST /a "hello"`},
		{name: "trailers that are framing", say: "POST /a HTTP/1.1\r\n" + hostA + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nContent-Length: 50\r\nHost: b\r\n\r\n", want: `200 POST /a "hello"`},
		{name: "equal lengths", say: "POST /a HTTP/1.1\r\n" + hostA + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", want: `200 POST /a "hello"`},
		{name: "length with zeros", say: "POST /a HTTP/1.1\r\n" + hostA + "Content-Length: 005\r\n\r\nhello", want: `200 POST /a "hello"`},
		{name: "space around values", say: "POST /a HTTP/1.1\r\nHost:a\r\nContent-Length: \t 5\t \r\n\r\nhello", want: `200 POST /a "hello"`},
		{name: "pipelined", say: "GET /1 HTTP/1.1\r\n" + hostA + "\r\nPOST /2 HTTP/1.1\r\n" + hostA + "Content-Length: 2\r\n\r\nhiPOST /3 HTTP/1.1\r\n" + hostA + "Transfer-Encoding: chunked\r\n\r\n2\r\nho\r\n0\r\n\r\nHEAD /4 HTTP/1.1\r\n" + hostA + "\r\nGET /5 HTTP/1.1\r\n" + hostA + "\r\n",
			want: "200 GET /1 \"\"\n200 POST /2 \"hi\"\n200 POST /3 \"ho\"\n200 HEAD /4 \"\"\n200 GET /5 \"\""},
		{name: "pipelined, the client closes its side", eof: true, say: "GET /1 HTTP/1.1\r\n" + hostA + "\r\nGET /2 HTTP/1.1\r\n" + hostA + "\r\n", want: "200 GET /1 \"\"\n200 GET /2 \"\"\nend"},
		{name: "body that looks like a request", say: "POST /a HTTP/1.1\r\n" + hostA + "Content-Length: 29\r\n\r\nGET /x HTTP/1.1\r\nHost: x\r\n\r\nx", want: `200 POST /a "GET /x HTTP/1.1\r\nHost: x\r\n\r\nx"`},
		{name: "close", say: "GET /1 HTTP/1.1\r\n" + hostA + "Connection: close\r\n\r\nGET /2 HTTP/1.1\r\n" + hostA + "\r\n", want: "200 GET /1 \"\"\nend"},
		{name: "close among others", say: "GET /1 HTTP/1.1\r\n" + hostA + "Connection: x, CLOSE\r\n\r\n", want: "200 GET /1 \"\"\nend"},
		{name: "close in a second line", say: "GET /1 HTTP/1.1\r\n" + hostA + "Connection: x\r\nConnection: close\r\n\r\n", want: "200 GET /1 \"\"\nend"},
		{name: "not close", say: "GET /1 HTTP/1.1\r\n" + hostA + "Connection: closed, x-close\r\n\r\n", want: `200 GET /1 ""`},
		{name: "1.0", say: "GET /1 HTTP/1.0\r\n\r\n", want: "200 GET /1 \"\"\nend"},
		{name: "1.0 kept", say: "GET /1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", want: `200 GET /1 ""`},
		{name: "1.0 kept and closed", say: "GET /1 HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n", want: `200 GET /1 ""`, ours: "200 GET /1 \"\"\nend"},
		{name: "1.0 with a body", say: "POST /1 HTTP/1.0\r\nContent-Length: 2\r\n\r\nhi", want: "200 POST /1 \"hi\"\nend"},
		{name: "1.0 without a length", eof: true, say: "POST /1 HTTP/1.0\r\n\r\nhi", want: "200 POST /1 \"\"\nend"},
		{name: "absolute target", say: "GET http://b:80/a?c HTTP/1.1\r\n" + hostA + "\r\n", want: `200 GET http://b:80/a?c ""`},
		{name: "two slashes", say: "GET //a//b HTTP/1.1\r\n" + hostA + "\r\n", want: `200 GET //a//b ""`},
		{name: "dots", say: "GET /../a/./b HTTP/1.1\r\n" + hostA + "\r\n", want: `200 GET /../a/./b ""`},
		{name: "escapes", say: "GET /%2e%2F%41?%zz HTTP/1.1\r\n" + hostA + "\r\n", want: `200 GET /%2e%2F%41?%zz ""`},
		{name: "bytes beyond ASCII", say: "GET /\xc3\xa4?\xff HTTP/1.1\r\n" + hostA + "X-A: \xe4\r\n\r\n", want: "200 GET /\xc3\xa4?\xff \"\""},
		{name: "lines that end in LF", say: "GET /a HTTP/1.1\nHost: a\nContent-Length: 2\n\nhi", want: `200 GET /a "hi"`},
		{name: "mixed ends of lines", say: "GET /a HTTP/1.1\r\nHost: a\n\r\n", want: `200 GET /a ""`},
		{name: "an empty line after a POST", say: "POST /1 HTTP/1.1\r\n" + hostA + "Content-Length: 2\r\n\r\nhi\r\nGET /2 HTTP/1.1\r\n" + hostA + "\r\n", want: "200 POST /1 \"hi\"\n200 GET /2 \"\""},
		{name: "two empty lines after a POST", say: "POST /1 HTTP/1.1\r\n" + hostA + "Content-Length: 2\r\n\r\nhi\r\n\r\nGET /2 HTTP/1.1\r\n" + hostA + "\r\n", want: "200 POST /1 \"hi\"\n200 GET /2 \"\"", ours: "200 POST /1 \"hi\"\n400\nend"},
		{name: "an empty line after a GET", say: "GET /1 HTTP/1.1\r\n" + hostA + "\r\n\r\nGET /2 HTTP/1.1\r\n" + hostA + "\r\n", want: "200 GET /1 \"\"\n400\nend"},
		{name: "empty host", say: "GET /a HTTP/1.1\r\nHost:\r\n\r\n", want: `200 GET /a ""`},
		{name: "host with a port", say: "GET /a HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n", want: `200 GET /a ""`},
		{name: "empty value", say: "GET /a HTTP/1.1\r\n" + hostA + "X-Empty:\r\n\r\n", want: `200 GET /a ""`},
		{name: "long target", say: "GET /" + long + " HTTP/1.1\r\n" + hostA + "\r\n", want: "200 GET /" + long + ` ""`},
		{name: "long value", say: "GET /a HTTP/1.1\r\n" + hostA + "X-Long: " + long + "\r\n\r\n", want: `200 GET /a ""`},
		{name: "900 lines", say: "GET /a HTTP/1.1\r\n" + hostA + strings.Repeat("X-A: b\r\n", 900) + "\r\n", want: `200 GET /a ""`},
		{name: "expects to continue, and does", say: "POST /a HTTP/1.1\r\n" + hostA + "Expect: 100-continue\r\nContent-Length: 2\r\n\r\nhi", want: `200 POST /a "hi"`},
		{name: "expects to continue with nothing", say: "POST /a HTTP/1.1\r\n" + hostA + "Expect: 100-continue\r\nContent-Length: 0\r\n\r\n", want: `200 POST /a ""`},
		{name: "CONNECT", say: "CONNECT b:443 HTTP/1.1\r\n" + hostA + "\r\n", want: `200 CONNECT b:443 ""`, ours: "501\nend"},
	}
}
