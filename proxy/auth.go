package proxy

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// client is who sent a request.
type client struct {
	name       string   // of its gateway key, if there is one
	models     []string // that it may use; empty: all
	credential string   // as it came, for identity
	header     string   // the header that carried the gateway key
	passes     bool     // its own credential may go on to upstreams marked passthrough
}

// may reports whether the client may use a model.
func (c client) may(model string) bool { return len(c.models) == 0 || slices.Contains(c.models, model) }

// authenticate checks the gateway key, if there are any. Without keys
// everybody may, and brings a credential for the upstream.
func (k *Core) authenticate(r *http.Request) (client, error) {
	credential := credentialOf(r.Header)
	if len(k.Config.Auth.Keys) == 0 {
		return client{credential: credential, passes: true}, nil
	}
	for _, name := range [...]string{"Authorization", "Api-Key", "X-Api-Key"} {
		v := first(r.Header, name)
		if name == "Authorization" {
			v = bearer(v)
		}
		if v == "" {
			continue
		}
		if i := match(k.Config.Auth.Keys, v); i >= 0 {
			key := k.Config.Auth.Keys[i]
			return client{name: key.Name, models: key.Models, credential: "gateway key " + key.Name + " " + v, header: name}, nil
		}
	}
	return client{}, &Error{Status: http.StatusUnauthorized, Code: "invalid_gateway_key",
		Message: "This gateway needs one of its own keys, as 'Authorization: Bearer KEY'. Ask its operator for one.",
		Header:  http.Header{"X-Should-Retry": {"false"}}}
}

// match finds a key in constant time: every key is compared, by hashes of equal length.
func match(keys []ClientKey, given string) int {
	sum := sha256.Sum256([]byte(given))
	found := -1
	for i := range keys {
		want := sha256.Sum256([]byte(keys[i].Value))
		if subtle.ConstantTimeCompare(sum[:], want[:]) == 1 {
			found = i
		}
	}
	return found
}

func bearer(v string) string {
	const scheme = "bearer "
	if len(v) > len(scheme) && strings.EqualFold(v[:len(scheme)], scheme) {
		return strings.TrimSpace(v[len(scheme):])
	}
	return ""
}

// admin guards what shows the gateway's inside: an admin token, or a peer on
// this machine that speaks to it directly. A browser that another site has
// sent is refused in both cases.
func (s *Server) admin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
			writeError(w, failf(http.StatusForbidden, "cross_site", "Requests from other sites are refused."))
			return
		}
		if o := r.Header.Get("Origin"); o != "" && !strings.HasSuffix(o, "://"+r.Host) {
			writeError(w, failf(http.StatusForbidden, "cross_site", "Requests from other sites are refused."))
			return
		}
		token := s.core.Load().Config.Auth.AdminToken
		given := bearer(r.Header.Get("Authorization"))
		if token != "" && given != "" {
			if match([]ClientKey{{Value: token}}, given) == 0 {
				next.ServeHTTP(w, r)
				return
			}
		} else if direct(r) {
			next.ServeHTTP(w, r)
			return
		}
		writeError(w, failf(http.StatusForbidden, "admin_only", "This needs the admin token (auth.admin_env), or a direct request from the machine that Rebound runs on."))
	})
}

// direct reports whether a request comes from this machine, to a name of this
// machine (which a page of another name cannot fake), and through no proxy.
func direct(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !peer.Addr().Unmap().IsLoopback() {
		return false
	}
	for _, h := range [...]string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via"} {
		if r.Header.Get(h) != "" {
			return false
		}
	}
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

func writeError(w http.ResponseWriter, e *Error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.Status)
	_, _ = w.Write(encode(e.Message, "rebound_error", "", e.Code))
}
