package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/rebound-llm/rebound/proxy/stream"
	"github.com/rebound-llm/rebound/proxy/upstream"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// maxCompletion bounds what is read of the answer to an extra call.
const maxCompletion = 4 << 20

// completionTime bounds one extra call: a request waits for it.
const completionTime = time.Minute

var errTargetBusy = errors.New("the target may not be asked now")

// Complete makes an extra call on behalf of the exchange, with the same
// credential as its attempts. It implements recovery.Completer.
func (s *sender) Complete(ctx context.Context, p recovery.Prompt) (string, recovery.Usage, error) {
	u := s.core.Upstreams[p.Target.Upstream]
	if u == nil {
		return "", recovery.Usage{}, fmt.Errorf("no upstream %q", p.Target.Upstream)
	}
	if p.Target.Key == "" {
		p.Target.Key = u.AnyKey()
	}
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	body, err := s.prompt(p)
	if err != nil {
		return "", recovery.Usage{}, err
	}
	ticket, st := s.core.Engine.Health.Begin(p.Target, time.Now(), false, false)
	if !st.Ready {
		return "", recovery.Usage{}, errTargetBusy
	}
	text, usage, failure, err := s.complete(ctx, u, p.Target, body)
	o := recovery.Outcome{Success: err == nil, Failure: failure, Client: !u.OwnKeys()}
	if ctx.Err() != nil {
		o = recovery.Outcome{}
	}
	ticket.Place.Done(ticket, o)
	return text, usage, err
}

// prompt is the body of an extra call, with the edits that its target is known to need.
func (s *sender) prompt(p recovery.Prompt) ([]byte, error) {
	raw := s.x.Body.Ask(p.Target.Model, p.System, p.User, p.MaxOutput)
	edits := s.core.Engine.Knowledge.Edits(p.Target)
	if len(edits) == 0 {
		return raw, nil
	}
	b, err := transcript.Parse(raw, s.x.Body.Format(), transcript.Limits{})
	if err != nil {
		return nil, err
	}
	return s.core.Engine.Edited(b, edits)
}

// complete makes the call. A failure is what an upstream refused, for its breaker.
func (s *sender) complete(ctx context.Context, u *upstream.Upstream, t recovery.Target, body []byte) (string, recovery.Usage, *recovery.Failure, error) {
	fail := func(ev recovery.Evidence, err error) (string, recovery.Usage, *recovery.Failure, error) {
		ev.Now = time.Now()
		f := &recovery.Failure{Diagnosis: s.core.Classifier.Classify(ev), Target: t, Err: err}
		return "", recovery.Usage{}, f, err
	}
	resp, err := u.Do(ctx, upstream.Request{Method: http.MethodPost, Path: s.wire.path, Query: s.query, Model: t.Model, Key: t.Key, Header: s.header, Narrow: s.narrow, Body: body})
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
	d := s.wire.answers.WholeIn(answer, nil)
	if d.Kind != stream.KindText || d.Finishes == 0 || d.Truthful {
		return "", d.Usage, nil, errors.New("the answer is no complete text")
	}
	return d.Text, d.Usage, nil, nil
}
