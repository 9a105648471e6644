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

// lookTime limits the request to a server that is to continue an answer.
const lookTime = 2 * time.Second

var _ recovery.Prober = (*sender)(nil)

// Prefill finds out how a server continues an answer if that is unknown: its list of models shows what
// server it is.
func (s *sender) Prefill(ctx context.Context, c recovery.Candidate) recovery.Prefill {
	u := s.core.Upstreams[c.Upstream]
	if p := u.ServerPrefill(); p != "" {
		return p
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	for range 3 { // the fault that cut the answer may also cut this
		resp, err := u.Do(ctx, upstream.Request{Method: http.MethodGet, Path: "/models", Query: s.query, Model: c.Model, Key: c.Key, Header: s.header,
			Narrow: s.narrow})
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
