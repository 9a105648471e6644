package main

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// Something reads every setting, other than what sets defaults and validates. (TestEverySettingIsChecked wants a check of each.)
func TestSettingsAreRead(t *testing.T) {
	list := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}}|{{.Export}}|{{.Dir}}|{{join .GoFiles \" \"}}", ".")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	exports, fset := map[string]string{}, token.NewFileSet()
	imported := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	names, read := map[*types.Var]string{}, map[string]bool{}
	var config types.Type
	for line := range strings.Lines(string(out)) { // a package comes after those that it imports
		part := strings.Split(strings.TrimSpace(line), "|")
		path, dir := part[0], part[2]
		exports[path] = part[1]
		if !strings.HasPrefix(path, module) {
			continue
		}
		var files []*ast.File
		for name := range strings.FieldsSeq(part[3]) {
			f, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		info := &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}}
		checked, err := (&types.Config{Importer: imported}).Check(path, fset, files, info)
		if err != nil {
			t.Fatal(err)
		}
		nameFields(checked, names)
		if other, err := imported.Import(path); err == nil {
			nameFields(other, names)
		}
		for _, f := range files {
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && !setsOrChecks(fn.Name.Name) && (path != module+"/configs" || secrets(fset, f)) {
					fieldsRead(fn, info, func(v *types.Var) { read[names[v]] = true })
				}
			}
		}
		if path == module+"/configs" {
			config = checked.Scope().Lookup("Config").Type()
		}
	}
	found := 0
	eachSetting(config, "", map[types.Type]bool{}, func(key string, field *types.Var) {
		if found++; names[field] == "" || !read[names[field]] {
			t.Errorf("nothing reads the setting %s (%s)", key, names[field])
		}
	})
	if found < 150 {
		t.Errorf("%d settings are found: this test looks in the wrong place", found)
	}
}

// secrets reports whether a file is the one that replaces settings with the secrets that they name. The rest of its package
// only checks and copies settings.
func secrets(fset *token.FileSet, f *ast.File) bool {
	return filepath.Base(fset.Position(f.Pos()).Filename) == "secrets.go"
}

// setsOrChecks reports whether a function of this name sets defaults or validates.
func setsOrChecks(name string) bool {
	return strings.HasSuffix(name, "Defaults") || strings.HasPrefix(strings.ToLower(name), "validate")
}

// nameFields adds the fields of a package's struct types with their names, as package.Type.Field.
func nameFields(p *types.Package, names map[*types.Var]string) {
	for _, name := range p.Scope().Names() {
		if s, ok := p.Scope().Lookup(name).Type().Underlying().(*types.Struct); ok {
			for f := range s.Fields() {
				if names[f] == "" || !f.Embedded() {
					names[f] = p.Path() + "." + name + "." + f.Name()
				}
			}
		}
	}
}

// fieldsRead calls f with each field that a function selects, except to assign it.
func fieldsRead(fn *ast.FuncDecl, info *types.Info, f func(*types.Var)) {
	assigned := map[ast.Expr]bool{}
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				assigned[left] = n.Tok == token.ASSIGN
			}
		case *ast.SelectorExpr:
			if s := info.Selections[n]; s != nil && s.Kind() == types.FieldVal && !assigned[n] {
				f(s.Obj().(*types.Var))
			}
		}
		return true
	})
}

// eachSetting calls f with each field of a configuration type that a file can set.
func eachSetting(t types.Type, key string, seen map[types.Type]bool, f func(key string, field *types.Var)) {
	switch u := t.Underlying().(type) {
	case *types.Pointer:
		eachSetting(u.Elem(), key, seen, f)
	case *types.Slice:
		eachSetting(u.Elem(), key+"[]", seen, f)
	case *types.Map:
		eachSetting(u.Elem(), key+".NAME", seen, f)
	case *types.Struct:
		if seen[t] {
			return
		}
		seen[t] = true
		for i := range u.NumFields() {
			name, inline, _ := strings.Cut(reflect.StructTag(u.Tag(i)).Get("yaml"), ",")
			if name == "-" || name == "" && inline == "" {
				continue
			}
			at := key
			if name != "" {
				at = strings.TrimPrefix(key+"."+name, ".")
				f(at, u.Field(i))
			}
			eachSetting(u.Field(i).Type(), at, seen, f)
		}
	}
}
