package proxy

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// resource is a path below /v1 and what a gateway key may do there although other keys share
// the upstream's credential. In a path {id} stands for what the key itself has made, {any} for
// one part of any name, and a last {rest} for what follows.
type resource struct {
	path    string
	methods []string
}

var (
	get    = []string{http.MethodGet, http.MethodHead}
	post   = []string{http.MethodPost}
	remove = []string{http.MethodGet, http.MethodHead, http.MethodDelete}
)

// shared are the resources at which nothing of another client can be seen or changed.
func shared() []resource {
	list := []resource{
		{"/models", get}, {"/models/{rest}", get}, {"/messages/count_tokens", post}, {"/images/edits", post}, {"/images/variations", post},
		{"/audio/transcriptions", post}, {"/audio/translations", post}, {"/reranking", post}, {"/score", post}, {"/tokenize", post}, {"/detokenize", post},
		{"/conversations", post}, {"/files", post}, {"/uploads", post},
	}
	for _, p := range modelPaths {
		list = append(list, resource{p, post})
	}
	return append(list, owned()...)
}

// owned are the resources of what a client has made itself.
func owned() []resource {
	return []resource{
		{"/responses/{id}", remove}, {"/responses/{id}/cancel", post}, {"/responses/{id}/input_items", get},
		{"/conversations/{id}", append(post, remove...)}, {"/conversations/{id}/items", append(post, get...)}, {"/conversations/{id}/items/{any}", remove},
		{"/files/{id}", remove}, {"/files/{id}/content", get},
		{"/uploads/{id}/parts", post}, {"/uploads/{id}/complete", post}, {"/uploads/{id}/cancel", post},
	}
}

// madeAt are the paths whose answers tell the id of something that was made.
var madeAt = []string{"/files", "/conversations", "/uploads"}

// referringAt are the first parts of paths at which a body may name what was made before.
var referringAt = []string{"responses", "conversations"}

// partsOf is the one reading of a path that all rules go by: decoded until nothing is left to
// decode, without parameters, empty parts and the difference between slashes. Servers differ in
// what of this they do themselves.
func partsOf(path string) []string {
	for {
		plain, err := url.PathUnescape(path)
		if err != nil || plain == path { // of paths that are too often encoded, SafePath lets none in
			break
		}
		path = plain
	}
	parts := strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' })
	for i := range parts {
		parts[i], _, _ = strings.Cut(parts[i], ";")
	}
	return slices.DeleteFunc(parts, func(p string) bool { return p == "" })
}

// matches reports whether a path is one of the resource, and the id in it.
func (r resource) matches(parts []string) (id string, ok bool) {
	names := strings.Split(r.path[1:], "/")
	for i, name := range names {
		switch {
		case i >= len(parts):
			return "", false
		case name == "{rest}":
			return id, true
		case name == "{id}":
			id = parts[i]
		case name != "{any}" && !strings.EqualFold(name, parts[i]):
			return "", false
		}
	}
	return id, len(names) == len(parts)
}

// opens reports whether the configuration opens a path for the client: auth.keys[].paths.
func (c client) opens(parts []string) bool {
	return slices.ContainsFunc(c.paths, func(p string) bool {
		names := partsOf(below(p))
		return len(names) <= len(parts) && slices.EqualFunc(names, parts[:len(names)], strings.EqualFold)
	})
}

// apart reports whether clients of one credential are kept apart: there are several gateway keys.
func (k *Core) apart() bool { return len(k.Config.Auth.Keys) > 1 }

// permits refuses what a gateway key may not use: what manages the operator's account, and, where
// there are several keys, all that is not known to keep them apart.
func (k *Core) permits(who client, r *http.Request, parts []string) error {
	if who.passes || who.opens(parts) || len(parts) == 0 {
		return nil
	}
	if !k.apart() && !strings.EqualFold(parts[0], "organization") {
		return nil
	}
	for _, res := range shared() {
		if _, ok := res.matches(parts); ok && slices.Contains(res.methods, r.Method) {
			return nil
		}
	}
	first := "/" + strings.ToLower(parts[0])
	if len(parts) > 1 && strings.EqualFold(parts[0], "chat") {
		first += "/" + strings.ToLower(parts[1])
	}
	return failf(http.StatusForbidden, "path_not_allowed", "The gateway key %q may not use %s %s: what is stored or managed there belongs to all keys together. "+
		"If it is intended, add 'paths: [%s]' to the key under 'auth.keys' in the configuration.", who.name, r.Method, printable(r.URL.Path), strings.Trim(printable(first), `"`))
}
