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

// Owners records which client and upstream made the objects with given ids. Safe for concurrent use.
type Owners interface {
	// Claim records the owner of ids, except ids that already have another owner.
	Claim(ctx context.Context, o Ownership, ids ...string)
	// Of returns the owners of ids, in order: the zero value for an unknown id.
	Of(ctx context.Context, ids ...string) []Ownership
}

// Ownership is the client that had something made, and the upstream that made it.
type Ownership struct {
	Owner         string // name of the gateway key, else the label of the client's own credential
	Upstream, Key string // Key is the label of the upstream's key; empty for the client's own credential
}

// owner returns the name under which a client owns objects.
func (k *Core) owner(who client) string {
	if who.passes {
		return k.labels.of(who.credential)
	}
	return "key " + who.name
}

// home returns where the object with an id was made; known is false if there is no record of that, or if its
// upstream or key is no longer configured. foreign means that it is not this client's: it belongs to another client, or
// its owner is unknown and several gateway keys share the upstreams' credentials.
func (k *Core) home(ctx context.Context, who client, id string) (at Ownership, known, foreign bool) {
	if k.Owners == nil {
		return Ownership{}, false, false
	}
	at = k.Owners.Of(ctx, id)[0]
	if at.Owner == "" {
		return Ownership{}, false, k.separatesClients()
	}
	if at.Owner != k.owner(who) {
		return Ownership{}, false, true
	}
	u := k.Upstreams[at.Upstream]
	return at, u != nil && (at.Key == "" || u.Has(at.Key)), false
}

// tracksOwners reports whether the origin and owner of objects matter: there are several upstreams or
// keys to choose from, or gateway keys.
func (k *Core) tracksOwners() bool {
	if k.Owners == nil {
		return false
	}
	several := len(k.Upstreams) > 1
	for _, u := range k.Upstreams {
		several = several || u.Several()
	}
	return several || len(k.Config.Auth.Keys) > 0
}

// claim records where the response being delivered, or its items, were made. The returned function
// waits until that is stored; the store limits how long.
func (n *answer) claim(ctx context.Context, ids ...string) (wait func()) {
	s := n.s
	ids = slices.DeleteFunc(ids, func(id string) bool { return id == "" })
	if len(ids) == 0 || !s.x.Body.State().Stored || !s.core.tracksOwners() {
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

// claimItems is claim for the items that came during delivery, and waits until that is stored: a client
// may refer to them as soon as it has the end of the response.
func (n *answer) claimItems(ids []string) {
	more := ids[n.items:]
	n.items = len(ids)
	n.claim(n.ctx, more...)()
}

// pinHome pins a request that continues an earlier response to the target that made it. refers is that of its wire.
func (k *Core) pinHome(ctx context.Context, x *recovery.Exchange, who client, refers bool) error {
	if refers {
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
	case foreign, strings.HasPrefix(id, "resp_"+transcript.OwnMark): // upstreams do not know ids that the gateway made
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

// maxNamed limits the ids that are looked up for one request.
const maxNamed = 1000

// ownsAll refuses a body that refers to objects of other or unknown clients, if there are several
// gateway keys. It reads field names as the most lenient server does: in any case, and every
// duplicate.
func (k *Core) ownsAll(ctx context.Context, who client, body []byte) error {
	if !k.separatesClients() || k.Owners == nil {
		return nil
	}
	ids := referredIDs(body)
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

// referredIDs returns the ids of earlier objects that a body refers to: a response, a conversation, and
// stored items. It skips ids that the gateway made, which have no owner.
func referredIDs(body []byte) (ids []string) {
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
				for _, id := range itemIDs(item) {
					add(id)
				}
				return len(ids) <= maxNamed
			})
		}
		return true
	})
	return ids
}

// itemIDs returns the ids of an item that refers to a stored one: its type says so, or it has neither
// type nor role.
func itemIDs(item gjson.Result) (ids []gjson.Result) {
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

// ownerTarget returns the upstream and key that made the object of a request, or nil if any target will do.
func (k *Core) ownerTarget(c echo.Context, who client, up *upstream.Request, parts []string) ([]recovery.Choice, error) {
	id := ""
	for _, res := range owned() {
		if found, ok := res.matches(parts[:min(len(parts), 2)]); ok {
			id = found
		}
	}
	if id == "" && up.Body != nil && len(parts) == 1 && strings.EqualFold(parts[0], "responses") {
		if ids := referredIDs(up.Body); len(ids) > 0 {
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
