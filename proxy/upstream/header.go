package upstream

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// header returns the client's headers that may go to this upstream, with the upstream's credential and
// configured headers.
func (u *Upstream) header(r Request) http.Header {
	narrow := r.Narrow || !u.cfg.Passthrough
	h := make(http.Header, len(r.Header)+len(u.extra)+1)
	for k, v := range r.Header {
		if !forThisHop(k) && (!narrow || harmless(k) || slices.Contains(u.forward, k)) {
			h[k] = v
		}
	}
	if api := apis[u.cfg.API()]; api.header != "" && h[api.header] == nil {
		h[api.header] = []string{api.value}
	}
	maps.Copy(h, u.extra)
	if value, ok := u.keys[r.Key]; ok {
		if h[u.auth] = value; r.printed != "" {
			h[u.auth] = []string{u.credential(r.printed)}
		}
	}
	return h
}

// harmless reports whether a client's header may go to a host that the client did not choose. An
// unknown header may contain a credential.
func harmless(canonical string) bool {
	switch canonical {
	case "Accept", "Accept-Encoding", "Accept-Language", "Cache-Control", "Content-Encoding", "Content-Type", "Range", "User-Agent", "Via",
		"Idempotency-Key", "X-Request-Id", "X-Client-Request-Id", "Traceparent", "Tracestate", // ids of one request
		"X-Claude-Code-Session-Id", "Session-Id", "Thread-Id", "X-Session-Id", "X-Session-Affinity", "X-Grok-Conv-Id", // ids of a conversation, for caches
		"Openai-Beta", "Anthropic-Beta", "Anthropic-Version", // versions
		"Http-Referer", "X-Title", "Originator", "X-App": // the client program
		return true
	}
	return strings.HasPrefix(canonical, "X-Stainless-")
}

// Forwardable removes from a client's headers, in place, those that its Connection header names, and
// adds via to the Via header (RFC 9110, section 7.6.3). It keeps headers that no upstream gets anyway.
// The caller, which reads the answer, sets Accept-Encoding.
func Forwardable(h http.Header, via string) {
	removeNamed(h)
	h["Via"] = append(h["Via"], via)
}

// Returnable removes from an upstream's headers, in place, hop-by-hop headers, those that only the
// gateway may set, and those that affect a whole origin, because the origin is the gateway's.
func Returnable(status int, h http.Header) {
	removeNamed(h)
	for k := range h {
		if hop(k) || internal(k) || ofOrigin(k, status) {
			delete(h, k)
		}
	}
}

// ofOrigin reports whether a response header affects more than its own answer in a browser, or
// controls how the browser shows it: the gateway decides that. Location stays if it names a new object
// or a redirect's target, and WWW-Authenticate stays with a 401.
func ofOrigin(canonical string, status int) bool {
	switch canonical {
	case "Location":
		return status != http.StatusCreated && status != http.StatusAccepted && (status < 300 || status > 399)
	case "Www-Authenticate":
		return status != http.StatusUnauthorized
	case "Set-Cookie", "Set-Cookie2", "Clear-Site-Data", "Service-Worker-Allowed", "Refresh", "Alt-Svc", "Strict-Transport-Security", "Public-Key-Pins", "Expect-Ct",
		"Content-Security-Policy", "Content-Security-Policy-Report-Only", "X-Frame-Options", "X-Xss-Protection", "X-Content-Type-Options", "Permissions-Policy", "Referrer-Policy",
		"Feature-Policy", "Origin-Agent-Cluster", "Document-Policy", "Nel", "Report-To", "Reporting-Endpoints", "Sourcemap", "X-Sourcemap", "Speculation-Rules",
		"Activate-Storage-Access", "Set-Login", "Supports-Loading-Mode", "Use-As-Dictionary", "Accept-Ch", "Critical-Ch":
		return true
	}
	return strings.HasPrefix(canonical, "Cross-Origin-")
}

// removeNamed removes the headers that a Connection header names.
func removeNamed(h http.Header) {
	for _, list := range h["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
}

// forThisHop reports whether a client's header must not go to upstreams: it is hop-by-hop, the
// gateway's own, or describes the framing of the body.
func forThisHop(canonical string) bool {
	switch canonical {
	case "Proxy-Authorization", "Content-Length", "Host", "Expect":
		return true
	}
	return hop(canonical) || internal(canonical)
}

// hop reports whether a header is hop-by-hop.
func hop(canonical string) bool {
	switch canonical {
	case "Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return true
	}
	return false
}

// internal reports whether a header is the gateway's own.
func internal(canonical string) bool { return strings.HasPrefix(canonical, "X-Rebound-") }
