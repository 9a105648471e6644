package upstream

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ErrPath is returned for a request whose path, or the model in it, could lead
// out of the upstream's base URL. Nothing was sent.
var ErrPath = errors.New("the path could lead out of the upstream's URL")

// modelMark stands for the model in parsed URLs, because braces would be escaped there.
const modelMark = "rebound-model-mark"

func (c Config) hasModel() bool { return strings.Contains(c.URL, "{model}") }

// url returns the URL of a request.
func (u *Upstream) url(r Request) (*url.URL, error) {
	escaped := u.base.EscapedPath()
	if u.cfg.hasModel() {
		model := escapeModel(r.Model)
		if !SafePath("/" + model) {
			return nil, ErrPath
		}
		escaped = strings.ReplaceAll(escaped, modelMark, model)
	}
	if !SafePath(r.Path) {
		return nil, ErrPath
	}
	to := *u.base
	to.RawPath, to.RawQuery = escaped+r.Path, u.query(r)
	var err error
	if to.Path, err = url.PathUnescape(to.RawPath); err != nil {
		return nil, ErrPath
	}
	return &to, nil
}

// escapeModel escapes a model for a path. It keeps slashes: some servers have owner and model as two
// segments.
func escapeModel(model string) string {
	return strings.ReplaceAll(url.PathEscape(model), "%2F", "/")
}

// maxEscapes limits how often a path may be escaped.
const maxEscapes = 4

// SafePath reports whether an escaped path cannot lead elsewhere: it begins with a slash, has no . or
// .. segment, even for servers that unescape several times, treat a backslash as a slash or remove
// parameters, and is UTF-8 without control characters.
func SafePath(escaped string) bool {
	if !strings.HasPrefix(escaped, "/") {
		return false
	}
	for n := range maxEscapes {
		if !utf8.ValidString(escaped) || strings.ContainsFunc(escaped, unicode.IsControl) {
			return false
		}
		for segment := range strings.FieldsFuncSeq(escaped, func(c rune) bool { return c == '/' || c == '\\' }) {
			if name, _, _ := strings.Cut(segment, ";"); name == "." || name == ".." {
				return false
			}
		}
		plain, err := url.PathUnescape(escaped)
		if err != nil {
			return n > 0 // after the first pass it may be a literal percent sign
		}
		if plain == escaped {
			return true
		}
		escaped = plain
	}
	return false
}

// harmlessQueries are the query parameters that may go to a host that the client did not choose: API
// versions, paging, and other options of known paths.
var harmlessQueries = []string{"after", "after_id", "api-version", "before", "before_id", "include", "include[]", "limit", "order", "page", "purpose",
	"starting_after", "stream"}

// query returns the client's query, as far as it may go to this upstream, with the upstream's
// configured parameters, which take precedence.
func (u *Upstream) query(r Request) string {
	narrow := r.Narrow || !u.cfg.Passthrough
	if len(u.cfg.Query) == 0 && (r.Query == "" || !narrow) {
		return r.Query
	}
	q, err := url.ParseQuery(r.Query)
	if err != nil {
		q = url.Values{}
	}
	for k := range q {
		if narrow && !slices.Contains(harmlessQueries, k) {
			delete(q, k)
		}
	}
	for k, v := range u.cfg.Query {
		q.Set(k, v)
	}
	return q.Encode()
}
