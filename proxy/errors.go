package proxy

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/proxy/upstream"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Error is an error of the gateway itself: OpenAI's envelope with type "rebound_error", a stable code,
// and a message that says what to do.
type Error struct {
	Status  int
	Code    string
	Message string
	Header  http.Header // further headers, may be nil

	reported bool   // an event already reports it
	key      string // name of the client's gateway key, if known
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

func failf(status int, code, format string, args ...any) *Error {
	return &Error{Status: status, Code: code, Message: fmt.Sprintf(format, args...)}
}

// envelope is OpenAI's error object.
type envelope struct {
	Error envelopeError `json:"error"`
}

type envelopeError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

func encode(message, kind, param, code string) []byte {
	e := envelope{envelopeError{Message: message, Type: kind}}
	if param != "" {
		e.Error.Param = &param
	}
	if code != "" {
		e.Error.Code = &code
	}
	b, err := json.Marshal(e)
	if err != nil { // strings always marshal
		return []byte(`{"error":{"message":"internal error","type":"rebound_error","param":null,"code":"internal"}}`)
	}
	return b
}

// respond sends the error in the format that clients of the path read.
func (e *Error) respond(c echo.Context) error {
	h := c.Response().Header()
	for k, v := range e.Header {
		h[k] = v
	}
	d, request := dialects[apiOf(c.Request())], first(h, requestHeader)
	if d.idHeader != "" && request != "" {
		h[d.idHeader] = []string{request}
	}
	body := d.envelope(e, request)
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	return c.Blob(e.Status, echo.MIMEApplicationJSON, body)
}

// report observes an event for an error that no other event reports. It gives the request an id if it
// has none.
func (s *Server) report(c echo.Context, e *Error) {
	h := c.Response().Header()
	if h[requestHeader] == nil {
		h[requestHeader] = []string{requestID()}
	}
	s.core.Load().Observer.Observe(recovery.Event{Name: recovery.EventRequestDone, Time: time.Now(), Origin: recovery.Origin{Request: first(h, requestHeader), Key: e.key}, Status: e.Status,
		Rule: e.Code, Cause: e.Message, Ending: recovery.Ending{Peer: peerOf(c.Request()).Addr().String()}})
}

// onError is echo's error handler: it sends every error of a handler in an envelope, and reports it
// unless an event already does.
func (s *Server) onError(err error, c echo.Context) {
	if c.Response().Committed {
		return
	}
	var own *Error
	switch e := err.(type) {
	case *Error:
		own = e
	case *echo.HTTPError:
		switch e.Code {
		case http.StatusNotFound:
			own = failf(http.StatusNotFound, "unknown_path", "Rebound serves no %s %s. Point the client's base URL at http://HOST:PORT%s.",
				c.Request().Method, printable(c.Request().URL.Path), dialects[apiOf(c.Request())].base)
		case http.StatusMethodNotAllowed:
			own = failf(http.StatusMethodNotAllowed, "method_not_allowed", "%s is not allowed here.", c.Request().Method)
		default:
			own = failf(e.Code, "request_refused", "%v", e.Message)
		}
	default:
		own = failf(http.StatusInternalServerError, "internal", "An internal error occurred; the gateway's log has the details.")
	}
	if !own.reported && own.Code != "not_ready" && own.Code != "unknown_path" && own.Code != "method_not_allowed" {
		s.report(c, own)
	}
	if own.respond(c) == nil && !s.uploads.stopped() { // else the client has left, or a stop would wait for its body
		discard(c)
	}
}

// printable quotes s and limits its length.
func printable(s string) string {
	if len(s) > 200 {
		s = s[:200] + "…"
	}
	return strconv.QuoteToASCII(s)
}

// badBody explains why a request body cannot be used.
func badBody(err error) *Error {
	if e, ok := err.(*transcript.Error); ok {
		return failf(http.StatusBadRequest, string(e.Code), "The request body cannot be used: %s. Nothing was sent upstream.", e.Message)
	}
	return failf(http.StatusBadRequest, "invalid_json", "The request body cannot be used. Nothing was sent upstream.")
}

// errorMessage returns the message of an error in OpenAI's format, and whether there is one.
func errorMessage(body []byte) (string, bool) {
	if transcript.Valid(body, 64) != nil {
		return "", false
	}
	e := gjson.GetBytes(body, "error")
	m := e.Get("message")
	return m.Str, e.IsObject() && m.Type == gjson.String
}

// openAIShaped reports whether an error body is an OpenAI envelope, which every SDK understands; it
// passes unchanged.
func openAIShaped(body []byte) bool {
	msg, ok := errorMessage(body)
	return ok && msg != ""
}

// reply is the client's answer for the last failure of an exchange.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// upstreamReply is the upstream's own answer.
func upstreamReply(f *recovery.Failure) reply {
	r := reply{status: f.Response.Status, header: http.Header{}, body: f.Response.Body}
	maps.Copy(r.header, f.Response.Header)
	r.header.Del("Content-Length")
	r.header.Del("Content-Encoding")
	return r
}

// withFields adds the fields of an upstream's error, if that is an object, to an envelope: SDKs of its provider read
// them. Only its own "error", a string, gives way.
func withFields(envelope, upstream []byte) []byte {
	if transcript.Valid(upstream, 64) != nil {
		return envelope
	}
	own := gjson.ParseBytes(upstream)
	if !own.IsObject() {
		return envelope
	}
	out := envelope[:len(envelope)-1]
	own.ForEach(func(name, value gjson.Result) bool {
		if name.Str != "error" {
			out = append(append(append(append(out, ','), name.Raw...), ':'), value.Raw...)
		}
		return true
	})
	return append(out, '}')
}

// final turns the last failure into a reply. An upstream error in OpenAI's format stays unchanged;
// others get that format, with their message and fields kept.
func (k *Core) final(f *recovery.Failure, x *recovery.Exchange) reply {
	r := upstreamReply(f)
	if x.Mode != recovery.ModeAct && (f.Response.Status >= 400 || f.Response.Status != 0 && f.Response.Status < 300) { // a redirect is an error in every mode
		return r // as a plain proxy answers
	}
	up := k.Upstreams[f.Target.Upstream]
	if r.status < 400 {
		r.status = f.Signal.Status
	}
	if r.status < 400 || r.status > 599 {
		r.status = http.StatusBadGateway
		if f.Spec != nil && f.Spec.Status >= 400 {
			r.status = f.Spec.Status
		}
	}
	class := string(f.Class())
	switch {
	case up != nil && up.OwnKeys() && (f.Class() == recovery.Auth || f.Class() == recovery.Permission || r.status == 401 || r.status == 402 || r.status == 403):
		// The client cannot change this credential, so its error must not ask for that.
		r.status, r.header = http.StatusBadGateway, http.Header{}
		e := upstreamCredentials(f.Target.Upstream)
		r.body = encode(e.Message, "rebound_error", "", e.Code)
	case f.Spec != nil && f.Spec.Setup:
		r.status, r.header = http.StatusBadGateway, http.Header{}
		r.body = misconfigured(f)
	case openAIShaped(r.body):
	case strings.TrimSpace(f.Signal.Message) != "":
		kind := f.Signal.Type
		if kind == "" {
			kind = "upstream_error"
		}
		code := f.Signal.Code
		if code == "" {
			code = class
		}
		r.body = encode(bound(f.Signal.Message), kind, f.Signal.Param, code)
		if f.Response.Status >= 400 {
			r.body = withFields(r.body, f.Response.Body)
		}
	default:
		r.body = encode(k.explain(f, x), "rebound_error", "", class)
	}
	r.header["Content-Type"] = []string{"application/json"}
	k.advise(r, f, x)
	return r
}

// advise sets the headers that make SDKs retry, wait or give up.
func (k *Core) advise(r reply, f *recovery.Failure, x *recovery.Exchange) {
	asked := f.Signal.RetryAfter > 0
	waiting := asked || r.status == http.StatusTooManyRequests || f.Free && !hopeless(f)
	if waiting && r.header.Get("Retry-After") == "" {
		wait := f.Signal.RetryAfter
		if !f.Signal.HasRetryAfter {
			wait = defaultRetryAfter
		}
		r.header.Set("Retry-After", strconv.Itoa(int(math.Ceil(max(wait, time.Second).Seconds()))))
	}
	// A client that waits may still succeed if the wait is free.
	spent := x.Charged() >= k.Engine.Config.Attempts && !waiting
	if f.Spec != nil && retriedBySDKs(r.status) && (spent || hopeless(f)) && r.header.Get("X-Should-Retry") == "" {
		r.header.Set("X-Should-Retry", "false")
	}
}

// misconfigured is the error for an upstream that cannot work as it is configured.
func misconfigured(f *recovery.Failure) []byte {
	what := "TLS handshake with upstream %q failed. Check http or https, port and certificate."
	if f.Response.Status >= 300 && f.Response.Status < 400 {
		what = "Upstream %q redirects to another place, which the gateway does not follow. Check its URL."
	}
	return encode(fmt.Sprintf(what, f.Target.Upstream), "rebound_error", "", "upstream_misconfigured")
}

// upstreamCredentials is the error when an upstream refuses the gateway's own key.
func upstreamCredentials(upstream string) *Error {
	return reported(http.StatusBadGateway, "upstream_credentials", "Upstream %q refused the gateway's own credential. The operator has to check that key.", upstream)
}

// targetDisabled is the error for a model, or a request without one, whose upstreams an operator has disabled.
func targetDisabled(model string) *Error {
	e := failf(http.StatusServiceUnavailable, "target_disabled", "The operator of this gateway has disabled all targets of the model %s.", printable(model))
	if model == "" {
		e.Message = "The operator of this gateway has disabled the upstream of this request."
	}
	e.Header = http.Header{"X-Should-Retry": {"false"}}
	return e
}

// impossibleModel is the error, in an upstream's form, for a model name that cannot be part of a path.
func impossibleModel(model string) []byte {
	return encode(fmt.Sprintf("The model %s cannot be part of the upstream's URL path.",
		printable(model)), "invalid_request_error", "model", "model_not_found")
}

// defaultRetryAfter is the Retry-After for clients when the upstream gave none.
const defaultRetryAfter = 5 * time.Second

// hopeless reports whether a retry by the client cannot succeed.
func hopeless(f *recovery.Failure) bool {
	if f.Spec == nil {
		return false
	}
	return f.Spec.Setup || f.Spec.Scope == recovery.ScopeRequest || f.Spec.Scope == recovery.ScopeCredential && f.Class() != recovery.RateLimit ||
		f.Repeated || f.NeverAnswered && upstream.UnknownHost(f.Err)
}

// retriedBySDKs reports whether common SDKs retry a status.
func retriedBySDKs(status int) bool {
	return status == 408 || status == 409 || status == 429 || status >= 500
}

// explain describes a failure without an upstream message, and whether to retry. Some clients search
// the message for words like "server error" to decide, so it contains them.
func (k *Core) explain(f *recovery.Failure, x *recovery.Exchange) string {
	what := "gave no usable answer"
	switch {
	case f.Diverged:
		what = "broke off (connection lost), and its answer could not be continued"
	case f.Signal.Phase == recovery.PhaseConnect:
		what = k.unreachable(f)
	case f.Class() == recovery.Timeout:
		what = "timed out"
	case f.Class() == recovery.StreamCut:
		what = "broke off in the middle of its answer (connection lost)"
	case f.Class() == recovery.EmptyResponse:
		what = "gave an empty answer (server error)"
	case f.Signal.Status != 0:
		what = "answered with status " + strconv.Itoa(f.Signal.Status)
	}
	return fmt.Sprintf("The upstream %q %s. %s", f.Target.Upstream, what, outlook(f, x))
}

// unreachable describes which address could not be reached, and why.
func (k *Core) unreachable(f *recovery.Failure) string {
	up := k.Upstreams[f.Target.Upstream]
	if up == nil || f.Err == nil {
		return "could not be reached (connection error)"
	}
	what := fmt.Sprintf("could not be reached at %s: %s (connection error)", up.Address(), upstream.Reason(f.Err))
	if f.NeverAnswered {
		what += ". It has not answered since the gateway started: check its URL, or start it"
	}
	return what
}

// outlook says how often the request was tried, and whether a retry can help.
func outlook(f *recovery.Failure, x *recovery.Exchange) string {
	tried := "Tried once"
	if n := x.Tried(); n > 1 {
		tried = fmt.Sprintf("Tried %d times", n)
		if took := time.Since(x.Started).Round(time.Second); took > 0 {
			tried += " in " + took.String()
		}
	}
	switch state := x.Body.State(); {
	case f.Released == recovery.ReleasedText && state.Stored && !state.MayContinue(x.Keeps):
		return tried + "; the answer is stored at the provider under an id that the client may name later, so no other attempt can go on with it. " +
			"With store: false and the whole history in the request it is continued."
	case f.Repeated:
		return tried + "; the error was the same each time, so retrying does not help."
	case hopeless(f), f.Signal.Status >= 400 && !retriedBySDKs(f.Signal.Status): // a refusal of the request
		return tried + "; retrying does not help."
	}
	return tried + "; try again later."
}

// bound limits the length of an upstream's message, which may be a whole page.
func bound(s string) string {
	const limit = 8 << 10
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + "…"
	}
	return s
}
