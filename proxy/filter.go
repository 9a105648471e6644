package proxy

import (
	"crypto/rand"
	"mime"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/rebound-llm/rebound/proxy/upstream"
)

// filter is the middleware before everything that goes upstream. It refuses methods and paths that nobody needs,
// requests that come from the gateway itself, and pages of other sites where they would use the gateway's own credential.
func (s *Server) filter(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		switch c.Path() {
		case "/healthz", "/readyz", "/metrics", "/rebound/*": // nothing there goes upstream
			return next(c)
		}
		core, r := s.core.Load(), c.Request()
		switch r.Method {
		case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		default: // TRACE would show the gateway's own credential
			return echo.ErrMethodNotAllowed
		}
		if !upstream.SafePath(r.URL.EscapedPath()) {
			return failf(http.StatusBadRequest, "invalid_path", "The path must not contain . or .. as a part, nor control characters, in any spelling.")
		}
		if slices.ContainsFunc(r.Header["Via"], func(v string) bool { return strings.Contains(v, s.via) }) {
			return &Error{Status: http.StatusLoopDetected, Code: "gateway_loop", Header: http.Header{"X-Should-Retry": {"false"}},
				Message: "This request returned to the gateway that sent it: an upstream's url points to the gateway itself, at once or through another " +
					"proxy. Correct that url."}
		}
		isolate(r, c.Response().Header())
		if answered, err := core.browser(c); answered || err != nil {
			return err
		}
		return next(c)
	}
}

// isolate marks an answer as an upstream's: a page among such answers would otherwise
// run in the origin of /rebound/. Where a browser might show it, which are
// GET requests and those that say so (Fetch Standard, main fetch: a navigation accepts
// text/html), it is shown in an origin of its own and without scripts.
func isolate(r *http.Request, h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	if r.Method == http.MethodGet || r.Method == http.MethodHead || strings.Contains(strings.Join(r.Header["Accept"], ","), "html") {
		h.Set("Content-Security-Policy", "sandbox; default-src 'none'; frame-ancestors 'none'")
	}
}

// newVia is how a gateway names itself to the servers behind it, and knows
// itself again: no two are called the same.
func newVia() string { return "1.1 rebound-" + strings.ToLower(rand.Text()[:16]) }

// browser keeps pages of other sites out and lets those in that are allowed
// to (cors.origins). It reports whether it has answered: a preflight.
//
// Only where the gateway adds its own credential and asks clients for none, a
// page could do anything with the gateway that its owner can. There the Host must
// be known, or a page whose name was made to mean this machine (DNS rebinding)
// could read answers; and a body must not be of a type that browsers send to
// other sites without asking (Fetch Standard, CORS-safelisted request-header).
func (k *Core) browser(c echo.Context) (answered bool, err error) {
	r := c.Request()
	if origin := first(r.Header, "Origin"); origin != "" && len(r.Header["Origin"]) == 1 && slices.Contains(k.Config.CORS.Origins, origin) {
		return allowOrigin(c, origin), nil
	}
	if !k.guarded {
		return false, nil
	}
	if host := hostOf(r.Host); !loopbackName(host) && host != k.listenHost() && !slices.Contains(k.Config.Hosts, host) {
		return false, failf(http.StatusForbidden, "foreign_host", "Unknown host name %s. Add it to 'hosts' in the configuration if it is "+
			"meant.", printable(host))
	}
	if !ownPage(r) {
		return false, failf(http.StatusForbidden, "cross_site", "Requests from pages of other sites are refused, since they would use the gateway's own "+
			"credential. Add the page's origin to 'cors.origins' in the configuration if it is intended.")
	}
	if r.ContentLength == 0 {
		return false, nil
	}
	switch kind, completion := mediaType(r), completes(r.URL.Path); {
	case kind == "application/json", strings.HasSuffix(kind, "+json"):
	case completion, kind == "", kind == "text/plain", kind == "application/x-www-form-urlencoded":
		return false, failf(http.StatusUnsupportedMediaType, "content_type", "The body must be sent as 'Content-Type: application/json'.")
	}
	return false, nil
}

// completes reports whether a path takes a request for a model as JSON.
func completes(path string) bool {
	path = strings.TrimRight(path, "/")
	return strings.HasSuffix(path, "/completions") || strings.HasSuffix(path, "/responses") || strings.HasSuffix(path, "/messages")
}

// mediaType is the type of a request's body, empty if it is none, two, or of
// another character set than JSON has.
func mediaType(r *http.Request) string {
	if len(r.Header["Content-Type"]) != 1 {
		return ""
	}
	kind, params, err := mime.ParseMediaType(r.Header["Content-Type"][0])
	if charset := params["charset"]; err != nil || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return ""
	}
	return kind
}

// listenHost is the address that was configured to listen on.
func (k *Core) listenHost() string {
	host, _, _ := net.SplitHostPort(k.Config.Listen) // it was validated
	return strings.ToLower(host)
}

// allowOrigin lets a page read the answer, and answers a preflight.
func allowOrigin(c echo.Context, origin string) (answered bool) {
	r, h := c.Request(), c.Response().Header()
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", "*")
	h.Add("Vary", "Origin")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE")
	if asked := r.Header.Values("Access-Control-Request-Headers"); len(asked) > 0 {
		h.Set("Access-Control-Allow-Headers", strings.Join(asked, ", "))
	}
	if r.Header.Get("Access-Control-Request-Private-Network") == "true" {
		h.Set("Access-Control-Allow-Private-Network", "true")
	}
	h.Set("Access-Control-Max-Age", "600")
	c.Response().WriteHeader(http.StatusNoContent)
	return true
}

// returnable removes from an upstream's headers, in place, what is not for
// clients. Who may read answers in a browser is the gateway's to say where it
// adds a credential, asks for keys or has origins of its own.
func (k *Core) returnable(resp *http.Response) {
	h := resp.Header
	upstream.Returnable(resp.StatusCode, h)
	if !k.guarded && len(k.keys) == 0 && len(k.Config.CORS.Origins) == 0 {
		return
	}
	for name := range h {
		if strings.HasPrefix(name, "Access-Control-") {
			delete(h, name)
		}
	}
}
