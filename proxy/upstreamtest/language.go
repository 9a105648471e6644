package upstreamtest

import (
	_ "embed"
	"strings"
)

//go:embed doc.go
var manual string

// Language explains the scripts, for programs that show it to people. It is the
// documentation of this package from there on.
func Language() string {
	_, text, _ := strings.Cut(manual, "// # Scripts\n//\n")
	text, _, _ = strings.Cut(text, "package ")
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimPrefix(strings.TrimPrefix(line, "//"), " "))
	}
	return b.String()
}
