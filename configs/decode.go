package configs

import (
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/rebound-llm/rebound/proxy/redact"
	"github.com/rebound-llm/rebound/proxy/upstream"
	"github.com/rebound-llm/rebound/recovery/route"
)

// sizeKeys lists the integers that are sizes in bytes, which may be written as 64MiB.
var sizeKeys = []string{"limits.body", "limits.headers", "limits.memory", "stream.max_event", "stream.max_answer", "recording.body", "recording.total"}

var durationType = reflect.TypeFor[time.Duration]()

// reader collects problems while it turns text into a Config.
type reader struct {
	name     string // of the file, for messages
	dir      string // relative paths start here
	lines    []string
	problems []Problem
	places   map[string]place  // of every key in the file
	broken   map[string]bool   // keys whose value could not be read at all
	fromEnv  map[string]string // variable by key, for keys that the environment overrides
	sources  []source          // other files that were read

	anchors map[string]ast.Node
	aliased map[*ast.AliasNode]ast.Node // the node that an alias refers to; nil for an unknown anchor
	visits  int                         // nodes read so far, see afford

	secretless bool // missing secrets and certificates are no problem
}

func newReader(name string) *reader {
	return &reader{name: name, dir: filepath.Dir(name), places: map[string]place{}, broken: map[string]bool{}, fromEnv: map[string]string{},
		anchors: map[string]ast.Node{}, aliased: map[*ast.AliasNode]ast.Node{}}
}

// readInto decodes a text into v, which holds the defaults. It reports whether the text is valid YAML.
func (r *reader) readInto(v reflect.Value, data []byte) bool {
	r.lines = strings.Split(strings.TrimPrefix(string(data), "\ufeff"), "\n")
	n, at, err := r.parseText(data)
	switch {
	case err != nil:
		r.reportAt(at, false, "", "%s", err)
	case n != nil:
		r.decode(n, v, "")
	}
	return err == nil
}

// report adds a problem at a key, or at the nearest of its parents that the file has.
func (r *reader) report(key, format string, args ...any) {
	p := Problem{File: r.name, Key: key, Message: redact.Quote(fmt.Sprintf(format, args...))}
	if name, ok := r.fromEnv[key]; ok {
		p.File = ""
		p.Message += " (set by " + name + ")"
		r.problems = append(r.problems, p)
		return
	}
	r.problems = append(r.problems, r.locate(p, r.findOrSibling(key, p.Message), false))
}

// findOrSibling is find, but for a key that the file does not have it prefers a key of the same section that the message
// names: the file may have only the upper limit of the two that do not fit.
func (r *reader) findOrSibling(key, message string) place {
	if !r.has(key) {
		for _, word := range otherKey.FindAllString(message, -1) {
			word = word[strings.LastIndexByte(word, '.')+1:]
			if at, ok := r.places[joinKey(parentKey(key), word)]; ok {
				return at
			}
		}
	}
	return r.find(key)
}

// otherKey matches what may be the name of another key in a message.
var otherKey = regexp.MustCompile(`\b[a-z][a-z0-9_.]*[a-z0-9]\b`)

// refuse reports that a value cannot be read.
func (r *reader) refuse(n ast.Node, key, format string, args ...any) {
	r.broken[key] = true
	at := nodePlace(n)
	if at == (place{}) {
		at = r.find(key)
	}
	r.reportAt(at, false, key, format, args...)
}

// reportAt adds a problem at a place; unknown means that the key is unknown.
func (r *reader) reportAt(at place, unknown bool, key, format string, args ...any) {
	p := Problem{File: r.name, Key: key, Message: redact.Quote(fmt.Sprintf(format, args...))}
	r.problems = append(r.problems, r.locate(p, at, unknown))
}

// locate sets a problem's place and source line.
func (r *reader) locate(p Problem, at place, unknown bool) Problem {
	p.Line, p.Column = at.line, at.column
	if at.line >= 1 && at.line <= len(r.lines) {
		p.source = sourceLine(r.lines[at.line-1], p.Key, unknown)
	}
	return p
}

// has reports whether the file has the key.
func (r *reader) has(key string) bool { _, ok := r.places[key]; return ok }

// failed reports whether there is already a problem at the key or below it.
func (r *reader) failed(key string) bool {
	return slices.ContainsFunc(r.problems, func(p Problem) bool {
		rest, ok := strings.CutPrefix(p.Key, key)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// unreadable reports whether the key or one of its parents could not be read, so that
// further problems would only repeat that.
func (r *reader) unreadable(key string) bool {
	for ; key != ""; key = parentKey(key) {
		if r.broken[key] {
			return true
		}
	}
	return false
}

// find returns the place of a key or of its nearest parent in the file.
func (r *reader) find(key string) place {
	for ; key != ""; key = parentKey(key) {
		if at, ok := r.places[key]; ok {
			return at
		}
	}
	if len(r.lines) == 0 {
		return place{}
	}
	return place{1, 1}
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// childKey returns the path of an entry. It quotes names with other characters than
// letters, digits, - and _, so that paths are unambiguous.
func childKey(parent, name string) string {
	switch {
	case !plainName.MatchString(name):
		return parent + "[" + strconv.Quote(name) + "]"
	case parent == "":
		return name
	}
	return parent + "." + name
}

// joinKey appends a path that a package's Validate reported.
func joinKey(parent, path string) string {
	if parent == "" || path == "" {
		return parent + path
	}
	return parent + "." + path
}

func parentKey(key string) string {
	if strings.HasSuffix(key, `"]`) {
		return key[:max(strings.LastIndex(key, `["`), 0)]
	}
	return key[:max(strings.LastIndexAny(key, ".["), 0)]
}

// field is one key of a struct.
type field struct {
	name  string
	index []int
	typ   reflect.Type
}

// fields lists the keys of a struct in order; inlined structs are flattened.
func fields(t reflect.Type) []field {
	var out []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case !f.IsExported() || name == "-":
		case options == "inline":
			for _, in := range fields(f.Type) {
				in.index = append([]int{i}, in.index...)
				out = append(out, in)
			}
		case name != "":
			out = append(out, field{name: name, index: []int{i}, typ: f.Type})
		}
	}
	return out
}

// elementDefaults returns the defaults of an entry of a list or map.
func elementDefaults(t reflect.Type) reflect.Value {
	out := reflect.New(t).Elem()
	switch p := out.Addr().Interface().(type) {
	case *upstream.Config:
		*p = upstream.Defaults()
	case *upstream.Key:
		p.Weight = 1
	case *route.Target:
		p.Weight = 1
	}
	return out
}

// decode reads a node into v, which holds the default.
func (r *reader) decode(n ast.Node, v reflect.Value, key string) {
	n, is := r.follow(n)
	want := scalar
	switch v.Kind() {
	case reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		r.decode(n, p.Elem(), key)
		v.Set(p)
		return
	case reflect.Struct, reflect.Map:
		want = mapping
	case reflect.Slice:
		want = sequence
	}
	switch {
	case is == refused || !r.afford(n):
		r.broken[key] = true
	case is == null && want == scalar:
		r.refuse(n, key, "has no value: give one, or remove the line to keep the default")
	case is == null: // a key whose entries are all comments
	case is == scalar && want == mapping && noSpace.MatchString(text(n)):
		name, _, _ := strings.Cut(text(n), ":")
		r.refuse(n, key, "needs a space after the colon: %s: …", name)
	case is != want:
		r.refuse(n, key, "must be a %s, not a %s", example(v.Type()), is)
	case v.Kind() == reflect.Struct:
		r.decodeStruct(n, v, key)
	case want == mapping:
		r.decodeMap(n, v, key)
	case want == sequence:
		r.decodeList(n.(*ast.SequenceNode), v, key)
	default:
		if err := setScalar(n, v, slices.Contains(sizeKeys, key)); err != nil {
			r.refuse(n, key, "%s", err)
		}
	}
}

// noSpace matches a key and a value that are one word, for lack of a space between them.
var noSpace = regexp.MustCompile(`^[a-z][a-z0-9_]*:[^:\s]`)

// String names the kind for messages.
func (k kind) String() string {
	return [...]string{"nothing", "single value", "map", "list"}[k]
}

func (r *reader) decodeStruct(n ast.Node, v reflect.Value, key string) {
	known := fields(v.Type())
	for _, p := range r.pairs(n) {
		path := childKey(key, p.key)
		i := slices.IndexFunc(known, func(f field) bool { return f.name == p.key })
		if i < 0 {
			r.reportAt(p.at, true, path, "%s", unknownKey(p.key, key, known))
			continue
		}
		if r.enter(p, path) {
			r.decode(p.value, v.FieldByIndex(known[i].index), path)
		}
	}
}

func (r *reader) decodeMap(n ast.Node, v reflect.Value, key string) {
	v.Set(reflect.MakeMap(v.Type()))
	for _, p := range r.pairs(n) {
		path := childKey(key, p.key)
		if !r.enter(p, path) {
			continue
		}
		entry := elementDefaults(v.Type().Elem())
		if _, is := r.follow(p.value); is != mapping && is != null && entry.Kind() == reflect.Struct &&
			slices.ContainsFunc(fields(entry.Type()), func(f field) bool { return f.name == p.key }) {
			r.refuse(p.value, path, "belongs under a name: %s: {NAME: {%s: …}}", key, p.key)
			continue
		}
		if u, ok := entry.Addr().Interface().(*upstream.Config); ok && p.key == defaultName {
			u.URL = openAI
		}
		r.decode(p.value, entry, path)
		v.SetMapIndex(reflect.ValueOf(p.key), entry)
	}
}

func (r *reader) decodeList(n *ast.SequenceNode, v reflect.Value, key string) {
	out := reflect.MakeSlice(v.Type(), 0, len(n.Values))
	for i, item := range n.Values {
		path := key + "[" + strconv.Itoa(i) + "]"
		item, is := r.follow(item)
		r.places[path] = nodePlace(item)
		entry := elementDefaults(v.Type().Elem())
		if is == null {
			r.refuse(item, path, "is an empty entry: give it a value or remove its dash")
		} else {
			r.decode(item, entry, path)
		}
		out = reflect.Append(out, entry)
	}
	v.Set(out)
}

// enter records the place of a key and refuses a duplicate.
func (r *reader) enter(p pair, path string) bool {
	if p.dup > 0 {
		r.reportAt(p.at, false, path, "is given twice, first in line %d: remove one", p.dup)
		return false
	}
	r.places[path] = p.at
	if n, is := r.follow(p.value); is == scalar {
		r.places[path] = nodePlace(n)
	}
	return true
}

func names(known []field) []string {
	out := make([]string, len(known))
	for i, f := range known {
		out[i] = f.name
	}
	return out
}

// schema calls visit for every key that a type can have, lists and maps included.
func schema(t reflect.Type, key string, visit func(key, name string, t reflect.Type)) {
	switch t.Kind() {
	case reflect.Struct:
		for _, f := range fields(t) {
			path := joinKey(key, f.name)
			visit(path, f.name, f.typ)
			schema(f.typ, path, visit)
		}
	case reflect.Map:
		schema(t.Elem(), key+".NAME", visit)
	case reflect.Slice:
		schema(t.Elem(), key+"[]", visit)
	}
}

// unknownKey returns the message for an unknown key, with the key that was probably meant.
func unknownKey(name, parent string, known []field) string {
	switch strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(name)) {
	case "apikey", "key", "value", "secret", "token", "password", "credential", "admintoken":
		if ways := secretKeys(known); ways != "" {
			return "unknown key: secrets never stand in this file; name an environment variable or a file that holds it (" + ways + ")"
		}
	}
	here, elsewhere := names(known), []string(nil)
	schema(reflect.TypeFor[Config](), "", func(key, n string, _ reflect.Type) {
		if n == name && !strings.Contains(key, "NAME") && !strings.Contains(key, "[]") {
			elsewhere = append(elsewhere, key)
		}
	})
	if len(elsewhere) == 1 && nearest(name, here) == "" {
		return fmt.Sprintf("unknown key here: did you mean %s?", elsewhere[0])
	}
	if s := nearest(name, here); s != "" {
		return fmt.Sprintf("unknown key: did you mean %s?", s)
	}
	where := "at the top level"
	if parent != "" {
		where = "under " + parent
	}
	return fmt.Sprintf("unknown key: %s there are %s", where, strings.Join(here, ", "))
}

// secretKeys lists the known keys that name a secret.
func secretKeys(known []field) string {
	var out []string
	for _, f := range known {
		switch {
		case f.name == "keys":
			out = append(out, "keys: [{name: main, env: NAME}]")
		case f.name == "env" || f.name == "file" || strings.HasSuffix(f.name, "_env") || strings.HasSuffix(f.name, "_file") && f.name != "ca_file":
			out = append(out, f.name)
		}
	}
	return strings.Join(out, " or ")
}
