package proxy

import (
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/rebound-llm/rebound/proxy/stream"
	"github.com/rebound-llm/rebound/proxy/upstream"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// countPath is where Anthropic counts the tokens of a request.
const countPath = "/messages/count_tokens"

// repeatable reports whether a request may be repeated even if it has reached the server: it stores
// nothing, and its answer costs little.
func repeatable(method, path string) bool {
	switch {
	case method == http.MethodPost:
		return slices.Contains([]string{"/embeddings", "/rerank", "/moderations", countPath}, path)
	case method == http.MethodGet:
		return path == "/models" || strings.HasPrefix(path, "/models/")
	}
	return false
}

// alike keeps the targets with the same model name as the first, because the vectors of two models
// cannot be compared.
func alike(list []recovery.Choice) []recovery.Choice {
	return slices.DeleteFunc(list, func(c recovery.Choice) bool { return c.Model != list[0].Model })
}

// anyKey moves a random key of the first target to the front, by weight, so that these requests share the limits of all keys.
func anyKey(list []recovery.Choice) []recovery.Choice {
	first, least := 0, math.Inf(1)
	for i, c := range list {
		if c.Keyless() != list[0].Keyless() || c.Rank != list[0].Rank {
			continue
		}
		if n := rand.ExpFloat64() / c.Weight; n < least {
			first, least = i, n
		}
	}
	list[0], list[first] = list[first], list[0]
	return list
}

// repeated is a forwarded request that is retried by the same rules as completions. It implements
// [recovery.Sender].
type repeated struct {
	core    *Core
	up      upstream.Request
	deliver func(resp *http.Response, from recovery.Choice) error // delivers an answer to the client

	x       *recovery.Exchange
	asked   atomic.Bool // the upstream worked on the request when the client left
	err     error       // of deliver
	aborted bool        // the answer broke during its delivery
}

// run retries until an answer is delivered. It returns the last failure if none was.
func (r *repeated) run(ctx context.Context, targets []recovery.Choice) (*recovery.Failure, error) {
	body, err := transcript.Parse([]byte("{}"), transcript.Chat, transcript.Limits{}) // a stand-in, because the real body is not parsed
	if err != nil {
		return nil, err
	}
	r.x.Body, r.x.Candidates = body, targets
	return r.core.Forward.Run(ctx, r.x, r)
}

// Send implements recovery.Sender.
func (r *repeated) Send(ctx context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
	up, k := r.up, r.core
	up.Model, up.Key = a.Target.Model, a.Target.Key
	if up.Body != nil && up.Model != "" {
		up.Body = withModel(up.Body, up.Model, k.Config.Limits.Nesting)
	}
	if !a.Plain && up.Path == countPath {
		up.Header, up.Body = k.counted(r.x, a.Target.Target, up.Header, up.Body)
	}
	up.Header = k.traced(up.Header, r.x.ID, a.Number, a.Target.Target)
	resp, err := k.Upstreams[a.Target.Upstream].Do(ctx, up)
	switch {
	case err != nil:
		return nil, k.failed(a, unanswered(ctx, a, err, &r.asked))
	case resp.StatusCode >= 400:
		return nil, r.refused(a, resp)
	}
	return &forwarded{r, a, resp}, nil
}

// counted returns what a request to count tokens sends to a target: what a request to answer would, without the betas and fields
// that the target is known to refuse.
func (k *Core) counted(x *recovery.Exchange, t recovery.Target, h http.Header, raw []byte) (http.Header, []byte) {
	edits := k.Engine.Knowledge.Edits(x.Known(t))
	h = withoutBetas(h, x.Betas.Refused(edits))
	b, err := transcript.Parse(raw, transcript.Messages, transcript.Limits{Depth: k.Config.Limits.Nesting})
	if err != nil || len(edits) == 0 {
		return h, raw
	}
	if edited, err := k.Engine.Edited(b, edits); err == nil {
		raw = edited
	}
	return h, raw
}

// refused reads an answer with an error status.
func (r *repeated) refused(a recovery.Attempt, resp *http.Response) *recovery.Failure {
	k := r.core
	k.returnable(resp)
	body := k.errorBody(a, resp)
	f := k.failed(a, recovery.Evidence{Phase: recovery.PhaseStatus, Status: resp.StatusCode, Header: resp.Header, Body: body})
	f.Response = recovery.Response{Status: resp.StatusCode, Header: resp.Header, Body: body}
	return f
}

// forwarded is the answer to a repeated request.
type forwarded struct {
	r    *repeated
	a    recovery.Attempt
	resp *http.Response
}

// Deliver implements recovery.Answer. If an answer breaks on its way to the client, the
// failure has ReleasedCall, so that no retry follows.
func (n *forwarded) Deliver(ctx context.Context) (rest recovery.Answer, f *recovery.Failure) {
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			n.r.aborted = true
			f = n.r.core.failed(n.a, recovery.Evidence{Phase: recovery.PhaseBody, Status: n.resp.StatusCode, Err: io.ErrUnexpectedEOF})
			f.Released, f.Client = recovery.ReleasedCall, ctx.Err() != nil
		default:
			panic(p)
		}
	}()
	n.r.err = n.r.deliver(n.resp, recovery.Choice{Candidate: n.a.Target})
	return nil, nil
}

// Paused implements recovery.Answer.
func (*forwarded) Paused(context.Context) (*recovery.Pause, time.Duration) { return nil, 0 }

// Discard implements recovery.Answer.
func (n *forwarded) Discard() { _ = n.resp.Body.Close() }

// LongestPause implements recovery.Answer; pauses are not measured.
func (*forwarded) LongestPause() time.Duration { return 0 }

// Drain implements recovery.Answer. The usage of a discarded answer is not needed.
func (n *forwarded) Drain() { n.Discard() }

// Usage implements recovery.Answer. [metered] counts the usage instead.
func (*forwarded) Usage() (recovery.Usage, time.Duration) { return recovery.Usage{}, 0 }

// Finish implements recovery.Answer.
func (*forwarded) Finish() recovery.Finish { return recovery.FinishNone }

// repeat forwards a request that may be sent again.
func (p *passage) repeat(c echo.Context, targets []recovery.Choice, model string) error {
	req, core := c.Request(), p.core
	x := &recovery.Exchange{Request: recovery.Request{ID: p.ev.Request, Model: model, Mode: p.mode, Patience: patienceOf(req.Header), Started: p.started},
		Caller: recovery.Caller{Key: p.who.name, Trusted: !p.who.passes}}
	if p.who.passes {
		x.Credential = core.labels.of(p.who.credential)
	}
	x.Betas, _ = betasOf(req.Header)
	r := &repeated{core: core, up: p.up, x: x}
	r.deliver = func(resp *http.Response, from recovery.Choice) error {
		p.ev.Model, p.ev.Target = from.Model, from.Target
		return p.deliver(c, resp)
	}
	f, err := r.run(req.Context(), targets)
	p.ev.Mode, p.ev.Attempt, p.ev.Attempts, p.ev.Recovery = x.Mode, max(1, x.Tried()), x.Attempts, strings.Join(x.Actions(), ", ")
	switch {
	case r.aborted:
		panic(http.ErrAbortHandler) // never a clean end after a failure
	case errors.Is(err, recovery.ErrClientGone):
		p.ev.Status, p.left = statusClientGone, r.asked.Load()
		panic(http.ErrAbortHandler) // as in Server.finish
	case err != nil:
		return err
	case f == nil:
		return r.err
	}
	return p.refuse(c, f, x)
}

// refuse gives the client the last failure: an upstream's own answer, with the gateway's advice on
// retries.
func (p *passage) refuse(c echo.Context, f *recovery.Failure, x *recovery.Exchange) error {
	core := p.core
	r := core.final(f, x)
	own := core.Upstreams[f.Target.Upstream].OwnKeys() && slices.Contains([]int{401, 402, 403}, f.Response.Status)
	p.ev.Target, p.ev.Model = f.Target, f.Target.Model
	if p.answerCount(c, f) {
		return nil
	}
	if f.Response.Status >= 400 && !own {
		if r = upstreamReply(f); x.Mode == recovery.ModeAct {
			core.advise(r, f, x)
		}
	}
	p.ev.Target, p.ev.Model, p.ev.Class, p.ev.Rule, p.ev.Status = f.Target, f.Target.Model, f.Class(), f.Rule, r.status
	if f.Err != nil {
		p.ev.Cause = f.Err.Error()
	}
	sink := stream.NewSink(c.Response(), core.Stream)
	defer sink.Close()
	_ = sink.Whole(r.status, r.header, r.body) // the client may have left
	return nil
}
