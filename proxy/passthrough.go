package proxy

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/proxy/quota"
	"github.com/rebound-llm/rebound/proxy/stream"
	"github.com/rebound-llm/rebound/proxy/upstream"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// connectTries is how often a request is tried while nothing could be sent.
const connectTries = 3

// passage is a request that is forwarded unchanged.
type passage struct {
	core  *Core
	who   client
	up    upstream.Request
	place string // its normalized path, which rules compare

	api     transcript.API // the client's
	mode    recovery.Mode
	ev      recovery.Event
	grant   *quota.Grant
	started time.Time
	answer  *metered // nil if its usage is not counted
	left    bool     // the client left while the upstream worked on the request
}

// passthrough forwards requests for all other paths unchanged. JSON bodies with a model follow the
// model map, everything else goes to the default upstream. Only repeatable requests are retried after
// something was sent.
func (s *Server) passthrough(c echo.Context, core *Core, who client) error {
	req := c.Request()
	p := &passage{core: core, who: who, up: upstream.Request{Method: req.Method, Path: withoutV1(req.URL.EscapedPath()), Header: req.Header, Narrow: who.restricted()}}
	up := &p.up
	parts := partsOf(up.Path)
	p.place = "/" + strings.ToLower(strings.Join(parts, "/"))
	if err := core.permits(who, req, parts); err != nil {
		return err
	}
	core.forget(req.Context(), who, req.Method, parts)
	p.api = apiOf(req)
	mode, err := core.mode(req.Header)
	if err != nil {
		return err
	}
	p.mode = mode
	targets, model, raw, err := p.findTargets(s, c, parts)
	if raw != nil {
		defer raw.end()
	}
	if body, ok := up.Reader.(*upload); ok {
		defer body.end()
	}
	if err != nil {
		return err
	}
	if p.grant, err = core.admit(req.Context(), who, model, up.Body, nil); err != nil {
		return err
	}
	up.Query = core.scrub(who, up.Header, req.URL.RawQuery)
	upstream.Forwardable(up.Header, s.via) // keeps Accept-Encoding, because the answer is passed through
	if who.restricted() || core.hidden.Load() != nil || p.grant != nil || slices.Contains(madeAt, p.place) {
		up.Header["Accept-Encoding"] = []string{"identity"} // except for its ids, secrets and usage, which are read
	}
	s.inFlight.Begin()
	defer s.inFlight.End()
	p.ev = recovery.Event{Name: recovery.EventRequestDone, Origin: recovery.Origin{Request: requestID(), Key: who.name, Mode: recovery.ModeOff}, Attempt: 1}
	c.Response().Header()[requestHeader] = []string{p.ev.Request}
	p.started = time.Now()
	again := up.Reader == nil && repeatable(up.Method, up.Path) && len(targets) > 0
	if core.Tracer != nil {
		defer core.Tracer.Trace(p.ev.Request, operation(up.Path), model, p.started, up.Header)()
		if len(targets) > 0 && !again {
			up.Header = core.traced(up.Header, p.ev.Request, 1, targets[0].Target)
		}
	}
	defer p.report(model)
	if again {
		return p.repeat(c, targets, model)
	}
	resp, asked, err := core.forward(req.Context(), targets, *up)
	p.ev.Model, p.ev.Target = asked.Model, asked.Target
	if err != nil {
		return p.unanswered(c, err)
	}
	return p.deliver(c, resp)
}

// report completes the event of a request that has ended with its usage and cost, charges the client's limits, and sends
// the event to the observer.
func (p *passage) report(model string) {
	switch {
	case p.answer != nil:
		most := len(p.up.Body) + maxUnseen
		if p.up.Path != "/completions" && !repeatable(p.up.Method, p.up.Path) { // others may refer to input that is not in the body
			most = max(most, maxReported)
		}
		p.ev.Usage = p.answer.used(p.up.Body, most, p.generates())
	case p.left && p.grant != nil && p.generates():
		p.ev.Usage.Input = estimate(p.up.Body)
	}
	p.ev.Spent = p.core.spent(p.ev.Usage, p.ev.Target.Model, model)
	p.grant.End(tokens(p.ev.Usage), p.ev.Spent)
	p.ev.Time = time.Now()
	p.ev.Duration = p.ev.Time.Sub(p.started)
	p.core.Observer.Observe(p.ev)
}

// generates reports whether a model may work on the request. Then its usage counts, estimated if it is not reported.
func (p *passage) generates() bool {
	switch p.up.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodDelete:
		return false
	}
	return !slices.Contains(countPaths, p.place)
}

// fetches reports whether the answer is a stored response. Only there stands the usage of one that ran in the background.
func (p *passage) fetches() bool {
	return p.up.Method == http.MethodGet && strings.HasPrefix(p.place, "/responses/") && strings.Count(p.place, "/") == 2
}

// unanswered is the client's error if no answer came; it depends on who caused that. It breaks the connection of a client
// that is gone.
func (p *passage) unanswered(c echo.Context, err error) error {
	ctx := c.Request().Context()
	if body, ok := p.up.Reader.(*upload); ok {
		if e := body.failure(ctx); e != nil {
			p.ev.Status, p.ev.Cause, e.reported = e.Status, e.Message, true
			return e
		}
	}
	if ctx.Err() != nil {
		p.ev.Status, p.left = statusClientGone, !upstream.Unsent(err)
		panic(http.ErrAbortHandler) // as in Server.finish
	}
	if errors.Is(err, upstream.ErrPath) {
		p.ev.Status = http.StatusNotFound
		return c.Blob(p.ev.Status, echo.MIMEApplicationJSON, impossibleModel(p.ev.Target.Model))
	}
	p.ev.Status, p.ev.Cause = http.StatusBadGateway, err.Error()
	return &Error{reported: true, Status: http.StatusBadGateway, Code: "upstream_unreachable",
		Message: "The upstream could not be reached. Nothing came back from it."}
}

// deliver copies an answer to the client, without the gateway's secrets. It records the owner of a new
// object and the windows in a list of models.
func (p *passage) deliver(c echo.Context, resp *http.Response) error {
	core, target, req := p.core, p.ev.Target, c.Request()
	p.ev.Status = resp.StatusCode
	if own := core.Upstreams[target.Upstream].OwnKeys(); own && (resp.StatusCode == 401 || resp.StatusCode == 402 || resp.StatusCode == 403) {
		_ = resp.Body.Close()
		p.ev.Status = http.StatusBadGateway
		return upstreamCredentials(target.Upstream)
	}
	if resp.StatusCode >= 300 && resp.StatusCode < 400 && resp.StatusCode != http.StatusNotModified {
		if err := p.relocate(resp); err != nil {
			return err
		}
	}
	core.returnable(resp)
	core.hideErrors(resp)
	if resp.StatusCode < 300 && req.Method == http.MethodPost && slices.Contains(madeAt, p.place) && core.tracksOwners() {
		core.recordOwner(req.Context(), core.owner(p.who), target, resp)
	}
	if p.grant != nil && (p.generates() || p.fetches()) {
		p.answer = &metered{Metered: stream.Metered{ReadCloser: resp.Body}, resp: resp}
		resp.Body = p.answer
	}
	body, ok := p.up.Reader.(*upload)
	early := ok && !body.whole.Load() && req.ProtoMajor < 2 // the answer comes before the end of the request
	if early {
		// Otherwise net/http would read up to 256 KB of the body, which the upstream would never get, and then close it.
		_ = body.conn.EnableFullDuplex()
		c.Response().Header().Set("Connection", "close") // what is left of the body would be read as the next request
	}
	sink := stream.NewSink(c.Response(), core.Stream)
	defer sink.Close()
	defer resp.Body.Close()
	sink.Begin(resp.StatusCode, resp.Header)
	var list *copyingBody
	if p.up.Path == "/models" && resp.StatusCode == http.StatusOK && resp.Header.Get("Content-Encoding") == "" {
		list = &copyingBody{ReadCloser: resp.Body}
		resp.Body = list
	}
	if broken := stream.Copy(sink, resp.Body); broken != nil {
		if p.ev.Cause = broken.Err.Error(); broken.Client || req.Context().Err() != nil {
			p.ev.Status, p.ev.Client = statusClientGone, "gone"
		}
		panic(http.ErrAbortHandler) // never a clean end after a failure
	}
	if list != nil {
		core.noteWindows(target.Upstream, list.seen.Bytes())
	}
	if early && http.NewResponseController(c.Response().Writer).Flush() == nil {
		drop(req.Body, body.conn.SetReadDeadline, time.Now().Add(maxDiscard))
	}
	return nil
}

// relocate rewrites a redirect within the upstream to one within the gateway. It refuses others, which
// would lead a client with its credential past the gateway.
func (p *passage) relocate(resp *http.Response) error {
	target := p.ev.Target
	asked := p.up
	asked.Model = target.Model
	path, query, ok := p.core.Upstreams[target.Upstream].Relocated(asked, resp)
	if !ok {
		_ = resp.Body.Close()
		p.ev.Status, p.ev.Cause = http.StatusBadGateway, "the upstream answers with a redirect to another place"
		return reported(http.StatusBadGateway, "upstream_redirect", "The upstream %q answers with a redirect to another place, which the gateway does not "+
			"pass on. The operator has to check its URL.", target.Upstream)
	}
	to := p.core.Config.Prefix + "/v1" + path
	if query != "" && !p.who.restricted() {
		to += "?" + query
	}
	resp.Header["Location"] = []string{to}
	return nil
}

// operation returns OpenTelemetry's name for the operation of a path.
func operation(path string) string {
	switch path {
	case "/embeddings":
		return "embeddings"
	case "/completions":
		return "text_completion"
	}
	return "other"
}

// hideErrors removes the gateway's secrets from an error response or an error in a stream.
func (k *Core) hideErrors(resp *http.Response) {
	switch {
	case k.hidden.Load() == nil:
	case resp.StatusCode < 300:
		k.hideEvents(resp)
	default:
		_ = upstream.Decode(resp) // the request asked for no encoding
		k.hidden.Load().Header(resp.Header)
		resp.Body = k.hidden.Load().Body(resp.Body)
		resp.Header.Del("Content-Length") // the length may change
	}
}

// hideEvents removes the gateway's secrets from a stream that is passed on unchanged and may contain
// errors.
func (k *Core) hideEvents(resp *http.Response) {
	if k.hidden.Load() != nil && strings.HasPrefix(first(resp.Header, "Content-Type"), "text/event-stream") {
		resp.Body = k.hidden.Load().Body(resp.Body)
		resp.Header.Del("Content-Length")
	}
}

// findTargets returns the targets for the model in a request's body, the model, and the buffer of the body if
// it was read; the buffer also with an error. It leaves out what an operator has disabled, except the target that has
// made the object of the request, and lowers the mode as switches say.
func (p *passage) findTargets(s *Server, c echo.Context, parts []string) (_ []recovery.Choice, model string, raw *buffer, err error) {
	req, k, who, up := c.Request(), p.core, p.who, &p.up
	empty := req.Body == nil || req.ContentLength == 0
	asJSON := !empty && strings.Contains(req.Header.Get("Content-Type"), "json") && req.Header.Get("Content-Encoding") == ""
	if asJSON {
		if raw, err = s.readBody(c, who, k.Config.Limits); err != nil {
			return nil, "", nil, err
		}
		up.Body = raw.bytes
		if transcript.Valid(raw.bytes, k.Config.Limits.Nesting) == nil {
			model = gjson.GetBytes(raw.bytes, "model").Str
		}
		if err := checkModelName(model); err != nil {
			return nil, "", raw, err
		}
	}
	if who.restricted() {
		if err := k.strict(req, who, up.Path, "", up.Body); err != nil {
			return nil, model, raw, err
		}
	}
	if !asJSON && !empty {
		up.Reader, up.Length = s.upload(c, k.Config.Limits.BodyTimeout), req.ContentLength
	}
	if k.separatesClients() && !empty && len(parts) > 0 && slices.ContainsFunc(referringAt, func(name string) bool { return strings.EqualFold(name, parts[0]) }) && !who.opens(parts) {
		if !asJSON {
			return nil, "", raw, failf(http.StatusUnsupportedMediaType, "content_type", "The body must be sent as 'Content-Type: application/json', not compressed.")
		}
		if bad := transcript.Valid(up.Body, k.Config.Limits.Nesting); bad != nil {
			return nil, "", raw, badBody(bad)
		}
		if err := k.ownsAll(req.Context(), who, up.Body); err != nil {
			return nil, "", raw, err
		}
	}
	if targets, err := k.ownerTarget(c, who, up, parts); targets != nil || err != nil {
		return targets, model, raw, err
	}
	credential := ""
	if who.passes {
		credential = k.labels.of(who.credential)
	}
	x := &recovery.Exchange{Request: recovery.Request{Model: model, Mode: p.mode},
		Caller: recovery.Caller{Key: who.name}, Candidates: k.Router.Candidates(model, p.api, credential, 0)}
	if len(x.Candidates) == 0 {
		return nil, model, raw, k.unserved(p.api, model)
	}
	if err := k.switched(req.Context(), x); err != nil {
		return nil, model, raw, err
	}
	p.mode = x.Mode
	switch {
	case !repeatable(up.Method, up.Path):
	case up.Method == http.MethodPost:
		return anyKey(alike(x.Candidates)), model, raw, nil
	default: // lists of models stay those of one account
		return alike(x.Candidates), model, raw, nil
	}
	return k.readyFirst(x.Candidates), model, raw, nil
}

// switched applies an operator's switches to a forwarded request. It returns an error if no candidate is left.
func (k *Core) switched(ctx context.Context, x *recovery.Exchange) error {
	if k.Switches != nil && k.Switches.Prepare(ctx, x) != nil {
		return targetDisabled(x.Model)
	}
	return nil
}

// readyFirst moves targets that are ready now to the front.
func (k *Core) readyFirst(list []recovery.Choice) []recovery.Choice {
	slices.SortStableFunc(list, func(a, b recovery.Choice) int {
		ra, rb := k.Engine.Health.Check(a.Target).Ready, k.Engine.Health.Check(b.Target).Ready
		switch {
		case ra && !rb:
			return -1
		case rb && !ra:
			return 1
		}
		return 0
	})
	return list
}

// forward sends the request, and goes on to the next target if one cannot be reached. It also returns
// the last target that it asked.
func (k *Core) forward(ctx context.Context, targets []recovery.Choice, up upstream.Request) (*http.Response, recovery.Choice, error) {
	client := up.Body
	for n := 0; ; n++ {
		t := targets[min(n, len(targets)-1)]
		up.Model, up.Key, up.Body = t.Model, t.Key, client
		if client != nil && t.Model != "" {
			up.Body = withModel(client, t.Model, k.Config.Limits.Nesting)
		}
		resp, err := k.Upstreams[t.Upstream].Do(ctx, up)
		if err == nil || !upstream.Unsent(err) || n+1 >= max(connectTries, len(targets)) || up.Reader != nil && n > 0 {
			return resp, t, err
		}
		if !recovery.Wait(ctx, time.Duration(n)*200*time.Millisecond) {
			return nil, t, ctx.Err()
		}
	}
}

// withModel sets the model of a body. It returns raw itself if that already names the model.
func withModel(raw []byte, model string, depth int) []byte {
	b, err := transcript.Parse(raw, transcript.Chat, transcript.Limits{Depth: depth})
	if err != nil || b.Model() == model {
		return raw
	}
	out, err := b.Edit().SetModel(model).Apply()
	if err != nil {
		return raw
	}
	return out
}

// withoutV1 removes the /v1 prefix, which upstreams' base URLs already contain.
func withoutV1(path string) string { return strings.TrimPrefix(path, "/v1") }
