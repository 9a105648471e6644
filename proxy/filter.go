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

// filter is the middleware of all requests that may go upstream. It refuses unusual methods and unsafe
// paths, requests that the gateway itself sent, and pages of other sites that would use the gateway's
// own credential.
func (s *Server) filter(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		switch c.Path() {
		case "/healthz", "/readyz", metricsPath, "/rebound/*": // nothing there goes upstream
			return next(c)
		}
		core, r := s.core.Load(), c.Request()
		switch r.Method {
		case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		default: // TRACE would return the gateway's own credential
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

// isolate sets headers that keep an upstream's answer from acting as a page of the gateway, in the
// origin of /rebound/. If a browser might show it, which are GET requests and those that accept
// text/html (Fetch Standard, main fetch), it gets an opaque origin and no scripts.
func isolate(r *http.Request, h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	if r.Method == http.MethodGet || r.Method == http.MethodHead || strings.Contains(strings.Join(r.Header["Accept"], ","), "html") {
		h.Set("Content-Security-Policy", "sandbox; default-src 'none'; frame-ancestors 'none'")
	}
}

// newVia returns a gateway's value of the Via header, by which it detects its own requests. Each is
// unique.
func newVia() string { return "1.1 rebound-" + strings.ToLower(rand.Text()[:16]) }

// browser refuses pages of other sites unless cors.origins lists them. answered means that it has
// answered a preflight.
//
// The checks are needed only if the gateway adds its own credential and requires none of clients: a
// page could then do everything that the gateway's owner can. The Host must be known, or a page whose
// name resolves to this machine (DNS rebinding) could read answers. The body must not have a type that
// browsers send to other sites without asking (Fetch Standard, CORS-safelisted request-header).
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

// completes reports whether a path takes a JSON request for a model.
func completes(path string) bool {
	path = strings.TrimRight(path, "/")
	return strings.HasSuffix(path, "/completions") || strings.HasSuffix(path, "/responses") || strings.HasSuffix(path, "/messages")
}

// mediaType returns the media type of a request's body, or "" if it is missing, given twice, or has a
// charset other than UTF-8.
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

// listenHost returns the host part of the configured listen address.
func (k *Core) listenHost() string {
	host, _, _ := net.SplitHostPort(k.Config.Listen) // Validate has checked it
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

// returnable removes upstream headers that clients must not get. If the gateway adds a credential,
// requires keys or has cors.origins, it also removes the upstream's CORS headers, because then the
// gateway decides which pages may read answers.
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
