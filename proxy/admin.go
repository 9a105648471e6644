package proxy

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/rebound-llm/rebound/proxy/admin"
)

// admin guards /rebound/ and /metrics. It admits the admin token, the login cookie of a browser, or a
// direct request from this machine. It always refuses a browser's request from another site.
func (s *Server) admin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !ownPage(r) {
			writeError(w, failf(http.StatusForbidden, "cross_site", "Requests from other sites are refused."))
			return
		}
		auth := s.core.Load().Config.Auth
		given := bearer(first(r.Header, "Authorization"))
		allowed := auth.AdminLocal && direct(r)
		if auth.AdminToken != "" && given != "" {
			if allowed = isToken(given, auth.AdminToken); !allowed {
				s.tries.wrong(r)
			}
		}
		switch path := r.URL.Path; {
		case allowed, path == stylePath, stamped(r, auth.AdminToken, time.Now()):
		case auth.AdminToken != "" && path == loginPath && r.Method == http.MethodPost:
			s.login(w, r, auth.AdminToken)
			return
		case auth.AdminToken != "" && path == pagePath:
			admin.ServeLogin(w, false)
			return
		default:
			writeError(w, failf(http.StatusForbidden, "admin_only", "This needs the admin token (auth.admin_env), or a direct request from the machine that "+
				"Rebound runs on."))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// direct reports whether a request comes from this machine, to a name of this machine (which a page of
// another name cannot fake), and through no proxy. It detects a proxy by any header that proxies add,
// whatever its value, and by HTTP/1.0, which only proxies still use (nginx by default).
func direct(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !peer.Addr().Unmap().IsLoopback() || !r.ProtoAtLeast(1, 1) {
		return false
	}
	for name := range r.Header {
		if addedByProxy(name) {
			return false
		}
	}
	return loopbackName(hostOf(r.Host))
}

// addedByProxy reports whether a proxy may have added a header. Headers that begin with X- count,
// except those that programs and browsers are known to send themselves.
func addedByProxy(canonical string) bool {
	switch canonical {
	case "X-Prometheus-Scrape-Timeout-Seconds", "X-Requested-With", "X-Request-Id":
		return false
	case "Forwarded", "Via", "Client-Ip", "True-Client-Ip", "Cdn-Loop", "Proxy-Connection":
		return true
	}
	for _, prefix := range [...]string{"X-", "Cf-", "Fastly-", "Akamai-"} {
		if strings.HasPrefix(canonical, prefix) {
			return true
		}
	}
	return false
}

// hostOf returns the name or address of a Host header, in lower case and without the port.
func hostOf(host string) string {
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") && (host[0] == '[' || strings.Count(host, ":") == 1) {
		host = host[:i]
	}
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
	}
	return strings.ToLower(host)
}

// loopbackName reports whether a name always means this machine (RFC 6761,
// section 6.3).
func loopbackName(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

// ownPage reports whether a request is from a program, from an address that the user entered, or from
// a page of this server.
func ownPage(r *http.Request) bool {
	for _, site := range r.Header["Sec-Fetch-Site"] {
		if site != "same-origin" && site != "none" {
			return false
		}
	}
	own := []string{"http://" + r.Host, "https://" + r.Host}
	for _, origin := range r.Header["Origin"] {
		if !slices.Contains(own, origin) {
			return false
		}
	}
	return true
}

func writeError(w http.ResponseWriter, e *Error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.Status)
	_, _ = w.Write(encode(e.Message, "rebound_error", "", e.Code))
}
