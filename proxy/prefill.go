package proxy

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/rebound-llm/rebound/proxy/upstream"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// lookTime bounds the look at a server that is to continue an answer.
const lookTime = 2 * time.Second

var _ recovery.Prober = (*sender)(nil)

// Prefill takes a look at a server whose way to continue an answer is not known:
// at its list of models, which says what it is.
func (s *sender) Prefill(ctx context.Context, c recovery.Candidate) recovery.Prefill {
	u := s.core.Upstreams[c.Upstream]
	if p := u.ServerPrefill(); p != "" {
		return p
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	for range 3 { // what cut the answer may cut this, too
		resp, err := u.Do(ctx, upstream.Request{Method: http.MethodGet, Path: "/models", Query: s.query, Model: c.Model, Key: c.Key, Header: s.header})
		if err != nil {
			continue
		}
		list, err := io.ReadAll(io.LimitReader(resp.Body, maxModelList))
		_ = resp.Body.Close()
		if err != nil {
			continue
		}
		if transcript.Valid(list, 64) != nil {
			list = nil
		}
		p := upstream.ServerPrefill(resp.Header, list)
		if resp.StatusCode == http.StatusOK {
			u.SetServerPrefill(p)
		}
		return p
	}
	return recovery.PrefillNone
}
