package proxy

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// resource is a path below /v1 and its allowed methods for a gateway key when other keys share the
// upstream's credential. In a path {id} is an object that the key itself has made, {any} one part with
// any name, and a final {rest} any further parts.
type resource struct {
	path    string
	methods []string
}

var (
	get    = []string{http.MethodGet, http.MethodHead}
	post   = []string{http.MethodPost}
	remove = []string{http.MethodGet, http.MethodHead, http.MethodDelete}
)

// shared returns the resources at which a client can neither see nor change anything of another
// client.
func shared() []resource {
	list := []resource{
		{"/models", get}, {"/models/{rest}", get}, {countPath, post}, {"/images/edits", post}, {"/images/variations", post},
		{"/audio/transcriptions", post}, {"/audio/translations", post}, {"/reranking", post}, {"/score", post}, {"/tokenize", post}, {"/detokenize", post},
		{"/conversations", post}, {"/files", post}, {"/uploads", post},
	}
	for _, p := range modelPaths {
		list = append(list, resource{p, post})
	}
	return append(list, owned()...)
}

// owned returns the resources of objects that a client has made itself.
func owned() []resource {
	return []resource{
		{"/responses/{id}", remove}, {"/responses/{id}/cancel", post}, {"/responses/{id}/input_items", get},
		{"/conversations/{id}", append(post, remove...)}, {"/conversations/{id}/items", append(post, get...)}, {"/conversations/{id}/items/{any}", remove},
		{"/files/{id}", remove}, {"/files/{id}/content", get},
		{"/uploads/{id}/parts", post}, {"/uploads/{id}/complete", post}, {"/uploads/{id}/cancel", post},
	}
}

// madeAt are the paths whose answers contain the id of a new object.
var madeAt = []string{"/files", "/conversations", "/uploads"}

// referringAt are the first path parts at which a body may refer to earlier objects.
var referringAt = []string{"responses", "conversations"}

// partsOf splits a path in the one form that all rules compare: fully decoded, without parameters and
// empty parts, with backslashes as slashes. Servers differ in which of these steps they take.
func partsOf(path string) []string {
	for {
		plain, err := url.PathUnescape(path)
		if err != nil || plain == path { // SafePath refuses paths that are encoded too often
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

// matches reports whether a path belongs to the resource, and returns the id in it.
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

// opens reports whether auth.keys[].paths opens a path for the client.
func (c client) opens(parts []string) bool {
	return slices.ContainsFunc(c.paths, func(p string) bool {
		names := partsOf(withoutV1(p))
		return len(names) <= len(parts) && slices.EqualFunc(names, parts[:len(names)], strings.EqualFold)
	})
}

// separatesClients reports whether clients of one upstream credential are separated: there are several gateway
// keys.
func (k *Core) separatesClients() bool { return len(k.Config.Auth.Keys) > 1 }

// permits returns an error for a path that a gateway key may not use: one that manages the operator's account or, with
// several keys, one that is not known to keep their data apart.
func (k *Core) permits(who client, r *http.Request, parts []string) error {
	if who.passes || who.opens(parts) || len(parts) == 0 {
		return nil
	}
	if !k.separatesClients() && !strings.EqualFold(parts[0], "organization") {
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
