package proxy

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/rebound-llm/rebound/recovery"
)

// client is the sender of a request.
type client struct {
	name       string           // of its gateway key, if there is one; used in logs, metrics and events
	models     []string         // that it may use; empty: all
	paths      []string         // that it may use in addition to those of all keys
	credential string           // unchanged; it separates the data of clients
	key        string           // the gateway key itself
	budget     *recovery.Budget // of each of its sessions; nil: none
	passes     bool             // its own credential may be sent to upstreams marked passthrough
}

// may reports whether the client may use a model.
func (c client) may(model string) bool { return len(c.models) == 0 || slices.Contains(c.models, model) }

// restricted reports whether the client may use only certain models.
func (c client) restricted() bool { return len(c.models) > 0 }

// nameIn sets the client's key name in an error of the gateway's own, for its event.
func (c client) nameIn(err *error) {
	if e, ok := (*err).(*Error); ok {
		e.key = c.name
	}
}

// admitted serves requests that have a valid key, if one is needed, and for which there is a free
// place.
func (s *Server) admitted(serve func(c echo.Context, core *Core, who client) error) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		core := s.core.Load()
		who, err := s.authenticate(core, c.Request())
		if err != nil {
			return err
		}
		defer who.nameIn(&err)
		leave, err := s.reservePlace(who, core.Config.Limits.Concurrent)
		if err != nil {
			return err
		}
		defer leave()
		return serve(c, core, who)
	}
}

// authenticate is [Core.authenticate], with delays for peers that guess keys.
func (s *Server) authenticate(core *Core, r *http.Request) (client, error) {
	who, err := core.authenticate(r)
	if err != nil && credentialOf(r.Header) != "" {
		s.guesses.wrong(r)
	}
	return who, err
}

// authenticate checks the gateway key. Without any configured, every client is admitted, and its
// credential is for the upstream.
func (k *Core) authenticate(r *http.Request) (client, error) {
	credential := credentialOf(r.Header)
	if len(k.Config.Auth.Keys) == 0 {
		return client{credential: credential, passes: true, budget: &k.Config.Limits.Session}, nil
	}
	for _, name := range [...]string{"Authorization", "Api-Key", "X-Api-Key"} {
		v := first(r.Header, name)
		if name == "Authorization" {
			v = bearer(v)
		}
		if v == "" {
			continue
		}
		if i := k.keys.find(v); i >= 0 {
			key := k.Config.Auth.Keys[i]
			budget := &k.Config.Auth.Keys[i].Limits.Session
			if !budget.Any() {
				budget = &k.Config.Limits.Session
			}
			return client{budget: budget, name: key.Name, models: key.Models, paths: key.Paths, credential: "gateway key " + key.Name + " " + v, key: v}, nil
		}
	}
	return client{}, &Error{Status: http.StatusUnauthorized, Code: "invalid_gateway_key",
		Message: "This gateway needs one of its own keys, as the client's API key (Authorization or x-api-key). Ask its operator for one.",
		Header:  http.Header{"X-Should-Retry": {"false"}}}
}

// keyring holds the hashes of gateway keys.
type keyring [][sha256.Size]byte

func newKeyring(keys []ClientKey) keyring {
	ring := make(keyring, len(keys))
	for i := range keys {
		ring[i] = sha256.Sum256([]byte(keys[i].Value))
	}
	return ring
}

// find returns the index of a key, or -1. It takes constant time: it compares every key, by hashes of
// equal length.
func (ring keyring) find(given string) int {
	sum := sha256.Sum256([]byte(given))
	found := -1
	for i := range ring {
		if subtle.ConstantTimeCompare(sum[:], ring[i][:]) == 1 {
			found = i
		}
	}
	return found
}

// scrub removes gateway keys from forwarded headers and the query, which it returns: the client's own
// key anywhere in a value, others only as whole values.
func (k *Core) scrub(who client, h http.Header, query string) string {
	if who.key == "" {
		return query
	}
	for name, values := range h {
		if slices.ContainsFunc(values, func(v string) bool { return k.hasKey(who, v) }) {
			delete(h, name)
		}
	}
	kept := make([]string, 0, 8)
	for part := range strings.SplitSeq(query, "&") {
		_, value, _ := strings.Cut(part, "=")
		if plain, err := url.QueryUnescape(value); err == nil && !k.hasKey(who, plain) && !strings.Contains(part, who.key) {
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, "&")
}

// hasKey reports whether a value is a gateway key, with or without a scheme, or contains the client's
// own.
func (k *Core) hasKey(who client, value string) bool {
	if strings.Contains(value, who.key) {
		return true
	}
	word := value[strings.LastIndexByte(value, ' ')+1:]
	for i := range k.Config.Auth.Keys { // only a word of a key's length is hashed
		if len(k.Config.Auth.Keys[i].Value) == len(word) {
			return k.keys.find(word) >= 0
		}
	}
	return false
}

func bearer(v string) string {
	const scheme = "bearer "
	if len(v) > len(scheme) && strings.EqualFold(v[:len(scheme)], scheme) {
		return strings.TrimSpace(v[len(scheme):])
	}
	return ""
}
