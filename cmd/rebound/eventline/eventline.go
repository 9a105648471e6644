package eventline

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// String formats a JSON event as one line, without its time, the fields in known, and fields that
// only programs need.
func String(event gjson.Result, known ...string) string {
	var b strings.Builder
	b.WriteString(event.Get("event").Str)
	event.ForEach(func(k, v gjson.Result) bool {
		value := v.String()
		switch k.Str {
		case "id", "time", "level", "event", "mode", "streamed", "until", "attempts":
			return true
		case "upstream_key":
			if strings.HasPrefix(value, "client-") {
				return true // the client's own credential
			}
		}
		if slices.Contains(known, k.Str) {
			return true
		}
		if v.Type == gjson.String && strings.ContainsFunc(value, special) {
			value = strconv.Quote(value)
		}
		fmt.Fprintf(&b, " %s=%s", k.Str, value)
		return true
	})
	return b.String()
}

// special reports whether a character needs quoting: it could end a value early or control a
// terminal.
func special(c rune) bool { return c <= ' ' || c == '"' || !strconv.IsPrint(c) }
