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

// A response that is stored and breaks off, which is what several SDKs ask for unless told
// otherwise, is fetched where its server has kept it. Else it is continued as any other, and what
// its ids stand for is kept here: the server does not know what the client may name later.

const (
	// fetchTime is how long a server is waited for that may have kept a response, or still works on it.
	fetchTime = 10 * time.Second
	// fetchPause is the first pause between two questions; each is twice as long as the one before.
	fetchPause = 500 * time.Millisecond
	// maxReferred bounds the elements that a request only names and that are looked for here.
	maxReferred = 256
	// answerRoom is how much longer than its request what is kept may get by the answer, in bytes.
	answerRoom = 128 << 10
)

// The names of what is kept: a response, or an item of one.
func keptResponse(id string) string { return "response " + id }
func keptItem(id string) string     { return "item " + id }

// fetch asks for a response that its server was to keep, until it is complete or the time is over.
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

// keeps reports whether what the ids of the answer stand for can be kept, should it be continued.
func (k *Core) keeps(x *recovery.Exchange) bool {
	return k.Vault != nil && x.Mode == recovery.ModeAct && x.Streaming && x.Body.State().Stored && k.Vault.Holds(x.Secret, len(x.Body.Raw())+answerRoom)
}

// keep remembers what a response stands for that no server has as the client does.
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

// writtenOut is a request with what is kept here in the place of the ids that stand for it: the
// server that they belong to does not know them.
func (k *Core) writtenOut(req *http.Request, who client, body *transcript.Body) (*transcript.Body, error) {
	previous, ids := body.Referred(maxReferred)
	if mode, err := k.mode(req.Header); k.Vault == nil || err != nil || mode != recovery.ModeAct || previous == "" && len(ids) == 0 {
		return body, nil
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
				return body, nil // another version wrote it
			}
		}
		known = append(known, store.Entry{Key: keys[i], Value: value, TTL: k.Keeping})
	}
	if len(known) == 0 {
		return body, nil
	}
	whole, err := body.Edit().WriteOut(turn, items).Body()
	if err != nil || int64(len(whole.Raw())) > k.Config.Limits.Body {
		return body, nil // the server says what it does not know
	}
	k.Vault.Put(ctx, who.credential, known...) // its time begins anew
	return whole, nil
}

// forget drops what is kept of a response that its client deletes.
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
