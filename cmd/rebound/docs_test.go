package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/proxy/quota"
	"github.com/rebound-llm/rebound/recovery/classify"
)

// document reads a document of the project.
func document(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Every test that security.md names exists, and each line of its table names one.
func TestSecurityNamesTests(t *testing.T) {
	known := map[string]bool{}
	for _, s := range sources(t) {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && s.test() && f.Recv == nil {
				known[f.Name.Name] = true
			}
		}
	}
	lines, named := 0, regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9]+)`")
	for _, test := range named.FindAllStringSubmatch(document(t, "designs.md"), -1) {
		if !known[test[1]] {
			t.Errorf("designs.md: there is no %s", test[1])
		}
	}
	for line := range strings.Lines(document(t, "security.md")) {
		tests := named.FindAllStringSubmatch(line, -1)
		for _, test := range tests {
			if !known[test[1]] {
				t.Errorf("there is no %s", test[1])
			}
		}
		if cells := strings.Split(line, "|"); len(cells) == 7 && !strings.HasPrefix(line, "| who") && !strings.HasPrefix(line, "|---") {
			if lines++; !named.MatchString(cells[5]) {
				t.Errorf("no test for: %s", strings.TrimSpace(line))
			}
		}
	}
	if lines < 20 {
		t.Errorf("the table has %d lines that are read", lines)
	}
}

// codeArguments maps functions that create errors to the position of their code argument.
var codeArguments = map[string]int{"failf": 1, "reported": 1, "noRoom": 0, "refuse": 2}

// madeCodes lists expressions for codes that are not constants. TestErrorCodesAreDocumented adds their possible values.
var madeCodes = []string{"code", "string(e.Code)", "scope + r.Meter"}

// Every error code of the gateway is in operations.md, by status.
func TestErrorCodesAreDocumented(t *testing.T) {
	constants, codes := map[string]string{}, map[string]bool{}
	var given []ast.Expr
	for _, s := range sources(t) {
		if s.test() || !slices.Contains([]string{"proxy", "proxy/admin", "proxy/telemetry", "recovery/transcript"}, s.dir) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for i, name := range n.Names {
					if i < len(n.Values) {
						if v, ok := text(n.Values[i]); ok {
							constants[name.Name] = v
						}
						if v, ok := text(n.Values[i]); ok && n.Type != nil && s.dir == "recovery/transcript" && types.ExprString(n.Type) == "Code" {
							codes[v] = true
						}
					}
				}
			case *ast.CallExpr:
				name, ok := n.Fun.(*ast.Ident)
				if at, is := codeArguments[types.ExprString(n.Fun)]; ok && is && name != nil {
					given = append(given, n.Args[at])
				}
			case *ast.KeyValueExpr:
				if types.ExprString(n.Key) == "Code" && s.dir == "proxy" {
					given = append(given, n.Value)
				}
			}
			return true
		})
	}
	for _, e := range given {
		if v, ok := text(e); ok {
			codes[v] = true
		} else if v, ok := constants[types.ExprString(e)]; ok {
			codes[v] = true
		} else if !slices.Contains(madeCodes, types.ExprString(e)) {
			t.Errorf("the code %s is not a constant: add its possible values to this test", types.ExprString(e))
		}
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[quota.Limits]()) {
		codes["key_"+f.Tag.Get("yaml")], codes["total_"+f.Tag.Get("yaml")] = true, true
	}
	for _, spec := range classify.Specs() {
		codes[string(spec.Class)] = true
	}
	if len(codes) < 70 {
		t.Errorf("only %d codes are found: %v", len(codes), codes)
	}
	_, section, _ := strings.Cut(document(t, "operations.md"), "\n## Error codes\n")
	section, _, _ = strings.Cut(section, "\n## ")
	before := ""
	for _, row := range regexp.MustCompile(`(?m)^\| (\d{3}) \|`).FindAllStringSubmatch(section, -1) {
		if row[1] < before {
			t.Errorf("a row of status %s stands after one of %s", row[1], before)
		}
		before = row[1]
	}
	for code := range codes {
		if !strings.Contains(section, "`"+code+"`") {
			t.Errorf("%s is not among the error codes of operations.md", code)
		}
	}
}

// text returns the value of a string literal.
func text(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	v, err := strconv.Unquote(lit.Value)
	return v, err == nil
}
