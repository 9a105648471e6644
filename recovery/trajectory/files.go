package trajectory

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// Act is what a call does to a file, in one word.
type Act string

// The acts.
const (
	Read    Act = "read" // or only named
	Created Act = "created"
	Edited  Act = "edited"
	Deleted Act = "deleted"
)

// File is a file that a call uses.
type File struct {
	Act  Act
	Path string // cleaned, otherwise as in the call
}

// maxFiles limits the files of one call.
const maxFiles = 64

// verbNames are the names of arguments that select an operation of a tool.
var verbNames = setOf("command, action, operation, mode")

// patched matches the files of a patch, as apply_patch and diffs name them.
var patched = regexp.MustCompile(`(?m)^(?:\*\*\* (Update|Add|Delete) File: |\+\+\+ b/)(\S.*)$`)

// Files returns the files that the call uses: from its arguments, its patch or its command line. It parses the
// arguments on each call.
func (c *Call) Files() (list []File) {
	add := func(a Act, p string) {
		if p = strings.ReplaceAll(strings.TrimPrefix(strings.TrimSpace(p), "file://"), `\`, "/"); p != "" && len(list) < maxFiles {
			list = append(list, File{a, path.Clean(p)})
		}
	}
	text := strings.TrimSpace(c.Arguments)
	for _, m := range patched.FindAllStringSubmatch(strings.ReplaceAll(text, `\n`, "\n"), maxFiles) {
		add(map[string]Act{"Add": Created, "Delete": Deleted, "Update": Edited, "": Edited}[m[1]], m[2])
	}
	if len(list) > 0 {
		return list
	}
	if strings.HasPrefix(text, "{") && readable(text) {
		act, paths := c.named(gjson.Parse(text))
		for _, p := range paths {
			add(act, p)
		}
	}
	if len(list) == 0 && c.Line() != "" {
		filesOf(c.Line(), add)
	}
	return list
}

// named returns the paths in the arguments of the call, and what the call does to them: by the tool's name, or by an
// argument that selects the operation.
func (c *Call) named(arguments gjson.Result) (act Act, paths []string) {
	act = actOf(NameWords(c.Tool))
	arguments.ForEach(func(key, v gjson.Result) bool {
		switch name := strings.ToLower(key.Str); {
		case v.Type != gjson.String:
		case holding[Plain(name)]&HoldsPath != 0:
			paths = append(paths, v.Str)
		case verbNames[name] && !strings.ContainsAny(v.Str, " /|"):
			if a := actOf(NameWords(v.Str)); a != Read || act == Edited && KindOf(v.Str) == Reader {
				act = a
			}
		}
		return len(paths) < maxFiles
	})
	return act, paths
}

// actOf returns the act that the words of a name state.
func actOf(words []string) Act {
	act := Read
	for _, w := range words {
		switch w {
		case "delete", "remove", "rm":
			return Deleted
		case "write", "create", "save", "overwrite":
			act = Created
		default:
			if traits[w]&editorAnswer != 0 && act == Read || w == "update" || w == "modify" || w == "diff" {
				act = Edited
			}
		}
	}
	return act
}

// filesOf finds the words of a command line that name files.
func filesOf(line string, add func(Act, string)) {
	addFiles := func(act Act, words []string) {
		for _, w := range words {
			if isFile(w) {
				add(act, w)
			}
		}
	}
	file := parsed(line)
	if file == nil {
		addFiles(Read, strings.Fields(line[:min(len(line), maxLine)]))
		return
	}
	for _, v := range invocations(line, file) {
		inner := v.innermost()
		program, args := strings.ToLower(inner.Program), inner.Words[1:]
		if last := len(args) - 1; last > 0 && (program == "cp" || program == "mv") {
			addFiles(Read, args[:last])
			addFiles(Created, args[last:])
		} else {
			addFiles(actOfProgram(program, args), args)
		}
		addFiles(Created, v.Targets)
		addFiles(Read, v.inputs)
	}
}

// actOfProgram returns what a program does to the files among its arguments.
func actOfProgram(program string, args []string) Act {
	switch {
	case program == "rm" || program == "git" && slices.Contains(args, "rm"):
		return Deleted
	case program == "touch" || program == "tee" || program == "create":
		return Created
	case program == "sed" && edits(program, args):
		return Edited
	}
	return Read
}

// isFile reports whether a word looks like a file name: it has an extension.
func isFile(w string) bool {
	dot := strings.LastIndexByte(w, '.')
	if len(w) < 4 || len(w) > 200 || w[0] == '-' || dot <= 0 || dot < len(w)-7 || dot == len(w)-1 || w[dot+1] <= '9' {
		return false
	}
	return !strings.ContainsAny(w, "*$\\{}:()[]<>=,;|&'\" \t\n") && strings.Trim(strings.ToLower(w[dot+1:]), "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

// Attempt returns what repeated attempts have in common: the first words of a command, or else the first file or
// the arguments.
func (c *Call) Attempt() string {
	if c.Line() != "" {
		return Attempt(c.Line())
	}
	if files := c.Files(); len(files) > 0 {
		return c.Tool + " " + files[0].Path
	}
	return c.Tool + " " + c.Arguments
}

var (
	leading  = regexp.MustCompile(`^(?:\s*(?:cd\s+\S+\s*(?:&&|;)|sudo\s|\w+=\S*\s))+`)
	trailing = regexp.MustCompile(`(?s)\s*(?:\d?>|[|;\n]|&&).*`)
)

// Attempt returns the first words of a command line without options, which repeated attempts have in common.
func Attempt(line string) string {
	line = line[:min(len(line), maxLine)]
	var list []string
	for _, w := range strings.Fields(trailing.ReplaceAllString(leading.ReplaceAllString(line, ""), "")) {
		if !strings.HasPrefix(w, "-") && len(list) < 3 {
			list = append(list, w)
		}
	}
	return strings.Join(list, " ")
}
