package upstream

import (
	"net/http"
	"net/url"
	"strings"
)

// follow is where a response to a request at from sends its client, if that is a place
// that the gateway asks itself: below the base, and allowed there. One hop is followed;
// 307 and 308 keep the method and the body.
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

// Relocated is a redirect's target as a path below the base, with its query. False: it
// leads out of the base URL, to another host or port for example.
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

// within resolves the Location of a response to a request at from; nil where it leads out
// of the base URL. path is what it is below that.
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
