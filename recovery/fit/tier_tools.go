package fit

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// toolKind is what a tool does, as far as it can be told without configuration.
type toolKind uint8

const (
	kindOther toolKind = iota
	kindRead
	kindEdit
	kindWrite
	kindSearch // and lists
	kindShell
)

// callInfo is a call as the tiers read it.
type callInfo struct {
	transcript.ToolCall
	kind    toolKind
	text    string   // the arguments, as the tool got them
	paths   []string // files that it is about, cleaned
	command string   // of a shell
	object  bool     // text is a JSON object
}

// label names the call for a reader, bounded: the tool and what it is about.
func (c callInfo) label() string {
	about := ""
	switch {
	case c.command != "":
		about = oneLine(c.command, 160)
	case len(c.paths) > 0:
		about = oneLine(c.paths[0], 200)
	case c.object && len(c.text) > 2:
		about = oneLine(c.text, 120)
	}
	name := oneLine(c.Name, 80)
	if name == "" {
		name = "a tool"
	}
	if about == "" {
		return name
	}
	return name + " (" + about + ")"
}

// oneLine is the beginning of a text on one line.
func oneLine(s string, limit int) string {
	if len(s) > 4*limit {
		s = cutBefore(s, 4*limit)
	}
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > limit {
		s = cutBefore(s, limit) + "…"
	}
	return s
}

// toolbox knows what the request's tools are for.
type toolbox struct{ kinds map[string]toolKind }

func newToolbox(b *transcript.Body) *toolbox {
	t := &toolbox{kinds: map[string]toolKind{}}
	for _, tool := range b.Tools() {
		kind := kindOf(nameWords(tool.Name))
		if kind == kindOther {
			kind = kindOf(nameWords(cutBefore(tool.Description, 60)))
		}
		t.kinds[tool.Name] = kind
	}
	return t
}

// verbs are the words in names and descriptions of tools that tell their kind,
// in the order in which they are looked for: "create or replace" edits.
var verbs = []struct {
	kind  toolKind
	words []string
}{
	{kindShell, []string{"bash", "shell", "exec", "execute", "terminal", "cmd", "command", "commands", "powershell", "run"}},
	{kindSearch, []string{"grep", "search", "find", "glob", "rg", "list", "ls", "tree", "ripgrep"}},
	{kindEdit, []string{"edit", "edits", "replace", "patch", "insert", "modify", "multiedit", "diff", "update", "append"}},
	{kindWrite, []string{"write", "create", "save", "overwrite", "writes", "creates"}},
	{kindRead, []string{"read", "reads", "view", "open", "cat", "get", "show", "fetch", "load"}},
}

func kindOf(names []string) toolKind {
	for _, v := range verbs {
		for _, n := range names {
			for _, w := range v.words {
				if n == w {
					return v.kind
				}
			}
		}
	}
	return kindOther
}

// nameWords divides a name at everything that is no letter, and at capitals.
func nameWords(name string) (out []string) {
	var b strings.Builder
	flush := func() {
		if b.Len() > 0 {
			out = append(out, strings.ToLower(b.String()))
			b.Reset()
		}
	}
	lower := false
	for _, r := range cutBefore(name, 256) {
		switch {
		case !unicode.IsLetter(r):
			flush()
		case unicode.IsUpper(r) && lower:
			flush()
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
		lower = unicode.IsLower(r)
	}
	flush()
	return out
}

// The names of arguments that agents' tools have for files and commands.
var (
	pathArguments    = []string{"path", "file_path", "filepath", "filename", "file_name", "file", "target_file", "absolute_path", "notebook_path", "relative_workspace_path", "uri"}
	commandArguments = []string{"command", "cmd", "script", "commands"}
	patchedFile      = regexp.MustCompile(`(?m)^(?:\*\*\* (?:Update|Add|Delete) File: |\+\+\+ b/)(\S.*)$`)
)

// maxParsed is the size of arguments up to which they are parsed.
const maxParsed = 4 << 20

// read understands a call.
func (t *toolbox) read(name, arguments string, call transcript.ToolCall) callInfo {
	c := callInfo{ToolCall: call, text: arguments, kind: t.kinds[name]}
	if c.kind == kindOther {
		c.kind = kindOf(nameWords(name))
	}
	trimmed := strings.TrimSpace(arguments)
	if len(trimmed) > maxParsed || !strings.HasPrefix(trimmed, "{") || transcript.Valid([]byte(trimmed), 64) != nil {
		c.patched(trimmed)
		return c
	}
	c.object = true
	var editor string // tools with one name for all they do say in an argument which
	gjson.Parse(trimmed).ForEach(func(key, value gjson.Result) bool {
		switch name := strings.ToLower(key.String()); {
		case slices.Contains(pathArguments, name) && value.Type == gjson.String && value.String() != "":
			c.paths = append(c.paths, cleanPath(value.String()))
		case slices.Contains(commandArguments, name) && value.Type == gjson.String:
			c.command = value.String()
		case slices.Contains(commandArguments, name) && value.IsArray():
			var list []string
			value.ForEach(func(_, word gjson.Result) bool {
				list = append(list, word.String())
				return len(list) < 64
			})
			if len(list) > 2 && strings.HasPrefix(list[1], "-") && strings.HasSuffix(list[1], "c") {
				list = list[2:] // ["bash", "-lc", "…"]
			}
			c.command = strings.Join(list, " ")
		case (name == "input" || name == "patch" || name == "diff") && value.Type == gjson.String:
			c.patched(value.String())
		case name == "action" || name == "operation" || name == "mode":
			editor = value.String()
		}
		return true
	})
	if len(c.paths) > 0 && c.command != "" && !strings.ContainsAny(c.command, " /|") {
		editor, c.command = c.command, "" // {"command": "str_replace", "path": …}
	}
	if editor != "" {
		if kind := kindOf(nameWords(editor)); kind != kindOther {
			c.kind = kind
		}
	}
	switch {
	case c.command != "":
		c.shell()
	case len(c.paths) == 0 && (c.kind == kindEdit || c.kind == kindWrite || c.kind == kindShell):
		c.kind = kindOther
	case len(c.paths) == 0 && c.kind == kindRead && !named(name):
		c.kind = kindOther
	}
	return c
}

// named reports whether the name itself says that something is read.
func named(name string) bool { return kindOf(nameWords(name)) == kindRead }

// patched takes the files out of a patch.
func (c *callInfo) patched(text string) {
	if c.kind != kindEdit && c.kind != kindShell && !strings.HasPrefix(text, "*** Begin Patch") {
		return
	}
	for _, m := range patchedFile.FindAllStringSubmatch(text, 64) {
		c.kind = kindEdit
		c.paths = append(c.paths, cleanPath(m[1]))
	}
}

// command understands a command of a text protocol.
func (t *toolbox) command(text string) callInfo {
	c := callInfo{text: text, command: text, kind: kindShell}
	first, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	c.Name = oneLine(first, 40)
	c.shell()
	if kind := kindOf(nameWords(first)); c.kind == kindShell && len(c.paths) == 0 && (kind == kindRead || kind == kindEdit || kind == kindWrite) {
		if file := strings.Fields(rest); len(file) > 0 && strings.ContainsAny(file[0], "./") {
			c.kind, c.paths = kind, []string{cleanPath(file[0])}
		}
	}
	return c
}

var (
	// goTo is a change of folder in front of a command.
	goTo = regexp.MustCompile(`^\s*cd\s+([^\s;&|]+)\s*(?:&&|;)\s*`)
	// showsFile are commands that print one file, or lines of it, and do nothing else.
	showsFile = regexp.MustCompile(`^(?:cat|nl|head|tail|bat|less|more|sed\s+-n)(?:\s+-[\w=]+(?:\s+\d+)?|\s+'[\d,$ ;p]+'|\s+"[\d,$ ;p]+"|\s+\d+(?:,\d+)?p)*\s+([^\s'"|;&<>$*]+)\s*$`)
	// writesFile are commands that put a new content into a file.
	writesFile = regexp.MustCompile(`^(?:cat|tee|echo|printf)\b[^\n|;&]*?>\s*([^\s'"|;&<>$*]+)|^sed\s+-i\S*\s+[^\n]*?\s([^\s'"|;&<>$*]+)\s*$`)
)

// patchCommand is a program of some agents that takes a patch as its input.
const patchCommand = "apply_patch"

// shell understands a shell's command: some of them read or write one file.
func (c *callInfo) shell() {
	c.kind, c.paths = kindShell, nil
	text, folder := strings.TrimSpace(cutBefore(c.command, 8<<10)), ""
	if m := goTo.FindStringSubmatch(text); m != nil {
		text, folder = strings.TrimSpace(text[len(m[0]):]), m[1]
	}
	in := func(file string) []string {
		if folder != "" && !strings.HasPrefix(file, "/") && !strings.HasPrefix(file, "~") {
			file = folder + "/" + file
		}
		return []string{cleanPath(file)}
	}
	if strings.Contains(text, patchCommand) {
		c.patched(c.command)
		return
	}
	if m := showsFile.FindStringSubmatch(text); m != nil {
		c.kind, c.paths = kindRead, in(m[1])
	} else if m := writesFile.FindStringSubmatch(text); m != nil {
		c.kind, c.paths = kindWrite, in(m[1]+m[2])
	}
}

func cleanPath(p string) string {
	p = strings.TrimPrefix(strings.TrimSpace(p), "file://")
	return path.Clean(strings.ReplaceAll(p, `\`, "/"))
}

// samePath reports whether two paths may name the same file: a relative one
// equals every absolute one that ends with it.
func samePath(a, b string) bool {
	if a == b {
		return true
	}
	if len(a) > len(b) {
		a, b = b, a
	}
	return !strings.HasPrefix(a, "/") && a != "." && strings.HasSuffix(b, a) && b[len(b)-len(a)-1] == '/'
}
