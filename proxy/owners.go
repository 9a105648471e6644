package proxy

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/rebound-llm/rebound/proxy/upstream"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Owners remember what upstreams made for whom, by ids. Safe for concurrent use.
type Owners interface {
	Claim(ctx context.Context, id string, o Ownership)
	Of(ctx context.Context, id string) (o Ownership, known bool)
}

// Ownership says who had something made, and where.
type Ownership struct {
	Owner         string // name of the gateway key, else the label of the client's own credential
	Upstream, Key string // Key is the label of the upstream's own; empty for the client's
}

// owner names a client for what it has made.
func (k *Core) owner(who client) string {
	if who.passes {
		return k.labels.of(who.credential)
	}
	return "key " + who.name
}

// home is where something was made that a client names. foreign means that it is not
// this client's: it belongs to another, or nobody knows to whom where several gateway
// keys share the credentials of the upstreams.
func (k *Core) home(ctx context.Context, who client, id string) (at Ownership, known, foreign bool) {
	if k.Owners == nil {
		return Ownership{}, false, false
	}
	at, known = k.Owners.Of(ctx, id)
	if !known {
		return Ownership{}, false, len(k.Config.Auth.Keys) > 1
	}
	if at.Owner != k.owner(who) {
		return Ownership{}, false, true
	}
	u := k.Upstreams[at.Upstream]
	return at, u != nil && (at.Key == "" || u.Has(at.Key)), false
}

// remembers reports whether it matters later where a response was made, and for whom:
// there is a choice, or clients of different rights.
func (k *Core) remembers() bool {
	if k.Owners == nil {
		return false
	}
	several := len(k.Upstreams) > 1
	for _, u := range k.Upstreams {
		several = several || u.Several()
	}
	return several || len(k.Config.Auth.Keys) > 0
}

// claim remembers where the response that is being delivered was made. The result waits
// until that is stored, which takes no longer than the store may.
func (n *answer) claim(ctx context.Context) (wait func()) {
	s := n.s
	id := n.Made()
	if id == "" || !s.x.Body.State().Stored || !s.core.remembers() {
		return func() {}
	}
	done := make(chan struct{})
	made := Ownership{Owner: s.core.owner(s.who), Upstream: n.a.Target.Upstream}
	if s.core.Upstreams[made.Upstream].OwnKeys() {
		made.Key = n.a.Target.Key
	}
	go func() {
		defer close(done)
		s.core.Owners.Claim(context.WithoutCancel(ctx), id, made)
	}()
	return func() { <-done }
}

// aimed keeps what goes on from an earlier response where that was made.
func (k *Core) aimed(ctx context.Context, x *recovery.Exchange, who client) error {
	id := x.Body.Continues()
	if id == "" {
		return nil
	}
	at, known, foreign := k.home(ctx, who, id)
	switch {
	case foreign, strings.HasPrefix(id, "resp_"+transcript.OwnMark): // no upstream knows what the gateway wrote
		return failf(http.StatusBadRequest, "previous_response_not_found", "Previous response with id %s not found. Send the whole conversation instead.",
			printable(id))
	case known:
		x.Home = recovery.Target{Upstream: at.Upstream, Key: at.Key}
		if at.Key == "" {
			x.Home.Key = x.Credential
		}
	}
	return nil
}

// madeIDIn is the id of something that was made, in the path or in the body of a
// request that is passed on; empty for another one. Servers differ in what is the same
// path: doubled slashes, escapes and capital letters say nothing.
func madeIDIn(path string, body []byte) string {
	parts := strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
	for i := range parts {
		if part, err := url.PathUnescape(parts[i]); err == nil {
			parts[i] = part
		}
	}
	if len(parts) == 0 || !strings.EqualFold(parts[0], "responses") && !strings.EqualFold(parts[0], "conversations") {
		return ""
	}
	if len(parts) > 1 {
		return parts[1]
	}
	return previousIn(body)
}

// keeper is where a request for something that was made goes: to the upstream and the
// key that made it. nil is anywhere.
func (k *Core) keeper(c echo.Context, who client, up *upstream.Request) ([]recovery.Choice, error) {
	id := madeIDIn(up.Path, up.Body)
	if id == "" {
		return nil, nil
	}
	at, known, foreign := k.home(c.Request().Context(), who, id)
	switch {
	case foreign:
		return nil, failf(http.StatusNotFound, "not_found", "Nothing with the id %s was made with this credential.", printable(id))
	case !known:
		return nil, nil
	}
	t := recovery.Target{Upstream: at.Upstream, Key: at.Key}
	return []recovery.Choice{{Candidate: recovery.Candidate{Target: t}}}, nil
}
