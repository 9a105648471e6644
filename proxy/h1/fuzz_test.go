package h1

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"testing"
)

// pieces yields what a connection might: a few bytes at a time.
type pieces struct {
	data  []byte
	sizes []byte
	n     int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.data) == 0 {
		return 0, io.EOF
	}
	size := len(p.data)
	if len(p.sizes) > 0 {
		size = int(p.sizes[p.n%len(p.sizes)]) + 1
		p.n++
	}
	n := copy(b, p.data[:min(size, len(p.data))])
	p.data = p.data[n:]
	return n, nil
}

// outcome is all that a response was read as.
type outcome struct {
	resp    http.Response
	err     error // of the head
	body    string
	bodyErr error
	keep    bool
}

const fuzzLimit = 20 << 10

func readAs(method string, data, sizes []byte, discard bool) outcome {
	reads := newReads()
	c := &conn{in: reader{src: &pieces{data: bytes.Clone(data), sizes: sizes}, reads: &reads}}
	x := &exchange{t: &Transport{cfg: Config{MaxHeaderBytes: fuzzLimit}}, c: c, req: &http.Request{Method: method}, keep: true}
	o := outcome{err: x.readHead(), keep: x.keep}
	if o.err != nil {
		return o
	}
	if discard && x.payload.drain() {
		o.body, o.bodyErr = "drained", nil
	} else {
		o.body, o.bodyErr = readSized(&x.payload, sizes)
	}
	o.resp = x.resp
	o.keep = x.keep && o.bodyErr == nil && c.in.buffered() == 0
	return o
}

// readSized reads all, with memory of these sizes in turn: some small, some not.
func readSized(r io.Reader, sizes []byte) (string, error) {
	if len(sizes) == 0 {
		b, err := io.ReadAll(r)
		return string(b), err
	}
	var all []byte
	for i := 0; ; i++ {
		b := make([]byte, 1+5*int(sizes[i%len(sizes)]))
		n, err := r.Read(b)
		all = append(all, b[:n]...)
		if err == io.EOF {
			return string(all), nil
		}
		if err != nil {
			return string(all), err
		}
	}
}

// FuzzResponse reads anything as a response: in whole and in pieces with the
// same result, never with more memory than allowed, and if it is accepted,
// then as net/http understands it.
func FuzzResponse(f *testing.F) {
	for _, s := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nA: b\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200\r\nX-a:  b\r\n\tc\r\n\r\nhello",
		"HTTP/1.0 200 OK\nConnection: keep-alive, close\nContent-Length: 3\ncontent-length: 3\n\nabc",
		"HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\n",
		"HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\nTrailer: A\r\n\r\n003 \r\nabc\r\n0\r\n\r\nmore",
		"HTTP/1.1 200 OK\r\nPragma: no-cache\r\n: x\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\n",
	} {
		f.Add([]byte(s), []byte{0, 3, 200}, false)
		f.Add([]byte(s), []byte{}, true)
	}
	f.Fuzz(func(t *testing.T, data, sizes []byte, head bool) {
		method := http.MethodGet
		if head {
			method = http.MethodHead
		}
		o := readAs(method, data, nil, false)
		p := readAs(method, data, sizes, false)
		if text(o.err) != text(p.err) || o.body != p.body || text(o.bodyErr) != text(p.bodyErr) || o.resp.StatusCode != p.resp.StatusCode {
			t.Fatalf("in whole %+v\nin pieces %+v", o, p)
		}
		if d := readAs(method, data, nil, true); d.body == "drained" && (o.bodyErr != nil || d.keep != o.keep) {
			t.Fatalf("drained what reads as %+v", o)
		}
		if o.err != nil {
			var before *BeforeResponseError
			var he *HeaderError
			if errors.As(o.err, &before) != (len(data) == 0) || !errors.As(o.err, &before) && !errors.As(o.err, &he) {
				t.Fatalf("%T %v", o.err, o.err)
			}
			return
		}
		compareWithStd(t, method, data, o)
	})
}

func compareWithStd(t *testing.T, method string, data []byte, o outcome) {
	br := bufio.NewReader(bytes.NewReader(data))
	var resp *http.Response
	for {
		var err error
		resp, err = http.ReadResponse(br, &http.Request{Method: method})
		if err != nil {
			if resp == nil && (strings.Contains(err.Error(), "trailer") || strings.Contains(err.Error(), "Trailer")) {
				return // we do not read what is announced about them
			}
			if strings.Contains(err.Error(), "Content-Length") || strings.Contains(err.Error(), "transfer encoding") {
				return // in an informational response, where we do not look at framing
			}
			t.Fatalf("net/http refuses what reads as %+v: %v", o, err)
		}
		if resp.StatusCode >= 200 {
			break
		}
	}
	if resp.StatusCode != o.resp.StatusCode || resp.ContentLength != o.resp.ContentLength || resp.ProtoMinor != o.resp.ProtoMinor {
		t.Fatalf("net/http: %+v\nwe: %+v", resp, o.resp)
	}
	if o.keep && resp.Close {
		t.Fatalf("net/http would close, we keep: %q", data)
	}
	for k, vv := range o.resp.Header {
		if k == "Connection" || k == "Trailer" {
			continue
		}
		std := resp.Header[k]
		if textproto.CanonicalMIMEHeaderKey(k) != k || len(std) != len(vv) {
			t.Fatalf("%q: net/http %q, we %q", k, std, vv)
		}
		for i := range vv {
			if strings.Join(strings.Fields(vv[i]), " ") != strings.Join(strings.Fields(std[i]), " ") {
				t.Fatalf("%q: net/http %q, we %q", k, std, vv)
			}
		}
	}
	for k := range resp.Header {
		if _, ok := o.resp.Header[k]; !ok && k != "Cache-Control" && k != "Trailer" {
			t.Fatalf("%q is missing", k)
		}
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil && o.bodyErr == nil && (strings.Contains(err.Error(), "railer") || strings.Contains(err.Error(), "non-data") || strings.Contains(err.Error(), "MIME")) {
		return
	}
	if string(body) != o.body || (err == nil) != (o.bodyErr == nil) {
		if err == nil && errors.Is(o.bodyErr, ErrHeaderTooLarge) || strings.Contains(text(o.bodyErr), "chunk") && err == nil {
			return // we are stricter
		}
		t.Fatalf("net/http: %q %v\nwe: %q %v", body, err, o.body, o.bodyErr)
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// FuzzRequest encodes anything: what is not refused is exactly one request to
// a server, with these headers and this body.
func FuzzRequest(f *testing.F) {
	f.Add("POST", "/v1/chat/completions", "a=b", "api.example:80", "X-A", "b", []byte("body"))
	f.Add("GET", "/ä b", "", "[::1]", "Connection", "close", []byte(""))
	f.Add("GET", "//x?", "a#b", "a", "content-length", "9", []byte("x"))
	f.Fuzz(func(t *testing.T, method, path, query, host, name, value string, body []byte) {
		req := &http.Request{Method: method, URL: &url.URL{Scheme: "http", Host: host, Path: path, RawQuery: query},
			Header: http.Header{name: {value, "second"}}, ContentLength: int64(len(body))}
		if len(body) > 0 {
			req.Body = io.NopCloser(bytes.NewReader(body))
			req.GetBody = func() (io.ReadCloser, error) { return nil, nil }
		}
		begin, err := new(Transport).opening(req)
		if err != nil {
			return
		}
		var o outgoing
		if err := o.encode(req, begin.head, req.Body, nil); err != nil {
			return
		}
		br := bufio.NewReader(bytes.NewReader(o.buf))
		got, err := http.ReadRequest(br)
		if err != nil {
			if strings.Contains(err.Error(), "parse") || strings.Contains(err.Error(), "Host") {
				return // a URL or host that we leave to the server to refuse
			}
			t.Fatalf("%q: %v", o.buf, err)
		}
		b, err := io.ReadAll(got.Body)
		if err != nil || !bytes.Equal(b, body) || br.Buffered() > 0 {
			t.Fatalf("%q: body %q, %d more, %v", o.buf, b, br.Buffered(), err)
		}
		for k, vv := range got.Header {
			if !strings.EqualFold(k, name) && k != "Content-Length" {
				t.Fatalf("%q: header %q of our making", o.buf, k)
			}
			if strings.EqualFold(k, name) && k != "Content-Length" && (len(vv) != 2 || vv[0] != strings.Trim(value, " \t")) {
				t.Fatalf("%q: %q", o.buf, vv)
			}
		}
	})
}
