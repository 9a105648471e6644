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

// client is who sent a request.
type client struct {
	name       string           // of its gateway key, if there is one; the label in logs, metrics and events
	models     []string         // that it may use; empty: all
	paths      []string         // that are open to it beyond what all keys may use
	credential string           // as it came, for identity
	key        string           // the gateway key itself
	budget     *recovery.Budget // of each of its sessions; nil is none
	passes     bool             // its own credential may go on to upstreams marked passthrough
}

// may reports whether the client may use a model.
func (c client) may(model string) bool { return len(c.models) == 0 || slices.Contains(c.models, model) }

// restricted reports whether the client may use some models only.
func (c client) restricted() bool { return len(c.models) > 0 }

// sign puts the client's label on an error of the gateway's own, for its event.
func (c client) sign(err *error) {
	if e, ok := (*err).(*Error); ok {
		e.key = c.name
	}
}

// admitted serves who has a key, where one is needed, and finds a place.
func (s *Server) admitted(serve func(c echo.Context, core *Core, who client) error) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		core := s.core.Load()
		who, err := s.authenticate(core, c.Request())
		if err != nil {
			return err
		}
		defer who.sign(&err)
		leave, err := s.place(who, core.Config.Limits.Concurrent)
		if err != nil {
			return err
		}
		defer leave()
		return serve(c, core, who)
	}
}

// authenticate is [Core.authenticate], slower for who guesses keys.
func (s *Server) authenticate(core *Core, r *http.Request) (client, error) {
	who, err := core.authenticate(r)
	if err != nil && credentialOf(r.Header) != "" {
		s.guesses.wrong(r)
	}
	return who, err
}

// authenticate checks the gateway key, if there are any. Without keys
// everybody may, and brings a credential for the upstream.
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

// find returns the place of a key in constant time, -1 if it is none: every
// key is compared, by hashes of equal length.
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

// scrub takes gateway keys out of what is forwarded for a client: its own
// wherever that stands, and others where they are a whole value.
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

// hasKey reports whether a value is a gateway key, with or without a scheme, or has the client's in it.
func (k *Core) hasKey(who client, value string) bool {
	if strings.Contains(value, who.key) {
		return true
	}
	word := value[strings.LastIndexByte(value, ' ')+1:]
	for i := range k.Config.Auth.Keys { // hashes are only made of what could be one
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
