package upstreamtest

import (
	_ "embed"
	"strings"
)

//go:embed doc.go
var manual string

// Language returns the documentation of scripts from doc.go, for help texts.
func Language() string {
	_, text, _ := strings.Cut(manual, "// # Scripts\n//\n")
	text, _, _ = strings.Cut(text, "package ")
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimPrefix(strings.TrimPrefix(line, "//"), " "))
	}
	return b.String()
}
