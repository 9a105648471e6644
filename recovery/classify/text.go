package classify

import (
	"html"

	"github.com/rebound-llm/rebound/recovery"
)

// Limits on the work. Error answers are small; a larger one is hostile or echoes
// the request, and its beginning and end suffice.
const (
	maxBody      = 256 << 10 // bytes of a body that are parsed
	maxText      = 16 << 10  // bytes of text that rules and facts see
	maxSentence  = 4 << 10   // bytes of that text that are searched for field names
	maxDepth     = 24        // nesting of JSON that is visited, strings that hold JSON included
	maxJSONDepth = 96        // nesting of one JSON value; parsers recurse
	maxNodes     = 600       // JSON values visited
	maxLayers    = 48        // messages kept, and codes kept
)

// clip shortens s to about limit bytes and keeps its beginning and end.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return recovery.Head(s, limit*3/4) + " … " + recovery.Tail(s, limit/4)
}

var (
	markup = recovery.NewPattern(`(?is)<!--.*?-->|<script.*?</script>|<style.*?</style>|<[^>]*>`)
	page   = recovery.NewPattern(`(?i)<html|<!doctype|<head>|<body`)
)

// plainText returns the text of an HTML page without tags, scripts and styles.
func plainText(s string) string { return html.UnescapeString(markup.ReplaceAllString(s, " ")) }

// looksHTML reports whether s is an HTML page rather than a message.
func looksHTML(s string) bool { return page.MatchString(s[:min(len(s), 512)]) }
