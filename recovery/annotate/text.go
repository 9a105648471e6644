package annotate

import (
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// maxQuoted limits a quoted path, name or command, in runes.
const maxQuoted = 120

// marks matches text that looks like another speaker or a note of the gateway.
var marks = recovery.NewPattern(`(?i)\[(\s*/?\s*(?:gateway|inst|sys|system|user|assistant|developer|tool|human|ai)\b)`)

// unquotable replaces what ends a quotation, and what looks like a tag; a single >, as in ->, closes nothing.
var unquotable = strings.NewReplacer("`", "'", "<", "‹", ">>", ">›")

// oneLine makes a text safe to quote: one line of at most n runes, without control characters, terminal escapes,
// code fences, tags and role markers. It is idempotent.
func oneLine(s string, n int) string {
	return marks.ReplaceAllString(unquotable.Replace(trajectory.OneLine(s, n)), "($1")
}

// quoted quotes a name, a path or a command as data; it returns "" for an empty text.
func quoted(s string) string {
	if s = oneLine(s, maxQuoted); s == "" {
		return ""
	}
	return "`" + s + "`"
}

// listed joins up to max quoted names, with last before the last one; "" for none.
func listed(names []string, max int, last string) string {
	var out []string
	for _, n := range names {
		if len(out) == max {
			break
		}
		if q := quoted(n); q != "" {
			out = append(out, q)
		}
	}
	switch {
	case len(out) == 0:
		return ""
	case len(names) > max:
		return strings.Join(out, ", ") + ", …"
	case len(out) == 1:
		return out[0]
	}
	return strings.Join(out[:len(out)-1], ", ") + " " + last + " " + out[len(out)-1]
}
