package proxy

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"
	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/proxy/upstream"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Owners remember what upstreams made for whom, by ids. Safe for concurrent use.
type Owners interface {
	// Claim notes whose the ids are, but for those that belong to somebody else already.
	Claim(ctx context.Context, o Ownership, ids ...string)
	// Of says whose the ids are, in order: the zero value for one that is not known.
	Of(ctx context.Context, ids ...string) []Ownership
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
	at = k.Owners.Of(ctx, id)[0]
	if at.Owner == "" {
		return Ownership{}, false, k.apart()
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

// claim remembers where the response that is being delivered, or parts of it, were made. The result waits
// until that is stored, which takes no longer than the store may.
func (n *answer) claim(ctx context.Context, ids ...string) (wait func()) {
	s := n.s
	ids = slices.DeleteFunc(ids, func(id string) bool { return id == "" })
	if len(ids) == 0 || !s.x.Body.State().Stored || !s.core.remembers() {
		return func() {}
	}
	done := make(chan struct{})
	made := Ownership{Owner: s.core.owner(s.who), Upstream: n.a.Target.Upstream}
	if s.core.Upstreams[made.Upstream].OwnKeys() {
		made.Key = n.a.Target.Key
	}
	go func() {
		defer close(done)
		s.core.Owners.Claim(context.WithoutCancel(ctx), made, ids...)
	}()
	return func() { <-done }
}

// aimed keeps what goes on from an earlier response where that was made.
func (k *Core) aimed(ctx context.Context, x *recovery.Exchange, who client, w *wire) error {
	if w.requests == transcript.Responses {
		if err := k.ownsAll(ctx, who, x.Body.Raw()); err != nil {
			return err
		}
	}
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

// maxNamed bounds the ids that are looked up for one request.
const maxNamed = 1000

// ownsAll refuses a body that names what another client has made, or nobody knows who has, where
// clients are kept apart. The names of fields count as the most forgiving server reads them: in any
// letters, each time they occur.
func (k *Core) ownsAll(ctx context.Context, who client, body []byte) error {
	if !k.apart() || k.Owners == nil {
		return nil
	}
	ids := named(body)
	if len(ids) == 0 {
		return nil
	}
	if len(ids) > maxNamed {
		return failf(http.StatusBadRequest, "too_many_references", "The request refers to more than %d stored items. Send them whole instead.", maxNamed)
	}
	owner := k.owner(who)
	for i, at := range k.Owners.Of(ctx, ids...) {
		if at.Owner != owner {
			return failf(http.StatusBadRequest, "previous_response_not_found", "No object with the id %s belongs to this gateway key. Send the whole conversation instead.",
				printable(ids[i]))
		}
	}
	return nil
}

// named lists the ids of what was made before that a body goes on from: a response, a
// conversation, and items that it only refers to. What the gateway itself wrote has no owner.
func named(body []byte) (ids []string) {
	add := func(v gjson.Result) {
		if _, rest, _ := strings.Cut(v.Str, "_"); v.Str != "" && !strings.HasPrefix(rest, transcript.OwnMark) {
			ids = append(ids, v.Str)
		}
	}
	gjson.ParseBytes(body).ForEach(func(key, v gjson.Result) bool {
		switch name := key.String(); {
		case strings.EqualFold(name, "previous_response_id"):
			add(v)
		case strings.EqualFold(name, "conversation"):
			add(v)
			v.ForEach(func(key, v gjson.Result) bool {
				if strings.EqualFold(key.String(), "id") {
					add(v)
				}
				return true
			})
		case (strings.EqualFold(name, "input") || strings.EqualFold(name, "items")) && v.IsArray():
			v.ForEach(func(_, item gjson.Result) bool {
				for _, id := range referred(item) {
					add(id)
				}
				return len(ids) <= maxNamed
			})
		}
		return true
	})
	return ids
}

// referred is the ids of an item that stands for a stored one: it says so, or neither has a type nor a speaker.
func referred(item gjson.Result) (ids []gjson.Result) {
	stands, other := false, false
	item.ForEach(func(key, v gjson.Result) bool {
		switch name := key.String(); {
		case strings.EqualFold(name, "id"):
			ids = append(ids, v)
		case strings.EqualFold(name, "type") && v.Type != gjson.Null:
			stands, other = stands || strings.EqualFold(v.String(), "item_reference"), true
		case strings.EqualFold(name, "role") && v.Type != gjson.Null:
			other = true
		}
		return true
	})
	if !stands && other {
		return nil
	}
	return ids
}

// keeper is where a request for something that was made goes: to the upstream and the
// key that made it. nil is anywhere.
func (k *Core) keeper(c echo.Context, who client, up *upstream.Request, parts []string) ([]recovery.Choice, error) {
	id := ""
	for _, res := range owned() {
		if found, ok := res.matches(parts[:min(len(parts), 2)]); ok {
			id = found
		}
	}
	if id == "" && up.Body != nil && len(parts) == 1 && strings.EqualFold(parts[0], "responses") {
		if ids := named(up.Body); len(ids) > 0 {
			id = ids[0]
		}
	}
	if id == "" {
		return nil, nil
	}
	at, known, foreign := k.home(c.Request().Context(), who, id)
	switch {
	case foreign && !who.opens(parts):
		return nil, failf(http.StatusNotFound, "not_found", "No object with the id %s belongs to this credential.", printable(id))
	case !known:
		return nil, nil
	}
	t := recovery.Target{Upstream: at.Upstream, Key: at.Key}
	return []recovery.Choice{{Candidate: recovery.Candidate{Target: t}}}, nil
}
