package inspect

import (
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// maxPage bounds the page of a server that says only that there were too many
// requests, in bytes.
const maxPage = 3000

// limitPage is such a page: nothing in a page of a site is so titled.
var limitPage = recovery.NewPattern(`(?is)^(?:<!doctype html[^>]{0,200}>\s*)?<html\b[^>]{0,200}>.{0,600}?<title>\s*(?:HTTP )?(?:Error )?(?:429\b[^<]{0,80}|Too many requests|Rate limit(?:ed| exceeded))\s*</title>.*</html>\s*$`)

// fetchWords are words of the names of tools that get pages.
var fetchWords = []string{"fetch", "webfetch", "http", "url", "web", "page", "browse", "browser", "crawl", "scrape", "download", "navigate"}

// tooManyRequests finds that page where one was asked for and it is all there is,
// whatever the exit code: a client that is not told otherwise prints it like any other.
func (v *view) tooManyRequests(tool string) finding {
	if len(v.text) > maxPage || v.text == "" || !strings.Contains(v.text[:min(len(v.text), 100)], "<") {
		return finding{}
	}
	switch v.kind {
	case trajectory.Shell:
		if v.programs != nil && !slices.Contains(v.programs, "curl") && !slices.Contains(v.programs, "wget") && !slices.Contains(v.programs, "http") {
			return finding{}
		}
	case trajectory.Reader:
		if !slices.ContainsFunc(trajectory.NameWords(tool), func(w string) bool { return slices.Contains(fetchWords, w) }) {
			return finding{}
		}
	default:
		return finding{}
	}
	if !limitPage.MatchString(strings.TrimSpace(v.text)) {
		return finding{}
	}
	return finding{true, recovery.ToolRateLimited, worded, "limit-page", "429 Too Many Requests"}
}
