package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/rebound-llm/rebound/proxy/stream"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
	"github.com/rebound-llm/rebound/store"
)

// Several SDKs have responses stored by default. If a stored response breaks off, it is fetched when
// its server has kept it. Otherwise it is continued like any other, and the gateway keeps the contents
// of its ids, because the client may name these later and the server does not know them.

const (
	// fetchTime limits the wait for a server that may have kept a response or is still working on it.
	fetchTime = 10 * time.Second
	// fetchPause is the first pause between two requests for a response; each further pause is twice
	// as long.
	fetchPause = 500 * time.Millisecond
	// maxReferred limits the references of one request that are looked up here.
	maxReferred = 256
	// answerRoom is the room for the answer in an entry of the vault, in bytes, beyond the request.
	answerRoom = 128 << 10
)

// The keys of entries in the vault: a response, or an item of one.
func keptResponse(id string) string { return "response " + id }
func keptItem(id string) string     { return "item " + id }

// fetch requests a response that its server may have stored, until it is complete or the time is over.
func (s *sender) fetch(ctx context.Context, a recovery.Attempt) (*http.Response, *recovery.Failure) {
	over := time.AfterFunc(fetchTime, func() { a.Cancel(context.DeadlineExceeded) })
	defer over.Stop()
	for wait := fetchPause; ; wait *= 2 {
		resp, f := s.ask(ctx, a)
		if f != nil || resp.StatusCode != http.StatusOK {
			return resp, f
		}
		body, err := io.ReadAll(io.LimitReader(resp.Body, s.core.Stream.MaxAnswer))
		_ = resp.Body.Close()
		events, underway := stream.Responses{}.Replay(body)
		switch {
		case err == nil && len(events) > 0:
			resp.Header["Content-Type"] = []string{"text/event-stream"}
			resp.Body = io.NopCloser(bytes.NewReader(events))
			return resp, nil
		case err != nil, !underway:
			a.Cancel(nil)
			return nil, s.fail(a, recovery.Evidence{Phase: recovery.PhaseBody, Status: resp.StatusCode, Err: stream.ErrEnded})
		case !recovery.Wait(ctx, wait):
			return nil, s.fail(a, recovery.Evidence{Phase: recovery.PhaseHeaders, Err: cause(ctx, ctx.Err())})
		}
	}
}

// keeps reports whether the contents of the answer's ids can be kept if it is continued.
func (k *Core) keeps(x *recovery.Exchange) bool {
	return k.Vault != nil && x.Mode == recovery.ModeAct && x.Streaming && x.Body.State().Stored && k.Vault.Holds(x.Secret, len(x.Body.Raw())+answerRoom)
}

// keep stores the contents of a response that no provider stores in the form in which the client received it.
func (s *sender) keep(ctx context.Context, id string, output []byte) {
	turn, items := s.x.Body.Turn(output)
	raw, err := json.Marshal(turn)
	if err != nil || id == "" {
		return
	}
	list := []store.Entry{{Key: keptResponse(id), Value: raw, TTL: s.core.Keeping}}
	for id, item := range items {
		list = append(list, store.Entry{Key: keptItem(id), Value: append([]byte{}, item...), TTL: s.core.Keeping})
	}
	s.core.Vault.Put(context.WithoutCancel(ctx), s.who.credential, list...)
}

// resolveKept returns the request with kept contents in place of their ids, because the upstream does
// not know these.
func (k *Core) resolveKept(req *http.Request, who client, body *transcript.Body) *transcript.Body {
	previous, ids := body.Referred(maxReferred)
	if mode, err := k.mode(req.Header); k.Vault == nil || err != nil || mode != recovery.ModeAct || previous == "" && len(ids) == 0 {
		return body
	}
	keys := make([]string, 0, len(ids)+1)
	keys = append(keys, keptResponse(previous))
	for _, id := range ids {
		keys = append(keys, keptItem(id))
	}
	ctx := req.Context()
	values := k.Vault.Get(ctx, who.credential, keys...)
	var turn *transcript.Turn
	var known []store.Entry
	items := map[string][]byte{}
	for i, value := range values {
		switch {
		case value == nil:
			continue
		case i > 0:
			items[ids[i-1]] = value
		default:
			turn = &transcript.Turn{}
			if json.Unmarshal(value, turn) != nil {
				return body // written by another version
			}
		}
		known = append(known, store.Entry{Key: keys[i], Value: value, TTL: k.Keeping})
	}
	if len(known) == 0 {
		return body
	}
	whole, err := body.Edit().WriteOut(turn, items).Body()
	if err != nil || int64(len(whole.Raw())) > k.Config.Limits.Body {
		return body // the server reports the ids that it does not know
	}
	k.Vault.Put(ctx, who.credential, known...) // renews their expiry
	return whole
}

// forget deletes the kept contents of a response that its client deletes.
func (k *Core) forget(ctx context.Context, who client, method string, parts []string) {
	if k.Vault == nil || method != http.MethodDelete || len(parts) != 2 || !strings.EqualFold(parts[0], "responses") {
		return
	}
	keys := []string{keptResponse(parts[1])}
	var turn transcript.Turn
	if raw := k.Vault.Get(ctx, who.credential, keys...)[0]; raw == nil || json.Unmarshal(raw, &turn) != nil {
		return
	}
	for _, id := range turn.IDs {
		keys = append(keys, keptItem(id))
	}
	k.Vault.Delete(ctx, who.credential, keys...)
}
