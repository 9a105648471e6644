package classify

import (
	"html"

	"github.com/rebound-llm/rebound/recovery"
)

// Limits on the work. Error answers are small; a larger one is hostile or echoes
// the request, and its beginning and end suffice.
const (
	maxBody     = 256 << 10 // bytes of a body that are parsed
	maxText     = 16 << 10  // bytes of text that rules and facts see
	maxSentence = 4 << 10   // bytes of that text that are searched for field names
	maxDepth    = 24        // nesting of JSON, strings that hold JSON included
	maxNodes    = 600       // JSON values visited
	maxLayers   = 48        // messages kept, and codes kept
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

// jsonDepth returns the deepest nesting of brackets in s outside strings. It
// stops above limit. It guards the parsers, which recurse.
func jsonDepth(s []byte, limit int) int {
	depth, deepest := 0, 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			for i++; i < len(s) && s[i] != '"'; i++ {
				if s[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			if depth++; depth > deepest {
				if deepest = depth; deepest > limit {
					return deepest
				}
			}
		case '}', ']':
			depth--
		}
	}
	return deepest
}
