package upstream

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// header is what of the client's is for this upstream, with the upstream's
// credential and extra headers.
func (u *Upstream) header(r Request) http.Header {
	narrow := r.Narrow || !u.cfg.Passthrough
	h := make(http.Header, len(r.Header)+len(u.extra)+1)
	for k, v := range r.Header {
		if !forThisHop(k) && (!narrow || harmless(k) || slices.Contains(u.forward, k)) {
			h[k] = v
		}
	}
	maps.Copy(h, u.extra)
	if value, ok := u.keys[r.Key]; ok {
		h[u.auth] = value
	}
	return h
}

// harmless reports whether a client's header may go to a host that the client
// did not choose. Whatever is not known here may be a credential.
func harmless(canonical string) bool {
	switch canonical {
	case "Accept", "Accept-Encoding", "Accept-Language", "Cache-Control", "Content-Encoding", "Content-Type", "Range", "User-Agent", "Via",
		"Idempotency-Key", "X-Request-Id", "X-Client-Request-Id", "Traceparent", "Tracestate", // names of one request
		"Session-Id", "Thread-Id", "X-Session-Id", "X-Session-Affinity", // names of a conversation, for caches
		"Openai-Beta", "Anthropic-Beta", "Anthropic-Version", // versions
		"Http-Referer", "X-Title", "Originator": // what program it is
		return true
	}
	return strings.HasPrefix(canonical, "X-Stainless-")
}

// Forwardable removes from a client's headers, in place, those that its
// Connection header names, and adds via to the gateways that the request came
// through (RFC 9110, section 7.6.3). What every upstream is spared does not have
// to be removed; Accept-Encoding is for the caller to choose, who reads the answer.
func Forwardable(h http.Header, via string) {
	removeNamed(h)
	h["Via"] = append(h["Via"], via)
}

// Returnable removes from an upstream's headers, in place, those that end at
// this hop and those that only the gateway may set.
func Returnable(h http.Header) {
	removeNamed(h)
	for k := range h {
		if k == "Alt-Svc" || hop(k) || internal(k) {
			delete(h, k)
		}
	}
}

// removeNamed removes the headers that a Connection header names.
func removeNamed(h http.Header) {
	for _, list := range h["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
}

// forThisHop reports whether a client's header is not for upstreams: it ends
// here, is the gateway's own, or describes how the body was framed.
func forThisHop(canonical string) bool {
	switch canonical {
	case "Proxy-Authorization", "Content-Length", "Host", "Expect":
		return true
	}
	return hop(canonical) || internal(canonical)
}

// hop reports whether a header is for one hop only.
func hop(canonical string) bool {
	switch canonical {
	case "Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return true
	}
	return false
}

// internal reports whether a header is the gateway's own.
func internal(canonical string) bool { return strings.HasPrefix(canonical, "X-Rebound-") }
