package looptest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// gen generates words, names and the volatile parts of outputs.
type gen struct {
	*rand.Rand
	used  map[string]bool // names already used
	clock time.Time       // of the session; increases
}

func (g *gen) chance(p float64) bool         { return g.Float64() < p }
func (g *gen) between(a, b int) int          { return a + g.IntN(b-a+1) }
func (g *gen) pick(list ...string) string    { return list[g.IntN(len(list))] }
func (g *gen) hex(n int) string              { return g.chars(n, "0123456789abcdef") }
func (g *gen) stamp() string                 { return g.clock.Format("2006-01-02T15:04:05.000Z") }
func (g *gen) tick(d time.Duration)          { g.clock = g.clock.Add(d) }
func (g *gen) seconds() string               { return fmt.Sprintf("%.2fs", 0.1+4*g.Float64()) }
func (g *gen) pid() int                      { return g.between(300, 64000) }
func (g *gen) chars(n int, of string) string { return string(g.draw(n, of)) }

func (g *gen) draw(n int, of string) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = of[g.IntN(len(of))]
	}
	return out
}

var (
	verbs = []string{"load", "parse", "flush", "render", "merge", "resolve", "index", "encode", "schedule", "validate", "rotate", "collect",
		"open", "reset", "drain", "sign", "split", "warm", "route", "archive", "trim", "scan", "publish", "sample"}
	nouns = []string{"order", "token", "cache", "ledger", "invoice", "cluster", "socket", "report", "widget", "session", "bucket", "shard",
		"header", "profile", "queue", "cursor", "policy", "snapshot", "digest", "channel", "tenant", "record", "payment", "theme"}
	folders = []string{"src", "internal", "pkg", "lib", "app", "server", "core", "services/api", "packages/ui/src", "tests", "tools"}
)

func (g *gen) noun() string { return g.pick(nouns...) }

// ident returns a new name.
func (g *gen) ident() string {
	for n := 0; ; n++ {
		name := g.pick(verbs...) + "_" + g.noun()
		if n > 8 {
			name += fmt.Sprint(g.IntN(1000))
		}
		if !g.used[name] {
			g.used[name] = true
			return name
		}
	}
}

func (g *gen) folder() string { return g.pick(folders...) + "/" + g.ident() }

// path returns a new file path.
func (g *gen) path() string {
	return g.pick("", "", "/repo/", "./") + g.pick(folders...) + "/" + g.ident() + g.pick(".go", ".py", ".ts", ".rs", ".yaml")
}

// code returns a piece of a source file; no two are equal.
func (g *gen) code(lines int) string {
	var b strings.Builder
	for range lines {
		f := g.ident()
		switch g.IntN(4) {
		case 0:
			fmt.Fprintf(&b, "def %s(%s, limit=%d):\n", f, g.noun(), g.IntN(500))
		case 1:
			fmt.Fprintf(&b, "    %s = self.%s(%s)  # see %s\n", g.noun(), f, g.noun(), g.noun())
		case 2:
			fmt.Fprintf(&b, "    if %s.%s > %d: raise ValueError(\"bad %s\")\n", g.noun(), f, g.IntN(900), g.noun())
		default:
			fmt.Fprintf(&b, "    return %s(%s, key=%q)\n", f, g.noun(), g.hex(6))
		}
	}
	return b.String()
}

// listing returns the content of a folder.
func (g *gen) listing(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = g.ident() + g.pick(".go", ".py", ".md", ".ts", "/")
	}
	return strings.Join(names, "\n")
}

// hits returns the result of a search.
func (g *gen) hits(pattern string, n int) string {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = fmt.Sprintf("%s:%d:    %s(%s)", g.path(), g.between(1, 900), pattern, g.ident())
	}
	return strings.Join(lines, "\n")
}

// say returns a text that a model writes before a call.
func (g *gen) say() string {
	return g.pick("Let me look at ", "Next I want to understand ", "I'll check ", "Now to see where we call ", "Good. The next piece is ",
		"That explains part of it; still open is ", "Before changing anything, I need ") + g.pick(verbs...) + "_" + g.noun() +
		g.pick(".", " and its callers.", " in the "+g.noun()+" code.", ", because the "+g.noun()+" depends on it.", ", then the "+g.noun()+".")
}
