package proxy

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rebound-llm/rebound/proxy/recording"
	"github.com/rebound-llm/rebound/proxy/stream"
	"github.com/rebound-llm/rebound/proxy/upstream"
	"github.com/rebound-llm/rebound/recovery"
)

// maxErrorBody limits how much of an upstream's error body is read, in bytes.
const maxErrorBody = 1 << 20

// errorBodyPatience limits how long reading an error body may take.
const errorBodyPatience = 10 * time.Second

// sender makes the attempts of one exchange.
type sender struct {
	core   *Core
	x      *recovery.Exchange
	sink   *stream.Sink
	header http.Header // the client's forwardable headers
	wire   *wire
	who    client
	query  string
	narrow bool    // only headers and queries that are known to be harmless go upstream
	first  *answer // memory for the answer to the first attempt; may be nil

	ids struct { // upstreams' request ids, by attempt; several attempts run at once
		sync.Mutex
		list []string
	}

	recording *recording.Recording // nil: nothing is recorded

	asked atomic.Bool // an upstream has worked on the request, or did so when the client left
	left  bool        // the client left before its answer was complete

	encoded  []byte      // the request's body as received, if it was compressed, and
	asItCame http.Header // header with its Content-Encoding
}

var (
	_ recovery.Sender  = (*sender)(nil)
	_ recovery.Charger = (*sender)(nil)
)

// Send makes one attempt and waits until its answer has begun.
func (s *sender) Send(ctx context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
	n := s.first
	if n == nil || a.Number != 1 {
		n = &answer{}
	}
	n.s, n.a, n.ctx = s, a, ctx
	if a.Plain {
		s.sink.Close() // the client hears only of the upstream
	}
	ask := s.ask
	if a.Resume != nil && a.Resume.Way == recovery.WayFetch {
		ask = s.fetch
	}
	resp, f := ask(ctx, a)
	if f != nil {
		return nil, f
	}
	n.resp = resp
	o := n.options()
	if resp.StatusCode >= 300 {
		f := s.refused(ctx, a, resp)
		if resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests {
			f.Job = s.job(a, "")
		}
		if composed := s.salvage(a, f, o); composed != nil {
			resp.Header = composed.Header
			n.Deliverable, n.phase = composed, recovery.PhaseBody
			return n, nil
		}
		return nil, f
	}
	begun, phase, broken := n.open(ctx, o)
	n.phase = phase
	if broken != nil {
		if broken.Flaw == nil {
			broken.Err = cause(ctx, broken.Err)
			broken.Stalled = broken.Stalled || errors.Is(broken.Err, stream.ErrStalled)
		}
		a.Cancel(nil)
		_ = resp.Body.Close()
		return n.broken(broken)
	}
	n.Deliverable = begun
	return n, nil
}

// ask sends the request of an attempt, waits for the response head, and decompresses the body.
func (s *sender) ask(ctx context.Context, a recovery.Attempt) (*http.Response, *recovery.Failure) {
	header, body := s.header, s.withThoughts(ctx, a)
	if s.encoded != nil && unedited(body, s.x.Body.Raw()) {
		header, body = s.asItCame, s.encoded
	}
	header = withoutBetas(header, a.NoBetas)
	method, path, query := http.MethodPost, s.wire.path, s.query
	if a.Resume != nil && a.Resume.Job != nil {
		method, path, body = http.MethodGet, s.wire.path+"/"+url.PathEscape(a.Resume.Job.ID), nil
		if !a.Resume.Job.Stored {
			query = resumeQuery(query, a.Resume.Job)
		}
	}
	if s.recording != nil && body != nil {
		s.recording.Attempt(a.Number, a.Target.Upstream+"/"+a.Target.Model, a.Body, unedited(a.Body, s.x.Body.Raw()))
	}
	resp, err := s.core.Upstreams[a.Target.Upstream].Do(ctx, upstream.Request{
		Method: method, Path: path, Query: query, Model: a.Target.Model, Key: a.Target.Key,
		Header: s.core.traced(header, s.x.ID, a.Number, a.Target.Target), Narrow: s.narrow, Body: body, Follow: s.mayFollow,
	})
	if err != nil {
		ev := unanswered(ctx, a, err, &s.asked)
		a.Cancel(nil)
		f := s.fail(a, ev)
		if ev.Status == 0 {
			f.Job = s.job(a, "")
		}
		return nil, f
	}
	if resp.StatusCode < 300 {
		s.asked.Store(true)
	}
	s.noteRequestID(a.Number, resp.Header)
	s.core.returnable(resp)
	if err := upstream.Decode(resp); err != nil {
		a.Cancel(nil)
		_ = resp.Body.Close()
		return nil, s.fail(a, recovery.Evidence{Phase: recovery.PhaseBody, Status: resp.StatusCode, Header: resp.Header, Err: err})
	}
	return resp, nil
}

// unanswered returns the evidence of an attempt that got no answer. It sets asked if the upstream may have worked on the
// request when the client left.
func unanswered(ctx context.Context, a recovery.Attempt, err error, asked *atomic.Bool) recovery.Evidence {
	ev := recovery.Evidence{Phase: recovery.PhaseHeaders, Err: cause(ctx, err)}
	switch refused := (*upstream.CredentialError)(nil); {
	case errors.Is(err, upstream.ErrPath):
		return recovery.Evidence{Phase: recovery.PhaseStatus, Status: http.StatusNotFound, Body: impossibleModel(a.Target.Model)}
	case errors.As(err, &refused):
		return recovery.Evidence{Phase: recovery.PhaseStatus, Status: http.StatusUnauthorized, Body: noCredential(), Err: err}
	case upstream.Unsent(err):
		ev.Phase = recovery.PhaseConnect
	case leftBy(ctx):
		asked.Store(true)
	}
	return ev
}

// noCredential is the error of an attempt whose upstream key could not be obtained, in the form of an
// upstream's own.
func noCredential() []byte {
	return encode("The gateway's key for this provider could not be obtained.", "invalid_request_error", "", "invalid_api_key")
}

// requestIDs are the headers with an upstream's request id, which its support asks for.
var requestIDs = [...]string{"X-Request-Id", "Request-Id", "Apim-Request-Id", "X-Amzn-Requestid", "X-Amz-Request-Id", "X-Generation-Id"}

// longestID limits an upstream's request id, in bytes.
const longestID = 128

// noteRequestID records the upstream's request id of an attempt.
func (s *sender) noteRequestID(attempt int, h http.Header) {
	for _, name := range requestIDs {
		if id := first(h, name); id != "" && len(id) <= longestID {
			s.ids.Lock()
			defer s.ids.Unlock()
			for len(s.ids.list) < attempt {
				s.ids.list = append(s.ids.list, "")
			}
			s.ids.list[attempt-1] = id
			return
		}
	}
}

// requestIDOf returns the upstream's request id of an attempt, or "" if unknown.
func (s *sender) requestIDOf(attempt int) string {
	s.ids.Lock()
	defer s.ids.Unlock()
	if attempt > len(s.ids.list) || attempt < 1 {
		return ""
	}
	return s.ids.list[attempt-1]
}

// mayFollow reports whether a redirect within the upstream leads to a path that this client may use:
// restricted gateway keys only get modelPaths.
func (s *sender) mayFollow(path string) bool {
	return !s.who.restricted() || slices.Contains(modelPaths, strings.TrimSuffix(path, "/"))
}

// resumeQuery returns the query for the events of a job that the client has not received.
func resumeQuery(query string, j *recovery.Job) string {
	if query != "" {
		query += "&"
	}
	query += "stream=true"
	if !j.Nothing {
		query += "&starting_after=" + strconv.Itoa(j.Last)
	}
	return query
}

// job returns the job that can be resumed or fetched after this attempt failed, or nil.
func (s *sender) job(a recovery.Attempt, id string) *recovery.Job {
	state := s.x.Body.State()
	if state.Stored && !state.Job && a.Resume == nil && strings.HasPrefix(id, "resp_") && s.x.Streaming {
		return &recovery.Job{ID: id, Stored: true}
	}
	if a.Resume != nil && a.Resume.Job != nil {
		id = a.Resume.Job.ID
	}
	if id == "" || !s.x.Streaming || !state.Job {
		return nil
	}
	last, some := s.sink.Last()
	return &recovery.Job{ID: id, Last: last, Nothing: !some}
}

// unedited reports whether body is the client's own: the same memory, not only equal bytes.
func unedited(body, own []byte) bool {
	return len(body) == len(own) && len(own) > 0 && &body[0] == &own[0]
}

// streamed reports whether a successful response is read as events: by its first bytes or, if they do
// not show it, by its Content-Type.
func (s *sender) streamed(h http.Header, form stream.Form) bool {
	if form != stream.FormOther {
		return form == stream.FormEvents
	}
	ct := first(h, "Content-Type")
	return strings.HasPrefix(ct, "text/event-stream") || s.x.Streaming && !strings.Contains(ct, "json")
}

// refused reads a response with an error status.
func (s *sender) refused(ctx context.Context, a recovery.Attempt, resp *http.Response) *recovery.Failure {
	defer a.Cancel(nil)
	body := s.core.errorBody(a, resp)
	if err := ctx.Err(); err != nil && len(body) == 0 && !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return s.fail(a, recovery.Evidence{Phase: recovery.PhaseHeaders, Err: context.Cause(ctx)})
	}
	f := s.fail(a, recovery.Evidence{Phase: recovery.PhaseStatus, Status: resp.StatusCode, Header: resp.Header, Body: body})
	f.Response = recovery.Response{Status: resp.StatusCode, Header: resp.Header, Body: body}
	return f
}

// errorBody reads the body of an error, or what arrives of it in time, and hides the gateway's keys in it and in the header.
func (k *Core) errorBody(a recovery.Attempt, resp *http.Response) []byte {
	defer resp.Body.Close()
	t := time.AfterFunc(errorBodyPatience, func() { a.Cancel(context.DeadlineExceeded) })
	defer t.Stop()
	_ = upstream.Decode(resp)                                      // does nothing if that was done
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // a partial body is used as it is
	k.hidden.Load().Header(resp.Header)
	return k.hidden.Load().Bytes(body)
}

// salvage builds an answer from model output that the provider refused, if the error contains that
// output and calls can be read from it.
func (s *sender) salvage(a recovery.Attempt, f *recovery.Failure, o stream.Options) *stream.Composed {
	b := s.x.Body
	if f.Class() != recovery.ModelOutputInvalid || o.Mender == nil || a.Resume != nil || f.Released > recovery.ReleasedNothing ||
		b.N() != 1 || b.Logprobs() || b.Audio() {
		return nil
	}
	text, ok := stream.Rejected(f.Response.Body)
	if !ok {
		return nil
	}
	var v recovery.Verdict
	o.Guard(func() { v = o.Mender.Mend(b, recovery.Draft{Text: text}) })
	if v.Judgement != recovery.JudgeReplace || len(v.Calls) == 0 {
		return nil
	}
	c := stream.Composition{ID: s.x.ID, Model: a.Target.Model, Calls: v.Calls, Created: time.Now()}
	if v.Text != nil {
		c.Text = *v.Text
	}
	return stream.Compose(b, c, v.Repairs, o)
}

// fault reports whether a body in place of an answer is an error.
func (s *sender) fault(resp *http.Response, body []byte) bool {
	d := s.core.Classifier.Classify(recovery.Evidence{Phase: recovery.PhaseBody, Status: resp.StatusCode, Header: resp.Header, Body: body, Now: time.Now()})
	return d.Spec.Class != recovery.EmptyResponse && d.Spec.Class != recovery.StreamCut
}

// fail classifies the evidence of a failed attempt and adds how much of the answer the client has.
func (s *sender) fail(a recovery.Attempt, ev recovery.Evidence) *recovery.Failure {
	ev.Request = a.Body
	f := s.core.failed(a, ev)
	f.Upstream, f.Break = s.requestIDOf(a.Number), recovery.Break{Released: s.sink.Released(), Sent: s.sink.Sent()}
	return f
}

// failed classifies the evidence of a failed attempt.
func (k *Core) failed(a recovery.Attempt, ev recovery.Evidence) *recovery.Failure {
	ev.Now = time.Now()
	return &recovery.Failure{Diagnosis: k.Classifier.Classify(ev), Target: a.Target.Target, Attempt: a.Number, Err: ev.Err,
		NeverAnswered: ev.Phase == recovery.PhaseConnect && !k.Upstreams[a.Target.Upstream].Answered()}
}

// leftBy reports whether an attempt has ended because the client left: before that, the gateway only cancels with
// other causes.
func leftBy(ctx context.Context) bool { return context.Cause(ctx) == context.Canceled }

// cause returns the cause of the context's cancellation, if it was cancelled, or else err.
func cause(ctx context.Context, err error) error {
	if c := context.Cause(ctx); c != nil && err != nil {
		return c
	}
	return err
}

// costHeader is the cost of a request with all its attempts, in the currency of the prices. A stream
// has it as a trailer.
const costHeader = "X-Rebound-Cost"

// shownCost formats an amount of money for a header, rounded to a millionth.
func shownCost(v float64) string {
	return strconv.FormatFloat(math.Round(v*1e6)/1e6, 'f', -1, 64)
}

// fallbackHeader names the target that answers in place of the first choice.
const fallbackHeader = "X-Rebound-Fallback"

// fallback returns the name of t if it is a fallback and fallback.visible is set, or else "".
func (s *sender) fallback(t recovery.Target) string {
	if !s.core.Config.Fallback.Visible || !s.x.Fallback(t) {
		return ""
	}
	return strings.NewReplacer("\n", " ", "\r", " ").Replace(t.Upstream + "/" + t.Model)
}

// gatewayHeaders is the number of response headers that decorate sets at most.
const gatewayHeaders = 4

// decorate sets the gateway's response headers. It stores their values in values, which the caller
// must not reuse.
func (s *sender) decorate(h http.Header, t recovery.Target, values []string) {
	set := func(name, value string) {
		n := len(values)
		values = append(values, value)
		h[name] = values[n : n+1 : n+1] // limited capacity, so that an append cannot overwrite the next value
	}
	if s.x.Session != "" {
		set("X-Rebound-Session", s.x.Session)
	}
	set("X-Rebound-Attempts", strconv.Itoa(s.x.Tried()))
	if t != (recovery.Target{}) {
		set("X-Rebound-Target", t.Upstream+"/"+t.Model)
	}
	if done := s.x.Actions(); len(done) > 0 {
		set("X-Rebound-Recovery", strings.Join(done, ", "))
	}
}

// Charge implements recovery.Charger: the gateway key also pays for attempts that lost a race.
func (s *sender) Charge(t recovery.Target, u recovery.Usage) (spent float64) {
	if most := s.mostUsed(u, 0); u.Input > most.Input || u.Output > most.Output {
		u = recovery.Usage{Input: estimate(s.x.Body.Raw())}
	}
	spent = s.core.spent(u, t.Model, s.x.Model)
	if s.core.Limiter != nil && u != (recovery.Usage{}) {
		s.core.Limiter.Owe(s.x.Key, tokens(u), spent)
	}
	return spent
}
