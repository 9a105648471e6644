package proxy

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/rebound-llm/rebound/proxy/recording"
	"github.com/rebound-llm/rebound/proxy/stream"
	"github.com/rebound-llm/rebound/proxy/upstream"
	"github.com/rebound-llm/rebound/recovery"
)

// request holds everything that a completion needs until it is answered, in one allocation.
type request struct {
	exchange recovery.Exchange
	sender   sender
	answer   answer             // to the first attempt
	choices  [1]recovery.Choice // most requests have one candidate
	records  [1]recovery.Record // most requests need one attempt
	encoding [1]string          // the value of Accept-Encoding
}

// partMemory is the approximate memory of a message, a call or a tool during a request, in bytes,
// beyond its JSON.
const partMemory = 256

// completion returns the handler of completions in one format.
func (s *Server) completion(w *wire) echo.HandlerFunc {
	return s.admitted(func(c echo.Context, core *Core, who client) error { return s.complete(c, core, who, w) })
}

func (s *Server) complete(c echo.Context, core *Core, who client, w *wire) error {
	started := time.Now()
	req := c.Request()
	raw, err := s.readBody(c, who, core.Config.Limits)
	if err != nil {
		return err
	}
	r := &request{}
	reuse := false
	defer func() {
		if raw.end(); reuse {
			r.exchange.Free(raw.reuse)
		}
	}()
	body, perr := s.parser.Parse(raw.bytes, w.requests, core.Config.Limits.transcript())
	if perr != nil {
		return badBody(perr)
	}
	body = core.resolveKept(req, who, body)
	if !unedited(body.Raw(), raw.bytes) {
		raw.encoded = nil // the decoded body has changed
		if err := raw.share.take(int64(len(body.Raw()))); err != nil {
			return err
		}
	}
	if err := raw.share.atLeast(int64(body.Parts()) * partMemory); err != nil {
		return err
	}
	x, send := &r.exchange, &r.sender
	x.Stays = w.relayed
	x.Started, x.Body, x.Candidates, x.Attempts = started, body, r.choices[:0], r.records[:0]
	if err := core.describe(x, c, who); err != nil {
		return err
	}
	c.Response().Header()[requestHeader] = []string{x.ID}
	if who.restricted() {
		if err := core.strict(req, who, w.path, x.Model, raw.bytes); err != nil {
			return err
		}
	}
	if err := core.pinHome(req.Context(), x, who, w.refers); err != nil {
		return err
	}
	grant, err := core.admit(req.Context(), who, x.Model, body.Raw(), body)
	if err != nil {
		return err
	}
	s.inFlight.Begin()
	defer s.inFlight.End()
	sink := core.sink(c, x)
	defer sink.Close()
	defer func() { send.settle(grant, c.Response().Status, c.Response().Size) }()
	s.equip(r, core, c, who, w, raw)
	send.sink = sink
	x.Completer = send
	if core.Recorder != nil {
		send.recording = &recording.Recording{Request: x.ID, Session: x.Session, Model: x.Model, Time: started, Client: recording.Body{Body: body.Raw()}}
	}
	if core.Tracer != nil {
		defer core.Tracer.Trace(x.ID, "chat", x.Model, started, req.Header)()
	}
	failure, err := w.engine(core).Run(req.Context(), x, send)
	// After one attempt that has ended, only those read the request's bytes who retain them.
	reuse = failure == nil && err == nil && x.Tried() == 1 && core.Upstreams[x.Attempts[0].Target.Upstream].Lean()
	return s.finish(c, core, send, failure, err)
}

// shortestKeepAlive is the shortest time between signs of life that a client's own time limit leads to.
const shortestKeepAlive = 500 * time.Millisecond

// sink returns the client's side of the request. The client hears of the upstream before the time limit that it states.
func (k *Core) sink(c echo.Context, x *recovery.Exchange) *stream.Sink {
	cfg := k.Stream
	if x.Patience > 0 {
		half := max(x.Patience/2, shortestKeepAlive)
		cfg.KeepAliveAfter, cfg.KeepAliveEvery = min(cfg.KeepAliveAfter, half), min(cfg.KeepAliveEvery, half)
	}
	sink := stream.NewSink(c.Response(), cfg)
	h := http.Header{}
	if x.Session != "" {
		h["X-Rebound-Session"] = []string{x.Session}
	}
	sink.KeepAwake(h, x.Streaming)
	return sink
}

// equip sets what the request's sender sends besides the body: path, query and headers, and the
// client's compressed bytes, if any.
func (s *Server) equip(r *request, core *Core, c echo.Context, who client, w *wire, raw *buffer) {
	req, send := c.Request(), &r.sender
	*send = sender{core: core, x: &r.exchange, wire: w, who: who, header: req.Header, narrow: who.restricted(), first: &r.answer}
	send.query = core.scrub(who, req.Header, req.URL.RawQuery)
	upstream.Forwardable(send.header, s.via)
	r.encoding[0] = "identity" // the gateway reads the answers
	send.header["Accept-Encoding"] = r.encoding[:]
	if raw.encoded != nil {
		delete(send.header, "Content-Encoding")
		send.encoded, send.asItCame = raw.encoded, maps.Clone(send.header)
		send.asItCame["Content-Encoding"] = []string{raw.coding}
	}
}

// finish reports the request, after it has delivered the gateway's own reply or the last error.
func (s *Server) finish(c echo.Context, core *Core, send *sender, f *recovery.Failure, err error) error {
	x, sink := send.x, send.sink
	sink.Close()
	ev := x.Done()
	ev.Status, ev.TTFB = c.Response().Status, sink.FirstByte(x.Started)
	for i := range x.Attempts {
		x.Attempts[i].Upstream = send.requestIDOf(i + 1)
		ev.Upstream = cmp.Or(x.Attempts[i].Upstream, ev.Upstream)
	}
	defer func() {
		if ev.Time.IsZero() {
			ev.Time = time.Now()
		}
		ev.Spent, ev.Extra = core.spent(ev.Usage.Add(ev.Cost), ev.Target.Model, x.Model), core.spent(ev.Cost, ev.Target.Model, x.Model)
		if x.Streaming && ev.Spent > 0 {
			c.Response().Header()[http.TrailerPrefix+costHeader] = []string{shownCost(ev.Spent)}
		}
		ev.Duration = ev.Time.Sub(x.Started)
		core.Observer.Observe(ev)
		if send.recording != nil && !ev.Uneventful() {
			core.Recorder.Keep(send.recording)
		}
	}()
	switch {
	case err == nil && f == nil:
		if ev.Time = x.Ended(); ev.Time.IsZero() {
			ev.Time = time.Now()
		}
		if core.Accepted != nil {
			core.Accepted(x, ev.Time)
		}
		return nil
	case errors.Is(err, recovery.ErrClientGone):
		ev.Status, ev.Client, send.left = statusClientGone, "gone", true
		panic(http.ErrAbortHandler) // not 200 without a body, which a client that closed only its sending side would read
	case errors.Is(err, recovery.ErrReplied):
		return send.replied(c.Request().Context(), &ev)
	case errors.Is(err, recovery.ErrNoTarget):
		ev.Status = http.StatusNotFound
		return core.unserved(send.wire.requests.API(), x.Model)
	case errors.Is(err, recovery.ErrDisabled):
		ev.Status = http.StatusServiceUnavailable
		e := targetDisabled(x.Model)
		e.reported = true
		return e
	case f == nil:
		ev.Status, ev.Cause = http.StatusInternalServerError, err.Error()
		return reported(http.StatusInternalServerError, "internal", "An internal error occurred; the gateway's log has the details.")
	}
	ev.Target, ev.Class, ev.Rule = f.Target, f.Class(), f.Rule
	if f.Err != nil {
		ev.Cause = f.Err.Error()
	}
	send.refuse(c.Request().Context(), f, &ev)
	return nil
}

// codeStopped is the error code of a stopped session.
const codeStopped = "session_stopped"

// replied delivers the gateway's own answer, and completes the request's event.
func (s *sender) replied(ctx context.Context, ev *recovery.Event) error {
	x := s.x
	if x.Reply.Error {
		ev.Rule = codeStopped
		if s.sink.Committed() { // with 200
			s.endWithError(ctx, encode(x.Reply.Text, "rebound_error", "", codeStopped))
			return nil
		}
		ev.Status = http.StatusUnprocessableEntity
		e := reported(ev.Status, codeStopped, "%s", x.Reply.Text)
		e.Header = http.Header{"X-Should-Retry": {"false"}}
		s.decorate(e.Header, recovery.Target{}, nil)
		return e
	}
	c := stream.Composition{ID: x.ID, Model: x.Model, Text: x.Reply.Text, Created: time.Now()}
	n := stream.Compose(x.Body, c, nil, stream.Options{Config: s.core.Stream, Format: s.wire.answers, Sink: s.sink, Started: x.Started})
	s.decorate(n.Header, recovery.Target{}, nil)
	ev.Status = http.StatusOK
	if b := n.Deliver(ctx); b != nil {
		ev.Status, ev.Client = statusClientGone, "gone"
	}
	ev.TTFB = s.sink.FirstByte(x.Started)
	return nil
}

// refuse gives the client the last failure: as a response, or as an error event if the stream has
// begun, or the upstream reported it as one.
func (s *sender) refuse(ctx context.Context, f *recovery.Failure, ev *recovery.Event) {
	r, begun := s.core.final(f, s.x), s.sink.Committed()
	asEvent := begun || s.reportedInStream(f)
	if adapt := dialects[s.wire.requests.API()].adapt; adapt != nil {
		adapt(&r, f, s.x, asEvent)
	}
	s.decorate(r.header, f.Target, nil)
	switch {
	case !asEvent:
		ev.Status = r.status
		_ = s.sink.Whole(r.status, r.header, r.body)
	case begun && (!s.x.Streaming || s.x.Mode != recovery.ModeAct):
		panic(http.ErrAbortHandler)
	default: // never a clean end
		r.header["Content-Type"] = f.Response.Header["Content-Type"]
		s.sink.Begin(http.StatusOK, r.header)
		s.endWithError(ctx, r.body)
	}
}

// reportedInStream reports whether the failure is an error event, and the client's format has such
// events: agents do other things after them than after a status. Codex shortens what it summarises
// after context_length_exceeded, and Claude Code asks for an answer that is not streamed.
func (s *sender) reportedInStream(f *recovery.Failure) bool {
	return s.x.Streaming && s.x.Mode == recovery.ModeAct && f.Signal.Stream && s.wire.answers.ErrorEnds()
}

// endWithError ends a stream with an error event and, if clients of the format notice an error only by
// it, with a broken connection.
func (s *sender) endWithError(ctx context.Context, body []byte) {
	if err := s.sink.Write(stream.Piece{Bytes: stream.End(s.wire.answers, body, s.sink)}); err == nil && s.wire.answers.ErrorEnds() {
		return
	}
	recovery.Wait(ctx, beforeBreak)
	panic(http.ErrAbortHandler)
}

// beforeBreak is the pause between an error event and closing the connection: some clients lose what
// they have not yet read when the connection breaks.
const beforeBreak = 200 * time.Millisecond

// reported is failf for an error that the request's own event already reports.
func reported(status int, code, format string, args ...any) *Error {
	e := failf(status, code, format, args...)
	e.reported = true
	return e
}

// statusClientGone is nginx's status for a client that disconnected; it is only logged.
const statusClientGone = 499

// patienceOf returns the client's own time limit, or 0 if it sends none.
func patienceOf(h http.Header) time.Duration {
	for _, name := range [...]string{"X-Stainless-Timeout", "X-Stainless-Read-Timeout"} { // Node and Go, Python
		if secs, err := strconv.ParseFloat(first(h, name), 64); err == nil && secs > 0 && secs < 86400 {
			return time.Duration(secs * float64(time.Second))
		}
	}
	return 0
}

// mode returns the recovery mode of a request: the client's header, or else the configuration.
func (k *Core) mode(h http.Header) (recovery.Mode, error) {
	v := first(h, "X-Rebound-Mode")
	if v == "" {
		return k.Engine.Config.Mode, nil
	}
	mode, ok := recovery.ParseMode(v)
	if !ok {
		return "", failf(http.StatusBadRequest, "invalid_mode", "X-Rebound-Mode must be one of act, annotate, observe, off.")
	}
	return mode, nil
}

// betasHeader lists the features in test at Anthropic that a client asks for.
const betasHeader = "Anthropic-Beta"

// namesIn returns the names that the lines of a header list.
func namesIn(lines []string) []string {
	return strings.FieldsFunc(strings.Join(lines, ","), func(r rune) bool { return r == ',' || r == ' ' })
}

// betasOf returns the sorted names of the betas that the client asks for, and whether a larger context window is among them, as in
// context-1m-2025-08-07.
func betasOf(h http.Header) (names []string, longContext bool) {
	if len(h[betasHeader]) == 0 {
		return nil, false
	}
	names = namesIn(h[betasHeader])
	slices.Sort(names)
	return slices.Compact(names), slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, "context-1m") })
}

// withoutBetas returns a copy of the headers in which these betas are not asked for, or h itself if there are none.
func withoutBetas(h http.Header, gone []string) http.Header {
	if len(gone) == 0 {
		return h
	}
	h = maps.Clone(h)
	left := slices.DeleteFunc(namesIn(h[betasHeader]), func(name string) bool { return slices.Contains(gone, name) })
	if len(left) == 0 {
		delete(h, betasHeader)
	} else {
		h[betasHeader] = []string{strings.Join(left, ",")}
	}
	return h
}

// describe fills the exchange with facts about the request and its client.
func (k *Core) describe(x *recovery.Exchange, c echo.Context, who client) error {
	req, body := c.Request(), x.Body
	x.ID, x.Key, x.Model, x.Streaming = requestID(), who.name, body.Model(), body.Streaming()
	if deployment := c.Param("deployment"); deployment != "" && x.Model == "" {
		x.Model = deployment // Azure names the model in the path
	}
	if err := checkModelName(x.Model); err != nil {
		return err
	}
	if !who.may(x.Model) {
		return notAllowed(x.Model)
	}
	var err error
	if x.Mode, err = k.mode(req.Header); err != nil {
		return err
	}
	x.Patience = patienceOf(req.Header)
	x.Betas, x.LongContext = betasOf(req.Header)
	if who.passes {
		x.Credential = k.labels.of(who.credential)
	}
	var hints []string
	for _, name := range sessionHints {
		if v := first(req.Header, name); v != "" {
			hints = append(hints, v)
		}
	}
	id := k.Identifier.Identify(body, who.credential, first(req.Header, "X-Rebound-Session"), hints)
	x.Session, x.Side = id.Session(), id.Side
	if who.budget != nil && who.budget.Any() {
		x.Budget, x.Hint = *who.budget, id.Hint()
	}
	x.Secret, x.Trusted = who.credential, !who.passes
	x.Keeps = k.keeps(x)
	if k.Router.Chooses(x.Model, body.Format().API()) { // only needed to choose among several targets
		x.Affinity, x.Pin = id.Affinity(), id.Pin()
	}
	return nil
}
