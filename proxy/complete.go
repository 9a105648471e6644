package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/rebound-llm/rebound/proxy/stream"
	"github.com/rebound-llm/rebound/proxy/upstream"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// maxCompletion limits how much of an extra call's answer is read, in bytes.
const maxCompletion = 4 << 20

// completionTime limits one extra call, because a request waits for it.
const completionTime = time.Minute

var errTargetBusy = errors.New("the target is not available now")

// Complete makes an extra call for the exchange, with the credential of its attempts. It implements
// recovery.Completer.
func (s *sender) Complete(ctx context.Context, p recovery.Prompt) (string, recovery.Usage, error) {
	return s.asker(s.header).Complete(ctx, p)
}

// Detach implements recovery.Detacher.
func (s *sender) Detach() recovery.Completer {
	a := s.asker(maps.Clone(s.header))
	a.detached = true
	return a
}

// asker makes extra calls. It holds only the parts of a request that these need, and none of its body.
type asker struct {
	core   *Core
	wire   *wire
	header http.Header
	query  string
	narrow bool
	limit  string // the field with which the client limits its output; empty without a limit
	fields []string
	client string // for the breakers
	key    string // name of the gateway key, and
	model  string // the model as the client named it; detached calls are charged to them
	asked  string // id of the request
	betas  recovery.Betas

	detached bool
}

var _ recovery.Detacher = (*sender)(nil)

func (s *sender) asker(header http.Header) *asker {
	limit, _, _ := s.x.Body.OutputLimit()
	return &asker{core: s.core, wire: s.wire, header: header, query: s.query, narrow: s.narrow, limit: limit,
		fields: s.x.Body.Format().OutputFields(), client: s.x.Client(), key: s.x.Key, model: s.x.Model, asked: s.x.ID, betas: s.x.Betas}
}

// Complete implements recovery.Completer.
func (a *asker) Complete(ctx context.Context, p recovery.Prompt) (text string, used recovery.Usage, err error) {
	u := a.core.Upstreams[p.Target.Upstream]
	if u == nil {
		return "", recovery.Usage{}, fmt.Errorf("no upstream %q", p.Target.Upstream)
	}
	if p.Target.Key == "" {
		p.Target.Key = u.AnyKey()
	}
	if u.API() != a.wire.requests.API() { // the target may use another API than the client
		other := *a
		own := wires[dialects[u.API()].format]
		other.wire = &own
		other.limit, other.fields, a = "", other.wire.requests.OutputFields(), &other
	}
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	if a.detached {
		defer func() {
			if a.core.Limiter != nil && used != (recovery.Usage{}) {
				a.core.Limiter.Owe(a.key, tokens(used), a.core.spent(used, p.Target.Model, a.model))
			}
		}()
	}
	q := a.question(p)
	asked := q
	var refused []recovery.Edit
	for tries := 1; ; tries++ {
		text, once, failure, err := a.once(ctx, u, p.Target, q)
		used = used.Add(once)
		if err == nil { // the target had refused exactly the parts that were dropped
			if asked.Schema != nil && q.Schema == nil {
				a.core.noteRefusedSchema(p.Target)
			}
			if refused != nil {
				a.core.Engine.Knowledge.Learn(a.betas.Known(p.Target.Keyless()), refused, a.asked)
			}
		}
		if failure != nil {
			err = failure
		}
		if err == nil || failure == nil || tries == maxForms || !a.simplify(&q, &refused, failure) {
			return text, used, err
		}
	}
}

// maxForms limits how often a call is made, each time with fewer parts that the target may refuse.
const maxForms = 4

// question builds the request for a prompt. Without an output limit of the client only structured
// prompts get one, because it is unknown which limit field the target accepts.
func (a *asker) question(p recovery.Prompt) transcript.Question {
	q := transcript.Question{Model: p.Target.Model, System: p.System, User: p.User, Limit: a.limit, MaxOutput: p.MaxOutput}
	if p.Form.Schema != nil {
		q.Limit = cmp.Or(a.limit, a.fields[len(a.fields)-1])
		q.Temperature, q.Name = &p.Form.Temperature, p.Form.Name
		if p.Form.Reasoning > 0 && a.core.Reasons != nil && a.core.Reasons(p.Target) {
			q.Temperature, q.MaxOutput, q.Effort = nil, p.Form.Reasoning, lowestEffort
		}
		if !a.core.refusedSchema(p.Target) {
			q.Schema = p.Form.Schema
		}
	}
	return q
}

// lowestEffort is the lowest reasoning effort that all reasoning models accept.
const lowestEffort = "low"

// simplify drops a part of the question: the one that the refusal names, or else the least usual one.
// It returns false if nothing can be dropped. It sets refused to edits that apply to other requests as
// well.
func (a *asker) simplify(q *transcript.Question, refused *[]recovery.Edit, f *recovery.Failure) bool {
	switch f.Signal.Status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
	default:
		return false
	}
	names := append([]string{f.Facts.Param}, f.Facts.Params...)
	const temperature = "temperature"
	switch i := slices.Index(a.fields, q.Limit); {
	case q.Temperature != nil && slices.Contains(names, temperature):
		*refused = []recovery.Edit{{Field: temperature, Drop: true}}
		q.Temperature = nil
	case i >= 0 && slices.Contains(names, q.Limit):
		if q.Limit = ""; i > 0 {
			q.Limit = a.fields[i-1]
		}
	case q.Effort != "":
		q.Effort = ""
	case q.Schema != nil:
		q.Schema = nil
	case q.Temperature != nil:
		q.Temperature = nil
	default:
		return false
	}
	return true
}

// refusedSchema reports whether a target recently refused a response schema.
func (k *Core) refusedSchema(t recovery.Target) bool {
	if k.plain == nil {
		return false
	}
	_, ok := k.plain.Get(t)
	return ok
}

func (k *Core) noteRefusedSchema(t recovery.Target) {
	if k.plain != nil {
		k.plain.Put(t, struct{}{}, 1)
	}
}

// once makes one call within the target's breaker and concurrency limit. The failure is set if the
// upstream refused or broke off.
func (a *asker) once(ctx context.Context, u *upstream.Upstream, t recovery.Target, q transcript.Question) (string, recovery.Usage, *recovery.Failure, error) {
	body, err := a.body(t, q)
	if err != nil {
		return "", recovery.Usage{}, nil, err
	}
	ticket, st := a.core.Engine.Health.For(a.client).Begin(t, time.Now(), false, false)
	if !st.Ready {
		return "", recovery.Usage{}, nil, errTargetBusy
	}
	text, usage, failure, err := a.call(ctx, u, t, body)
	o := recovery.Outcome{Success: err == nil, Failure: failure, Client: !u.OwnKeys()}
	if ctx.Err() != nil {
		o = recovery.Outcome{}
	}
	ticket.Place.Done(ticket, o)
	return text, usage, failure, err
}

// body builds the body of an extra call, with the edits that its target is known to need.
func (a *asker) body(t recovery.Target, q transcript.Question) ([]byte, error) {
	raw := a.wire.requests.Ask(q)
	edits := a.edits(t)
	if len(edits) == 0 {
		return raw, nil
	}
	b, err := transcript.Parse(raw, a.wire.requests, transcript.Limits{})
	if err != nil {
		return nil, err
	}
	return a.core.Engine.Edited(b, edits)
}

// edits returns the edits that requests like this to a target are known to need.
func (a *asker) edits(t recovery.Target) []recovery.Edit {
	return a.core.Engine.Knowledge.Edits(a.betas.Known(t))
}

// call makes the call. The failure, for the target's breaker, is set if the upstream failed.
func (a *asker) call(ctx context.Context, u *upstream.Upstream, t recovery.Target, body []byte) (string, recovery.Usage, *recovery.Failure, error) {
	fail := func(ev recovery.Evidence, err error) (string, recovery.Usage, *recovery.Failure, error) {
		ev.Now, ev.Request = time.Now(), body
		f := &recovery.Failure{Diagnosis: a.core.Classifier.Classify(ev), Target: t, Err: err}
		return "", recovery.Usage{}, f, err
	}
	resp, err := u.Do(ctx, upstream.Request{Method: http.MethodPost, Path: a.wire.path, Query: a.query, Model: t.Model, Key: t.Key, Header: withoutBetas(a.header, a.betas.Refused(a.edits(t))),
		Narrow: a.narrow, Body: body})
	if err != nil {
		return fail(recovery.Evidence{Phase: recovery.PhaseHeaders, Err: err}, err)
	}
	defer resp.Body.Close()
	if err := upstream.Decode(resp); err != nil {
		return fail(recovery.Evidence{Phase: recovery.PhaseBody, Status: resp.StatusCode, Header: resp.Header, Err: err}, err)
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxCompletion))
	if err != nil {
		return fail(recovery.Evidence{Phase: recovery.PhaseBody, Status: resp.StatusCode, Header: resp.Header, Err: err}, err)
	}
	if resp.StatusCode >= 300 {
		return fail(recovery.Evidence{Phase: recovery.PhaseStatus, Status: resp.StatusCode, Header: resp.Header, Body: answer},
			fmt.Errorf("status %d", resp.StatusCode))
	}
	d := a.wire.answers.DecodeWhole(answer)
	if d.Usage.Input > len(body)+maxUnseen || d.Usage.Output > len(answer)+maxUnseen {
		d.Usage = recovery.Usage{Input: estimate(body), Output: estimate(answer)}
	}
	if d.Kind != stream.KindText || d.Finishes == 0 || d.Truthful {
		return "", d.Usage, nil, errors.New("the answer is no complete text")
	}
	return d.Text, d.Usage, nil, nil
}
