package upstream

import (
	"net/http"
	"net/url"
	"strings"
)

// follow returns the target of a redirect if the gateway follows it: the response to a request to from
// is 307 or 308, which keep method and body, and leads below the base URL to a path that r.Follow
// allows. Only one redirect is followed.
func (u *Upstream) follow(r Request, from *url.URL, resp *http.Response) *url.URL {
	if r.Follow == nil || resp.StatusCode != http.StatusTemporaryRedirect && resp.StatusCode != http.StatusPermanentRedirect {
		return nil
	}
	to, path := u.within(r, from, resp)
	if to == nil || !r.Follow(path) {
		return nil
	}
	return to
}

// Relocated returns a redirect's target as a path below the base URL, with its query. ok is false if
// it leads elsewhere, such as to another host or port.
func (u *Upstream) Relocated(r Request, resp *http.Response) (path, query string, ok bool) {
	from, err := u.url(r)
	if err != nil {
		return "", "", false
	}
	to, path := u.within(r, from, resp)
	if to == nil {
		return "", "", false
	}
	return path, to.RawQuery, true
}

// within resolves the Location of a response to a request to from; path is relative to the base URL.
// to is nil if it leads elsewhere.
func (u *Upstream) within(r Request, from *url.URL, resp *http.Response) (to *url.URL, path string) {
	values := resp.Header["Location"]
	if len(values) != 1 {
		return nil, ""
	}
	ref, err := url.Parse(values[0])
	if err != nil || ref.User != nil || ref.Opaque != "" || !SafePath("/"+strings.TrimPrefix(ref.EscapedPath(), "/")) {
		return nil, ""
	}
	to = from.ResolveReference(ref)
	to.Fragment, to.RawFragment = "", ""
	base, ok := strings.CutSuffix(from.EscapedPath(), r.Path)
	if !ok || to.Scheme != from.Scheme || !strings.EqualFold(to.Host, from.Host) {
		return nil, ""
	}
	path, ok = strings.CutPrefix(to.EscapedPath(), base)
	if !ok || !SafePath(path) {
		return nil, ""
	}
	return to, path
}
