package classify

import (
	"bytes"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
)

var (
	// A string, a word or number, a bracket, or separators.
	pythonToken = recovery.NewPattern(`^(?s:b?'((?:[^'\\]|\\.)*)'|b?"((?:[^"\\]|\\.)*)"|([A-Za-z0-9_.+-]+)|([\[({])|([\])}])|[,:\s]+)`)
	pythonStart = recovery.NewPattern(`^[\[({][\[({ ]*'`)

	pythonEscapes = strings.NewReplacer(`\'`, `'`, `\"`, `\"`, `\\`, `\\`, `\/`, `/`, `\b`, `\b`, `\f`, `\f`, `\n`, `\n`, `\r`, `\r`, `\t`, `\t`, `\u`, `\u`,
		`\`, `\\`, `"`, `\"`, "\n", " ", "\r", " ", "\t", " ")
	pythonWords = map[string]string{"None": "null", "True": "true", "False": "false"}
	tuples      = strings.NewReplacer("(", "[", ")", "]")
)

// fromPython translates the Python repr of a dict or list that starts at s[i] into
// JSON. It returns the end of the repr, or 0 if none starts there. SDKs and
// proxies forward error bodies in that form.
func fromPython(s string, i int) (string, int) {
	if !pythonStart.MatchString(s[i:]) {
		return "", 0
	}
	var b []byte
	depth := 0
	for i < len(s) && depth <= maxDepth {
		ms := pythonToken.FindAllStringSubmatchIndex(s[i:], 1)
		if len(ms) == 0 {
			break
		}
		m := ms[0]
		group := func(n int) string { return s[i+m[2*n] : i+m[2*n+1]] }
		switch {
		case m[2] >= 0:
			b = append(b, `"`+pythonEscapes.Replace(group(1))+`"`...)
		case m[4] >= 0:
			b = append(b, `"`+pythonEscapes.Replace(group(2))+`"`...)
		case m[6] >= 0:
			word := group(3)
			if w, ok := pythonWords[word]; ok {
				word = w
			}
			b = append(b, word...)
		case m[8] >= 0:
			depth++
			b = append(b, tuples.Replace(group(4))...)
		case m[10] >= 0:
			b = bytes.TrimSuffix(bytes.TrimRight(b, " "), []byte(",")) // "(x,)" is a tuple
			b = append(b, tuples.Replace(group(5))...)
			if depth--; depth == 0 {
				return string(b), i + m[1]
			}
		default:
			b = append(b, group(0)...)
		}
		i += m[1]
	}
	return "", 0
}
