package proxy

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/rebound-llm/rebound/proxy/stream"
	"github.com/rebound-llm/rebound/proxy/upstream"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// chatPath is where completions are below an upstream's base URL.
const chatPath = "/chat/completions"

// chat answers a chat completion: the request becomes an exchange, the
// exchange an answer.
func (s *Server) chat(c echo.Context) error {
	started := time.Now()
	core := s.core.Load()
	req := c.Request()
	who, err := core.authenticate(req)
	if err != nil {
		return err
	}
	raw, err := readBody(c, core.Config.Limits)
	if err != nil {
		return err
	}
	body, perr := s.parser.Parse(raw, transcript.Chat, transcript.Limits{Depth: core.Config.Limits.Nesting})
	if perr != nil {
		return badBody(perr)
	}
	x, err := core.exchange(c, who, body)
	if err != nil {
		return err
	}
	x.Started = started

	s.meter.Begin()
	defer s.meter.End()
	sink := stream.NewSink(c.Response(), core.Stream)
	defer sink.Close()
	if x.Streaming && x.Mode == recovery.ModeAct {
		h := http.Header{}
		if x.Session != "" {
			h["X-Rebound-Session"] = []string{x.Session}
		}
		sink.KeepAwake(h)
	}
	send := &sender{core: core, x: x, sink: sink, path: chatPath, query: req.URL.RawQuery}
	send.header = req.Header
	upstream.Forwardable(send.header)
	if !who.passes {
		delete(send.header, who.header)
	}
	send.header["Accept-Encoding"] = []string{"identity"} // answers are read here

	x.Completer = send
	failure, err := core.Engine.Run(req.Context(), x, send)
	if failure == nil && err == nil && !x.Retained() && x.Tried() == 1 && core.Upstreams[x.Attempts[0].Target.Upstream].Lean() {
		// One attempt, and it has ended: nobody reads the request's bytes any more.
		defer recycle(raw)
	}
	return s.finish(c, core, send, failure, err)
}

// finish delivers what is left to deliver, and reports the request.
func (s *Server) finish(c echo.Context, core *Core, send *sender, f *recovery.Failure, err error) error {
	x, sink := send.x, send.sink
	sink.Close()
	ev := recovery.Event{Name: recovery.EventRequestDone, Request: x.ID, Session: x.Session, Model: x.Model,
		Attempt: x.Tried(), Mode: x.Mode, Streamed: x.Streaming, Recovery: strings.Join(x.Actions(), ", "),
		Status: c.Response().Status, TTFB: sink.FirstByte(x.Started), Attempts: x.Attempts}
	ev.Target, ev.Usage, ev.Cost = x.Settled()
	defer func() {
		ev.Time = time.Now()
		ev.Duration = ev.Time.Sub(x.Started)
		core.Observer.Observe(ev)
	}()
	switch {
	case err == nil && f == nil:
		if core.Accepted != nil {
			core.Accepted(x)
		}
		return nil
	case errors.Is(err, recovery.ErrClientGone):
		ev.Status, ev.Client = statusClientGone, "gone"
		if sink.Committed() {
			panic(http.ErrAbortHandler)
		}
		return nil
	case errors.Is(err, recovery.ErrReplied):
		return send.replied(c.Request().Context(), &ev)
	case errors.Is(err, recovery.ErrNoTarget):
		ev.Status = http.StatusNotFound
		return reported(http.StatusNotFound, "model_not_found", "No upstream serves the model %s. Add it to 'models' in the configuration.", printable(x.Model))
	case f == nil:
		ev.Status, ev.Cause = http.StatusInternalServerError, err.Error()
		return reported(http.StatusInternalServerError, "internal", "An internal error occurred; the gateway's log has the details.")
	}
	ev.Target, ev.Class, ev.Rule = f.Target, f.Class(), f.Rule
	if f.Err != nil {
		ev.Cause = f.Err.Error()
	}
	r := core.final(f, x)
	ev.Status = r.status
	if sink.Committed() {
		// Too late for a status: an error event, and then no clean end.
		if x.Streaming && x.Mode == recovery.ModeAct {
			_ = sink.Write(stream.Piece{Bytes: stream.ErrorEvent(r.body)})
			pause(c.Request().Context(), beforeBreak)
		}
		panic(http.ErrAbortHandler)
	}
	send.decorate(r.header, f.Target, nil)
	_ = sink.Whole(r.status, r.header, r.body)
	return nil
}

// beforeBreak is between an error event and the end of the connection: some
// clients lose what they have not yet read when it breaks.
const beforeBreak = 200 * time.Millisecond

// reported is failf for what the request's own event tells.
func reported(status int, code, format string, args ...any) *Error {
	e := failf(status, code, format, args...)
	e.reported = true
	return e
}

// statusClientGone is nginx's status for a client that left; it is only logged.
const statusClientGone = 499

// exchange gathers what the gateway needs to know of a request.
func (k *Core) exchange(c echo.Context, who client, body *transcript.Body) (*recovery.Exchange, error) {
	req := c.Request()
	x := &recovery.Exchange{ID: requestID(), Body: body, Model: body.Model(), Mode: k.Engine.Config.Mode, Streaming: body.Streaming()}
	if deployment := c.Param("deployment"); deployment != "" && x.Model == "" {
		x.Model = deployment // Azure names the model in the path
	}
	if !who.may(x.Model) {
		return nil, failf(http.StatusForbidden, "model_not_allowed", "This gateway key may not use the model %s.", printable(x.Model))
	}
	if v := first(req.Header, "X-Rebound-Mode"); v != "" {
		mode, ok := recovery.ParseMode(v)
		if !ok {
			return nil, failf(http.StatusBadRequest, "invalid_mode", "X-Rebound-Mode must be one of act, annotate, observe, off.")
		}
		x.Mode = mode
	}
	for _, name := range [...]string{"X-Stainless-Timeout", "X-Stainless-Read-Timeout"} { // Node and Go, Python
		if v := first(req.Header, name); v != "" && x.Patience == 0 {
			if secs, err := strconv.ParseFloat(v, 64); err == nil && secs > 0 && secs < 86400 {
				x.Patience = time.Duration(secs * float64(time.Second))
			}
		}
	}
	if who.passes {
		x.Credential = label(who.credential)
	}
	var hints []string
	for _, name := range sessionHints {
		if v := first(req.Header, name); v != "" {
			hints = append(hints, v)
		}
	}
	id := k.Identifier.Identify(body, who.credential, first(req.Header, "X-Rebound-Session"), hints)
	x.Session, x.Side = id.Session(), id.Side
	x.Secret, x.Trusted = who.credential, !who.passes
	if k.Router.Chooses(x.Model) { // the rest is only for a choice among several
		x.Affinity, x.Pin = id.Affinity(), id.Pin()
	}
	return x, nil
}

// bodies are buffers of requests that were answered at the first attempt. All
// others are left to the collector: an attempt that lost may still be sending.
var bodies sync.Pool

// keepBody is the capacity above which a buffer is left to the collector.
const keepBody = 1 << 20

func recycle(b []byte) {
	if cap(b) <= keepBody {
		b = b[:0]
		bodies.Put(&b)
	}
}

// readBody reads a request body within its limits.
func readBody(c echo.Context, lim LimitsConfig) ([]byte, error) {
	req := c.Request()
	if enc := req.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return nil, failf(http.StatusUnsupportedMediaType, "unsupported_encoding", "Request bodies must not be compressed (Content-Encoding: %s).", printable(enc))
	}
	if req.ContentLength > lim.Body {
		return nil, tooLarge(lim)
	}
	src := newPacedReader(c, lim.BodyTimeout)
	raw, err := src.readAll(req.ContentLength, lim.Body)
	src.done(err == nil && int64(len(raw)) <= lim.Body)
	switch {
	case int64(len(raw)) > lim.Body:
		return nil, tooLarge(lim)
	case err != nil:
		e := failf(http.StatusBadRequest, "incomplete_body", "The request body could not be read to its end. Nothing was sent upstream.")
		if errors.Is(err, os.ErrDeadlineExceeded) {
			e = failf(http.StatusRequestTimeout, "slow_body", "The request body made no progress for %s. Nothing was sent upstream.", lim.BodyTimeout)
		}
		e.Header = http.Header{"Connection": {"close"}}
		return nil, e
	}
	return raw, nil
}

// readAll reads a body to its end, or a byte beyond limit. announced is its
// Content-Length, -1 when unknown.
func (p *pacedReader) readAll(announced, limit int64) ([]byte, error) {
	if announced < 0 {
		announced = 4 << 10
	}
	var b []byte
	if p, ok := bodies.Get().(*[]byte); ok && int64(cap(*p)) > announced {
		b = *p
	} else {
		b = make([]byte, 0, min(announced, trustedLength)+1) // one more, to see the end
	}
	for int64(len(b)) <= limit {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := p.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			return b, err
		}
	}
	return b, nil
}

// trustedLength bounds what is allocated on the word of a Content-Length.
const trustedLength = 1 << 20

// pacedReader fails a body that makes no progress.
type pacedReader struct {
	r        io.Reader
	rc       http.ResponseController
	patience time.Duration
	set      time.Time
}

func newPacedReader(c echo.Context, patience time.Duration) pacedReader {
	return pacedReader{r: c.Request().Body, rc: *http.NewResponseController(c.Response()), patience: patience}
}

func (p *pacedReader) Read(b []byte) (int, error) {
	if now := time.Now(); now.Sub(p.set) > p.patience/4 {
		_ = p.rc.SetReadDeadline(now.Add(p.patience)) // not every connection has one
		p.set = now
	}
	return p.r.Read(b)
}

// done lifts the deadline: from here on the client only listens. Where the
// body was not read to its end, nobody waits for the rest of it either.
func (p *pacedReader) done(whole bool) {
	if whole {
		_ = p.rc.SetReadDeadline(time.Time{})
	} else {
		_ = p.rc.SetReadDeadline(time.Now())
	}
}

func tooLarge(lim LimitsConfig) *Error {
	e := failf(http.StatusRequestEntityTooLarge, "body_too_large", "The request body is larger than %d bytes (limits.body).", lim.Body)
	e.Header = http.Header{"Connection": {"close"}}
	return e
}
