package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

const module = "github.com/rebound-llm/rebound"

// maxLines is the limit of a file. A longer file does more than one thing.
const maxLines = 600

// sleepers may call time.Sleep: they are for tests.
var sleepers = []string{"proxy/upstreamtest", "store/storetest", "e2e"}

// source is one parsed file.
type source struct {
	dir, name string // in the module, with slashes
	pkg       string // as the file says
	file      *ast.File
	fset      *token.FileSet
	lines     int
}

func (s source) path() string   { return path.Join(s.dir, s.name) }
func (s source) test() bool     { return strings.HasSuffix(s.name, "_test.go") }
func (s source) external() bool { return s.test() && strings.HasSuffix(s.pkg, "_test") }
func (s source) at(p token.Pos) string {
	return fmt.Sprintf("%s:%d", s.path(), s.fset.Position(p).Line)
}

// sources parses every file of the module, regardless of build tags.
func sources(t *testing.T) (out []source) {
	t.Helper()
	root := os.DirFS(filepath.Join("..", ".."))
	err := fs.WalkDir(root, ".", func(p string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil || p == ".":
			return err
		case d.IsDir():
			if _, err := fs.Stat(root, p+"/go.mod"); err == nil || name == "testdata" || name == "node_modules" || name[0] == '.' || name[0] == '_' {
				return fs.SkipDir
			}
			return nil
		case path.Ext(name) != ".go" || name[0] == '.' || name[0] == '_':
			return nil
		}
		text, err := fs.ReadFile(root, p)
		if err != nil {
			return err
		}
		s := source{dir: path.Dir(p), name: path.Base(p), fset: token.NewFileSet(), lines: strings.Count(string(text), "\n")}
		if s.file, err = parser.ParseFile(s.fset, p, text, parser.ParseComments|parser.SkipObjectResolution); err != nil {
			return err
		}
		s.pkg = s.file.Name.Name
		out = append(out, s)
		return nil
	})
	if err != nil || len(out) < 50 {
		t.Fatalf("%d files found, error %v: this is not the whole module", len(out), err)
	}
	return out
}

// matchesPackage reports whether a package matches a pattern with * for one folder.
func matchesPackage(pattern, pkg string) bool {
	ok, _ := path.Match(pattern, pkg)
	return ok || pattern == anything
}

// below reports whether a package or file is one of roots, or inside one.
func below(p string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool { return p == root || strings.HasPrefix(p, root+"/") })
}

// rowOf finds the row of a package.
func rowOf(pkg string) (row, bool) {
	for _, same := range []func(pattern, pkg string) bool{func(a, b string) bool { return a == b }, matchesPackage} {
		if i := slices.IndexFunc(imports, func(r row) bool { return same(r.pkg, pkg) }); i >= 0 {
			return imports[i], true
		}
	}
	return row{}, false
}

// forbidden returns what is wrong with an import, or "".
func forbidden(s source, imported string) string {
	ours, internal := strings.CutPrefix(imported, module+"/")
	domain, _, _ := strings.Cut(imported, "/")
	switch {
	case internal:
		return forbiddenOurs(s, ours)
	case !strings.Contains(domain, "."):
		return "" // the standard library
	}
	for _, h := range homes {
		if !below(imported, []string{h.library}) {
			continue
		}
		if s.external() || s.test() && h.at == nil || slices.ContainsFunc(h.at, func(p string) bool { return matchesPackage(p, s.dir) }) {
			return ""
		}
		return fmt.Sprintf("may only be imported by %v", h.at)
	}
	return "is a new library: add it to homes"
}

// forbiddenOurs is forbidden for a package of this module.
func forbiddenOurs(s source, imported string) string {
	if s.external() || s.test() && slices.Contains([]string{"store/storetest", "proxy/upstreamtest", "recovery/recoverytest"}, imported) {
		return ""
	}
	r, ok := rowOf(s.dir)
	switch {
	case !ok:
		return "comes from a package without a row: add one to the table"
	case !slices.ContainsFunc(r.may, func(p string) bool { return matchesPackage(p, imported) }):
		return fmt.Sprintf("is not in the row of %s", r.pkg)
	}
	for _, c := range closed {
		if below(imported, c.pkg) && !below(s.dir, c.by) {
			return fmt.Sprintf("is only for %v", c.by)
		}
	}
	return ""
}

// Packages import only what the table allows, third-party libraries stay in their packages, and every package has a row.
func TestImports(t *testing.T) {
	for _, s := range sources(t) {
		if _, ok := rowOf(s.dir); !ok && !s.external() {
			t.Errorf("%s: the package has no row in the table", s.path())
			continue
		}
		for _, i := range s.file.Imports {
			imported, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if why := forbidden(s, imported); why != "" {
				t.Errorf("%s: %s %s", s.at(i.Pos()), imported, why)
			}
		}
	}
}

// The table allows and forbids these imports. A line is "file package: imports"; ./ is this module.
func TestImportRules(t *testing.T) {
	rules := map[bool]string{
		true: `
cmd/rebound/demo/x.go demo: ./proxy/upstreamtest
recovery/x.go recovery: ./recovery/transcript
recovery/fit/x.go fit: ./recovery/fit/count github.com/tidwall/gjson
recovery/fit/count/x.go count: ./tokenizer github.com/tidwall/gjson
recovery/fit/x_test.go fit: ./store/storetest
recovery/fit/x_test.go fit_test: ./proxy
recovery/transcript/x.go transcript: github.com/tidwall/sjson
store/redis/x.go redis: ./store github.com/redis/go-redis/v9/auth
proxy/x.go proxy: ./proxy/stream net/http github.com/labstack/echo/v4/middleware
proxy/admin/x.go admin: ./store
proxy/telemetry/x.go telemetry: github.com/prometheus/client_golang/prometheus
configs/x.go configs: ./recovery/route
cmd/rebound/app/x.go app: ./configs
cmd/rebound/app/x_test.go app: go.uber.org/goleak
e2e/x.go main: ./cmd/rebound/app`,
		false: `
recovery/x.go recovery: ./store ./recovery/breaker
recovery/fit/x.go fit: ./recovery/breaker ./tokenizer ./proxy ./store/storetest github.com/tidwall/sjson
recovery/fit/x_test.go fit: ./proxy
recovery/transcript/x.go transcript: ./recovery
store/x.go store: ./store/memory github.com/tidwall/gjson
store/memory/x.go memory: ./store/redis
store/storetest/x.go storetest: github.com/redis/go-redis/v9
proxy/x.go proxy: ./proxy/upstreamtest github.com/prometheus/client_golang/prometheus github.com/stretchr/testify
proxy/x_test.go proxy_test: github.com/stretchr/testify
proxy/admin/x.go admin: ./store/redis ./configs ./recovery/breaker github.com/labstack/echo/v4
proxy/upstream/x.go upstream: ./proxy/stream
proxy/h1/x.go h1: ./recovery
configs/x.go configs: ./cmd/rebound/app
cmd/rebound/x.go main: ./e2e
cmd/rebound/app/x.go app: ./proxy/upstreamtest go.uber.org/goleak
utils/x.go utils: ./store`,
	}
	for allowed, list := range rules {
		for line := range strings.Lines(strings.TrimSpace(list)) {
			f := strings.Fields(line)
			s := source{dir: path.Dir(f[0]), name: path.Base(f[0]), pkg: strings.TrimSuffix(f[1], ":")}
			for _, imported := range f[2:] {
				if why := forbidden(s, strings.Replace(imported, "./", module+"/", 1)); (why == "") != allowed {
					t.Errorf("%s imports %s: allowed %v, want %v (%s)", f[0], imported, why == "", allowed, why)
				}
			}
		}
	}
	for pkg, want := range map[string]bool{"recovery/newstep": true, "utils": false, "recovery/a/b": false, "proxy/upstream/h2": false, "internal/x": false} {
		if _, ok := rowOf(pkg); ok != want {
			t.Errorf("%s has a row: %v, want %v", pkg, ok, want)
		}
	}
}

// configKey matches yaml tags, which are not wire names.
var configKey = regexp.MustCompile(`yaml:"[^"]*"`)

// wirePath matches a gjson path of names.
var wirePath = regexp.MustCompile(`^[A-Za-z0-9_#@*]+([.\[\]|]+[A-Za-z0-9_#@*]+)*$`)

// wireWord returns the wire name in a string that is such a name, a path of names, or JSON.
func wireWord(text string) string {
	for _, w := range wireWords {
		if strings.Contains(text, `"`+w+`"`) || strings.Contains(text, `:"`+w+`,`) || wirePath.MatchString(text) &&
			slices.Contains(strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(".[]|#", r) }), w) {
			return w
		}
	}
	return ""
}

// Only the readers of transcripts and streams use the field names of a wire format.
func TestWireNames(t *testing.T) {
	roots := slices.Collect(maps.Keys(wireReaders))
	used := map[string]bool{}
	for _, s := range sources(t) {
		if s.test() {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if _, skip := n.(*ast.ImportSpec); skip || !ok || lit.Kind != token.STRING {
				return !skip
			}
			text, _ := strconv.Unquote(lit.Value)
			w := wireWord(configKey.ReplaceAllString(text, ""))
			if w == "" {
				return true
			}
			if i := slices.IndexFunc(roots, func(root string) bool { return below(s.path(), []string{root}) }); i >= 0 {
				used[roots[i]] = true
			} else {
				t.Errorf("%s: %q is a field of a wire format: only the readers of transcripts and streams know those", s.at(lit.Pos()), w)
			}
			return true
		})
	}
	for _, root := range roots {
		if !used[root] {
			t.Errorf("%s is an exception that nothing needs", root)
		}
	}
}

func TestWireWord(t *testing.T) {
	for text, want := range map[string]string{
		"messages": "messages", "choices.0.delta.content": "choices", "usage.prompt_tokens": "prompt_tokens", `{"max_tokens":1}`: "max_tokens",
		"messages.#.role": "messages", `json:"delta,omitempty"`: "delta", `json:"delta"`: "delta", "the messages are too long": "", "message": "", "parallel.max_tokens: must not be negative": "", "": "",
	} {
		if got := wireWord(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// There is no package-level state. Errors, pools, compiled patterns, embedded files, interface assertions and tables (unexported
// literals that never change) are allowed. Other variables need a reason.
func TestNoPackageState(t *testing.T) {
	byDir := map[string][]source{}
	for _, s := range sources(t) {
		if !s.test() && !below(s.dir, []string{"e2e"}) { // a test program
			byDir[s.dir] = append(byDir[s.dir], s)
		}
	}
	used := map[string]bool{}
	for dir, files := range byDir {
		changed := changedNames(files)
		for _, s := range files {
			packageVars(s.file, func(name *ast.Ident, typ, value ast.Expr) {
				key := dir + "." + name.Name
				if why := state(name.Name, typ, value, changed); why != "" && variables[key] == "" {
					t.Errorf("%s: the package-level variable %s %s", s.at(name.Pos()), name.Name, why)
				} else if why != "" {
					used[key] = true
				}
			})
		}
	}
	for key := range variables {
		if !used[key] {
			t.Errorf("%s is an exception that nothing needs", key)
		}
	}
}

// packageVars calls fn for the package-level variables of a file, without blank ones.
func packageVars(f *ast.File, fn func(name *ast.Ident, typ, value ast.Expr)) {
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR {
			continue
		}
		for _, sp := range g.Specs {
			spec := sp.(*ast.ValueSpec)
			for i, name := range spec.Names {
				var value ast.Expr
				if len(spec.Values) == len(spec.Names) {
					value = spec.Values[i]
				}
				if name.Name != "_" && !embedded(g.Doc) && !embedded(spec.Doc) {
					fn(name, spec.Type, value)
				}
			}
		}
	}
}

// embedded reports whether a comment is a go:embed directive.
func embedded(c *ast.CommentGroup) bool {
	return c != nil && slices.ContainsFunc(c.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:embed ") })
}

// constantCalls lists calls whose results do not change.
var constantCalls = []string{"regexp.MustCompile", "strings.NewReplacer", "reflect.TypeFor", "strings.Fields", "goredis.NewScript", "newPhrase", "recovery.NewPattern", "setOf"}

// state returns why a variable may be state, or "".
func state(name string, typ, value ast.Expr, changed map[string]bool) string {
	if changed[name] {
		return "is changed"
	}
	call := selector(typ)
	switch value := value.(type) {
	case nil:
		if call == "sync.Pool" {
			return ""
		}
		return "has no value: what sets it?"
	case *ast.CompositeLit:
		call = selector(value.Type)
		if call == "sync.Pool" {
			return ""
		}
		if strings.HasPrefix(call, "sync.") || strings.HasPrefix(call, "atomic.") {
			return "is made to be changed"
		}
	case *ast.CallExpr:
		call = selector(value.Fun)
		if call == "errors.New" || call == "fmt.Errorf" {
			return ""
		}
		if _, conversion := value.Fun.(*ast.ArrayType); !conversion && !slices.Contains(constantCalls, call) { // []byte("...")
			return "is the result of a call"
		}
	default:
		return "is no table"
	}
	if ast.IsExported(name) {
		return "can be changed by other packages: make it a function"
	}
	return ""
}

// selector returns "a.b" for a.b and a.b[T], "a" for a, and "" for everything else.
func selector(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.IndexExpr:
		return selector(e.X)
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok {
			return x.Name + "." + e.Sel.Name
		}
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// changedNames returns the names that the functions of a package assign to, take the address of, or pass to delete, clear and
// copy. A local variable of the same name counts too; rename it then.
func changedNames(files []source) map[string]bool {
	out := map[string]bool{}
	note := func(e ast.Expr) { // records the first name of an operand
		first := true
		ast.Inspect(e, func(n ast.Node) bool {
			if x, ok := n.(*ast.Ident); ok && first {
				out[x.Name], first = true, false
			}
			return first
		})
	}
	for _, s := range files {
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				if n.Tok != token.DEFINE {
					for _, e := range n.Lhs {
						note(e)
					}
				}
			case *ast.IncDecStmt:
				note(n.X)
			case *ast.UnaryExpr:
				if n.Op == token.AND {
					note(n.X)
				}
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.Ident); ok && slices.Contains([]string{"delete", "clear", "copy"}, f.Name) && len(n.Args) > 0 {
					note(n.Args[0])
				}
			}
			return true
		})
	}
	return out
}

func TestStateRule(t *testing.T) {
	const text = `package p
var table = map[string]int{"a": 1}
var list = []string{"a"}
var written = map[string]int{}
var counter int
var grown = []int{}
var taken = [2]int{}
var Exported = []int{1}
var ErrFine = errors.New("fine")
var fine = regexp.MustCompile("x")
var mu sync.Mutex
var pool = sync.Pool{}
var flag atomic.Bool
var made = make(map[string]int)
var replaced = errors.New("x")
var pointer = &thing{}
var _ I = (*T)(nil)
//go:embed x
var embedded string
func f() { written["a"] = 2; grown = append(grown, 1); g(&taken[0]); replaced = nil; table := 1; _ = table }
`
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "p.go", text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	changed := changedNames([]source{{file: f, fset: fset}})
	var got []string
	packageVars(f, func(name *ast.Ident, typ, value ast.Expr) {
		if state(name.Name, typ, value, changed) != "" {
			got = append(got, name.Name)
		}
	})
	slices.Sort(got)
	want := []string{"Exported", "counter", "flag", "grown", "made", "mu", "pointer", "replaced", "taken", "written"}
	if !slices.Equal(got, want) {
		t.Errorf("state is %v, want %v", got, want)
	}
}

// Files have a limited size, packages have a doc.go, nothing sleeps, and nothing runs before main.
func TestHouseRules(t *testing.T) {
	docs := map[string]bool{}
	for _, s := range sources(t) {
		if s.lines > maxLines {
			t.Errorf("%s has %d lines, at most %d: divide it", s.path(), s.lines, maxLines)
		}
		if s.test() {
			continue
		}
		docs[s.dir] = docs[s.dir] || s.file.Doc != nil && (s.name == "doc.go" || s.pkg == "main" || below(s.dir, []string{"e2e"}))
		for _, d := range s.file.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s: init() is not allowed: call a function by name", s.at(fn.Pos()))
			}
		}
		if below(s.dir, sleepers) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if e, ok := n.(*ast.SelectorExpr); ok && selector(e) == "time.Sleep" {
				t.Errorf("%s: time.Sleep cannot be ended: wait for a timer and the context", s.at(e.Pos()))
			}
			return true
		})
	}
	maps.DeleteFunc(docs, func(_ string, ok bool) bool { return ok })
	for dir := range docs {
		t.Errorf("package %s has no doc.go with its purpose", dir)
	}
}

// Patterns are compiled at their first use, so this test compiles all of them.
func TestPatterns(t *testing.T) {
	n := 0
	for _, s := range sources(t) {
		if s.test() {
			continue
		}
		ast.Inspect(s.file, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok || selector(call.Fun) != "recovery.NewPattern" {
				return true
			}
			expr, ok := constant(call.Args[0])
			if !ok {
				return true // built from constants of other files; its package tests it
			}
			if _, err := regexp.Compile(expr); err != nil {
				t.Errorf("%s: %v", s.at(call.Pos()), err)
			}
			n++
			return true
		})
	}
	if n < 100 {
		t.Errorf("%d patterns found: this test looks in the wrong place", n)
	}
}

// constant returns the value of a literal string or of a concatenation of literals.
func constant(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		v, err := strconv.Unquote(e.Value)
		return v, err == nil
	case *ast.BinaryExpr:
		a, ok := constant(e.X)
		b, also := constant(e.Y)
		return a + b, ok && also
	}
	return "", false
}

// Every event is sent, and a test sees it: code other than what counts and shows events uses its name, and not only to
// compare with it.
func TestEventsAreSent(t *testing.T) {
	sent, seen := map[string]bool{}, map[string]bool{}
	declared := map[string]string{}
	for _, s := range sources(t) {
		if !below(s.dir, []string{"recovery", "proxy", "cmd/rebound"}) || below(s.dir, []string{"proxy/telemetry", "proxy/admin"}) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				if typ, ok := n.Type.(*ast.Ident); ok && typ.Name == "EventName" {
					declared[n.Names[0].Name], _ = text(n.Values[0])
					return false
				}
			case *ast.BasicLit:
				for _, word := range strings.FieldsFunc(n.Value, func(c rune) bool { return c != '_' && !unicode.IsLetter(c) }) {
					seen[word] = seen[word] || s.test()
				}
			case *ast.CaseClause:
				if !s.test() {
					n.List = nil
				}
			case *ast.BinaryExpr:
				return s.test() || n.Op != token.EQL && n.Op != token.NEQ
			case *ast.Ident:
				sent[n.Name], seen[n.Name] = sent[n.Name] || !s.test(), seen[n.Name] || s.test()
			}
			return true
		})
	}
	if len(declared) < 20 {
		t.Fatalf("only %d events are declared: this test looks in the wrong place", len(declared))
	}
	for name, value := range declared {
		if !sent[name] {
			t.Errorf("nothing sends %s", name)
		}
		if !seen[name] && !seen[value] {
			t.Errorf("no test sees %s", value)
		}
	}
}
