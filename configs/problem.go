package configs

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/proxy/redact"
)

// maxProblems limits the problems in one report; the rest is only counted.
const maxProblems = 100

// Problem is one error in a configuration.
type Problem struct {
	File    string // as passed to Load; empty if it does not concern a file
	Line    int    // from 1; 0 if it concerns no line, as for the environment
	Column  int    // from 1, in characters
	Key     string // path of the key, like upstreams.default.keys[0].env; empty for the text as a whole
	Message string // what is wrong and what to do; never a secret

	source string // the line without possible secrets
}

// String renders file:line:column: key: message.
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
		}
		b.WriteString(": ")
	}
	if p.Key != "" {
		b.WriteString(p.Key)
		b.WriteString(": ")
	}
	b.WriteString(p.Message)
	return b.String()
}

// Errors lists all errors of a configuration in the order of the file. A returned
// error is never an empty Errors.
type Errors []Problem

var _ error = Errors(nil)

// Error renders one problem per line, without the source.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, p := range e {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Detail renders the problems like Error, each with its source line and a
// caret below the place. Where the line may hold a secret, only its key is shown.
func (e Errors) Detail() string {
	var b strings.Builder
	for i, p := range e {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(p.String())
		if p.source == "" {
			continue
		}
		number := fmt.Sprintf("%5d", p.Line)
		fmt.Fprintf(&b, "\n%s | %s", number, p.source)
		if runes := []rune(p.source); p.Column >= 1 && p.Column <= len(runes) {
			pad := strings.Map(func(r rune) rune {
				if r == '\t' {
					return r
				}
				return ' '
			}, string(runes[:p.Column-1]))
			fmt.Fprintf(&b, "\n%*s | %s^", len(number), "", pad)
		}
	}
	return b.String()
}

// sortProblems sorts problems by place, drops duplicates and cuts off at maxProblems.
func sortProblems(in []Problem) Errors {
	slices.SortStableFunc(in, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	in = slices.CompactFunc(in, func(a, b Problem) bool {
		return a.Line == b.Line && a.Column == b.Column && a.Key == b.Key && a.Message == b.Message
	})
	if rest := len(in) - maxProblems; rest > 0 {
		in = append(in[:maxProblems:maxProblems], Problem{
			File: in[0].File, Message: fmt.Sprintf("and %d more problems", rest),
		})
	}
	return Errors(in)
}

var (
	// secretLine matches lines that may hold a secret, by mistake or in a URL.
	secretLine = regexp.MustCompile(`(?i)(key|secret|token|password|credential|authorization|cookie)["']?\s*:|:.*@`)
	// secretPath matches keys where people write secrets by mistake; only their
	// harmless lines are shown.
	secretPath   = regexp.MustCompile(`^auth\b|_env$|^upstreams.*[^.]\.(keys|headers|query|proxy)\b`)
	harmlessLine = regexp.MustCompile(`^[\s-]*((name|weight|models|file|admin_file): [^{]*|([a-z]+_)*env: ([A-Z_][A-Z0-9_]*|[a-z_][a-z0-9_]{0,23}))(\s+#.*)?$`)
)

// sourceLine returns a line of the file for display, without control characters. A line that may hold a secret, because of
// its key or an unknown key, is cut after the first colon or dash.
func sourceLine(line, key string, unknown bool) string {
	line = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f {
			return '·'
		}
		return r
	}, strings.ToValidUTF8(strings.TrimRight(line, " \t\r"), "·"))
	harmless := !secretLine.MatchString(line)
	if secretPath.MatchString(key) {
		harmless = harmlessLine.MatchString(line)
	}
	if harmless && !unknown {
		line = redact.Quote(line)
		if r := []rune(line); len(r) > 160 {
			line = string(r[:160]) + "…"
		}
		return line
	}
	if i := strings.IndexByte(line, ':'); i >= 0 && i < 80 {
		if i+1 == len(line) {
			return line
		}
		return line[:i+1] + " …"
	}
	if trimmed := strings.TrimLeft(line, " \t-"); len(trimmed) < len(line) && trimmed != "" {
		return line[:len(line)-len(trimmed)] + "…"
	}
	return ""
}
