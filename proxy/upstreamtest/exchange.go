package upstreamtest

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"time"
)

// Shared header values; net/http does not change them.
var (
	typeJSON   = []string{"application/json"}
	typeStream = []string{"text/event-stream; charset=utf-8"}
	noCache    = []string{"no-cache"}
)

// exchange is one request and the state of its answer. One goroutine owns it.
type exchange struct {
	s     *Server
	w     http.ResponseWriter
	ctx   context.Context
	q     *request
	st    *step
	t     tuning
	out   sink
	begun time.Time

	status int // the sent status, 0 before
	chunks int // sent events
}

// format writes answers in one API's wire format.
type format struct {
	// stream and whole build a streamed or a complete answer.
	stream, whole func(x *exchange, b *reply, c *content)
	// errorEvent adds an error event; errorBody returns an error body for a 200.
	errorEvent func(x *exchange, b *reply)
	errorBody  func(x *exchange) string
	// textStart is the data of a text event up to the text; textEvent is the event name,
	// if clients need one.
	textStart, textEvent string
}

var (
	chatFormat = format{
		stream: (*exchange).stream, whole: (*exchange).whole, errorEvent: appendChatError,
		errorBody: func(x *exchange) string { return x.streamError().body(x.q.n) },
		textStart: `{"id":"chatcmpl-mock-","choices":[{"index":0,"delta":{"content":"`,
	}
	responsesFormat = format{
		stream: (*exchange).streamResponse, whole: (*exchange).wholeResponse, errorEvent: appendResponseError, errorBody: responseErrorBody,
		textStart: `{"type":"response.output_text.delta","item_id":"msg_mock_","output_index":0,"content_index":0,"delta":"`,
	}
)

func (x *exchange) format() format {
	switch {
	case x.q.responses:
		return responsesFormat
	case x.q.anthropic:
		return messagesFormat
	}
	return chatFormat
}

// run answers the request as its step says. plain returns the answer of an endpoint
// without scripted content; nil means scripted content.
func (x *exchange) run(plain func() string) error {
	st := x.st
	x.out = sink{ctx: x.ctx, w: x.w, split: st.split, pings: st.pings}
	x.out.flush, _ = x.w.(http.Flusher)
	if err := x.out.wait(x.t.latency + st.delay); err != nil {
		return err
	}
	switch st.fault {
	case faultReset:
		return x.reset()
	case faultClose:
		return errBroken
	case faultHang:
		return x.out.wait(forever)
	case faultEndlessHeaders:
		return x.endlessHeaders()
	case faultBadChunk:
		return x.badChunk()
	case faultStatusJunk:
		return x.statusJunk()
	}
	h := x.w.Header()
	for _, kv := range st.header {
		h[kv[0]] = append(h[kv[0]], kv[1])
	}
	if server := disguises[x.s.opts.As].server; server != "" {
		h["Server"] = []string{server}
	}
	h["X-Request-Id"] = []string{"req_mock_" + decimal(x.q.n)}
	if done, err := x.refuse(); done {
		return err
	}
	switch st.fault {
	case faultHeadersHang:
		x.head(x.q.stream)
		return x.out.wait(forever)
	case faultEndlessLine:
		return x.endlessLine()
	case faultBomb:
		return x.bomb()
	}
	if st.gzip {
		h["Content-Encoding"] = []string{"gzip"}
	}
	b := &reply{}
	switch {
	case plain != nil:
		b.put(plain())
		return x.sendWhole(b)
	case x.q.responseID != "" && x.q.stream:
		x.resume(b)
		return x.sendStream(b)
	case x.q.stream:
		c := x.content()
		x.format().stream(x, b, &c)
		if b.first < len(b.events) {
			b.events[b.first].pause += st.first
		}
		return x.sendStream(b)
	default:
		c := x.content()
		if !st.empty {
			x.format().whole(x, b, &c)
		}
		if err := x.out.wait(st.reasonFor); err != nil {
			return err
		}
		return x.sendWhole(b)
	}
}

// head sends the status 200 and the headers immediately.
func (x *exchange) head(stream bool) {
	h := x.w.Header()
	if h["Content-Type"] == nil {
		if stream {
			h["Content-Type"], h["Cache-Control"] = typeStream, noCache
		} else {
			h["Content-Type"] = typeJSON
		}
	}
	x.status = http.StatusOK
	x.w.WriteHeader(x.status)
	x.out.begin(stream)
}

// refuse sends the step's error answer or literal body for this request, if it has
// one, and reports whether it did.
func (x *exchange) refuse() (bool, error) {
	st := x.st
	var e *apiError
	for _, r := range st.refusals {
		if e = r(x.q); e != nil {
			break
		}
	}
	switch {
	case e == nil && st.body != nil:
		return true, x.sendBody(*st.body)
	case e == nil && st.html:
		x.w.Header()["Content-Type"] = []string{"text/html"}
		status := st.status
		if status == 0 {
			status = http.StatusBadGateway
		}
		text := strconv.Itoa(status) + " " + http.StatusText(status)
		return true, x.sendAll(status, []byte("<html>\r\n<head><title>"+text+"</title></head>\r\n<body>\r\n<center><h1>"+text+"</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n"))
	case e == nil && st.status != 0:
		e = plainError(st.status, x.q)
	case e == nil:
		return false, nil
	}
	if st.status != 0 {
		e.status = st.status
	}
	return true, x.sendError(e.overridden(st))
}

func (x *exchange) sendError(e *apiError) error {
	if x.q.anthropic {
		e = e.asAnthropic(x.st)
	}
	x.w.Header()["Content-Type"] = typeJSON
	return x.sendAll(e.status, []byte(e.body(x.q.n)))
}

// sendBody sends a literal body from the script.
func (x *exchange) sendBody(body string) error {
	h := x.w.Header()
	switch {
	case h["Content-Type"] != nil:
	case len(body) > 0 && (body[0] == '{' || body[0] == '['):
		h["Content-Type"] = typeJSON
	case len(body) > 5 && body[:5] == "data:":
		h["Content-Type"] = typeStream
	default:
		h["Content-Type"] = []string{"text/plain; charset=utf-8"}
	}
	status := x.st.status
	if status == 0 {
		status = http.StatusOK
	}
	return x.sendAll(status, []byte(body))
}

// sendAll sends a whole answer with its Content-Length.
func (x *exchange) sendAll(status int, body []byte) error {
	x.w.Header()["Content-Length"] = []string{strconv.Itoa(len(body))}
	x.status = status
	x.w.WriteHeader(status)
	if x.st.split > 0 {
		return x.out.write(body)
	}
	if _, err := x.w.Write(body); err != nil {
		return errGone
	}
	return nil
}

// sendWhole sends an answer that is not streamed, with the step's faults in the form
// that fits it.
func (x *exchange) sendWhole(b *reply) error {
	st, body := x.st, b.buf
	if st.errorEvent.set {
		body = []byte(x.format().errorBody(x))
	}
	if st.malformed.set {
		at := st.malformed.of(len(body))
		body = bytes.Join([][]byte{body[:at], []byte(`\u00zz",}{`), body[at:]}, nil)
	}
	if st.fin.set {
		body = body[:st.fin.of(len(body))]
	}
	if st.fault == faultHalfJSON {
		body = body[:len(body)/2]
	}
	h := x.w.Header()
	if h["Content-Type"] == nil {
		h["Content-Type"] = typeJSON
	}
	if st.gzip {
		body = gzipped(body)
	}
	if st.fault == faultOver || st.fault == faultTwice {
		return x.sendWrongLength(typeJSON[0], body)
	}
	cut, stall := len(body), -1
	switch {
	case st.cut.set:
		cut = st.cut.of(len(body))
	case st.fault == faultShort:
		cut = len(body) / 2
	}
	if st.stall.set {
		stall = min(st.stall.of(len(body)), cut)
	}
	if cut == len(body) && stall < 0 && st.first == 0 && !st.cut.set {
		return x.sendAll(http.StatusOK, body)
	}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	if st.cut.set {
		h.Del("Content-Length") // chunked, without its terminator
	}
	x.head(false)
	if err := x.out.wait(st.first); err != nil {
		return err
	}
	from := 0
	if stall >= 0 {
		if err := x.out.write(body[:stall]); err != nil {
			return err
		}
		from = stall
		if err := x.out.wait(st.stallFor); err != nil {
			return err
		}
	}
	if err := x.out.write(body[from:cut]); err != nil {
		return err
	}
	if cut < len(body) || st.cut.set {
		return errBroken
	}
	return nil
}

// sendStream sends a stream's events with the step's faults and pauses.
func (x *exchange) sendStream(b *reply) error {
	st := x.st
	if st.fault == faultHalfJSON || st.fault == faultShort {
		return x.sendHalfStream(b)
	}
	if st.fault == faultOver || st.fault == faultTwice {
		return x.sendWrongLength(typeStream[0], b.buf)
	}
	x.insertFaults(b)
	x.out.hold = st.oneWrite
	x.head(true)
	for i := range b.events {
		ev := &b.events[i]
		if st.oneWrite && ev.act == actSend {
			ev.pause = 0
		}
		if ev.act != actSend || ev.pause > 0 {
			if x.out.hold {
				if err := x.out.release(); err != nil {
					return err
				}
			}
			if err := x.out.wait(ev.pause); err != nil {
				return err
			}
		}
		switch ev.act {
		case actStall:
			continue
		case actBreak:
			return errBroken
		}
		data := b.buf[ev.from:ev.to]
		if st.gzip {
			data = gzipped(data)
		}
		if err := x.out.send(data); err != nil {
			return err
		}
		x.chunks++
	}
	return x.out.release()
}

// sendHalfStream sends the first half of a stream's bytes, with the Content-Length of
// that half (half-json), or with that of the whole and a broken connection (short).
func (x *exchange) sendHalfStream(b *reply) error {
	half := len(b.buf) / 2
	for bytes.HasSuffix(b.buf[:half], []byte("\n")) {
		half-- // in the middle of an event, not between two
	}
	length := half
	if x.st.fault == faultShort {
		length = len(b.buf)
	}
	x.w.Header()["Content-Length"] = []string{strconv.Itoa(length)}
	x.head(true)
	if err := x.out.write(b.buf[:half]); err != nil {
		return err
	}
	if half < length {
		return errBroken
	}
	return nil
}
