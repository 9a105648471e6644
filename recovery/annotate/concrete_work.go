package annotate

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// interpreters run scripts that are not executable.
var interpreters = map[string]string{".sh": "bash", ".bash": "bash", ".py": "python3", ".js": "node", ".mjs": "node", ".cjs": "node", ".rb": "ruby", ".pl": "perl", ".php": "php", ".lua": "lua"}

// interpreted is the command that runs the script whose execution was refused.
func (s *scene) interpreted() string {
	denied := s.failedPath()
	for _, v := range invocations(s.command) {
		if !strings.Contains(v.words[0], "/") || !(v.words[0] == denied || strings.Contains(s.f.Line, v.words[0])) {
			continue
		}
		with := interpreters[path.Ext(v.program)]
		if with == "" {
			continue
		}
		if command := with + " " + v.text; len(command) <= maxQuoted && s.permitted(command) {
			return command
		}
	}
	return ""
}

// written are the files and directories that a call writes, as far as its
// arguments tell.
func (s *scene) written(c call) (files, dirs []string) {
	if c.command == "" {
		if t, _ := s.definition(c.tool); Kinds(t)&Write != 0 {
			if p := argument(c.args, pathParameters[:]...); p != "" {
				files = append(files, p)
			}
		}
		return files, nil
	}
	cd := ""
	for _, v := range invocations(c.command) {
		args := v.operands()
		if v.program == "cd" && len(args) == 1 {
			cd = join(cd, args[0])
			continue
		}
		out := v.targets()
		switch v.program {
		case "touch", "tee":
			out = append(out, args...)
		case "cp", "mv":
			if len(args) > 1 && !strings.HasSuffix(args[len(args)-1], "/") {
				out = append(out, args[len(args)-1])
			}
		case "mkdir":
			for _, a := range args {
				dirs = append(dirs, join(cd, a))
			}
		case "curl", "wget", "gcc", "go", "sort", "tar", "zip":
			for i, w := range v.words {
				if (w == "-o" || w == "-O" && v.program == "wget" || w == "--output" || v.program == "tar" && i == 1 && strings.HasSuffix(w, "f") && strings.Contains(w, "c")) && i+1 < len(v.words) {
					out = append(out, v.words[i+1])
				}
			}
		}
		for _, f := range out {
			files = append(files, join(cd, f))
		}
	}
	keep := func(p string) bool {
		return p == "" || len(p) > 200 || strings.HasPrefix(p, "/dev/") || strings.HasPrefix(p, "&") || strings.ContainsAny(p, "$*?{`(\n")
	}
	return slices.DeleteFunc(files, keep), slices.DeleteFunc(dirs, keep)
}

// writable is the directory that the agent wrote to last without trouble, other
// than the one that is refused now.
func (s *scene) writable() (found string) {
	denied := path.Dir(join(s.start(), s.failedPath()))
	s.calls("", func(c call) bool {
		files, dirs := s.written(c)
		for _, f := range files {
			dirs = append(dirs, path.Dir(clean(f)))
		}
		for _, d := range slices.Backward(dirs) {
			full := join(s.cwd(), d)
			if full == denied || d == denied || denied != "." && denied != "/" && strings.HasPrefix(full+"/", denied+"/") || elevated.MatchString(c.command) {
				continue
			}
			if s.worked(c) {
				found = full
				return false
			}
		}
		return true
	})
	return found
}

// temporary are names of files that nobody misses.
var temporary = recovery.NewPattern(`(?i)^(?:/private)?/(?:var/)?tmp/|^/var/folders/|\.(?:tmp|temp|log|out|bak|cache|tar|tgz|gz|xz|bz2|zip|zst|o|pyc|core|dump|trace|prof)$|(?:^|/)(?:tmp|temp)[^/]*$`)

// created are temporary files that calls of this session made: a call wrote
// them without trouble, and nothing earlier in the conversation knows them.
func (s *scene) created() (out []string) {
	s.calls("", func(c call) bool {
		files, _ := s.written(c)
		for _, f := range files {
			f = clean(f)
			if len(out) < 4 && temporary.MatchString(f) && !slices.Contains(out, f) && !s.known(base(f), c.at) && s.worked(c) && !elevated.MatchString(c.command) {
				out = append(out, f)
			}
		}
		return len(out) < 4
	})
	return out
}

// known reports whether anything before message i names a file.
func (s *scene) known(name string, i int) bool {
	for j := i - 1; j >= 0; j-- {
		if m := s.list[j]; m.Role != transcript.RoleAssistant && bytes.Contains(m.Raw(), []byte(name)) {
			return true
		}
	}
	return false
}

// places are the forms in which messages state where a syntax error is.
var places = [...]*recovery.Pattern{
	recovery.NewPattern(`(?m)^\s+in \\?"([^"\n\\<>]{1,200})\\?", line (\d{1,7})`), // YAML
	recovery.NewPattern(`File \\?"([^"\n\\]{1,200})\\?", line (\d{1,7})`),
	recovery.NewPattern(`([\w./@+-]{1,150}\.[A-Za-z]{1,5}):(\d{1,7})\b`),
	recovery.NewPattern(`([\w./@+-]{1,150}\.[A-Za-z]{1,5}): line (\d{1,7})\b`),
	recovery.NewPattern(`()\bline (\d{1,7})\b`),
}

// library are files that are not the agent's to correct.
var library = recovery.NewPattern(`^(?:/usr/(?:local/)?lib/|node:|internal/)|/(?:site|dist)-packages/|/node_modules/|/lib/python\d|/go/pkg/mod/|/\.cargo/registry/|/usr/local/go/src/`)

// place is where the syntax error is, as the message states it: the last place
// that is not in a library.
func (s *scene) place() string {
	for _, text := range [...]string{s.f.Line, s.content} {
		for _, re := range places {
			all := re.FindAllStringSubmatch(text, 64)
			if len(all) == 0 {
				continue
			}
			for _, m := range slices.Backward(all) {
				switch {
				case library.MatchString(m[1]):
				case m[1] == "" || strings.HasPrefix(m[1], "<"):
					if f := s.dataFile(); f != "" {
						return f + ":" + m[2]
					}
					return "line " + m[2]
				default:
					return m[1] + ":" + m[2]
				}
			}
		}
	}
	return ""
}

// data are files that programs parse; an error in one may state only the line.
var data = recovery.NewPattern(`(?i)\.(?:ya?ml|json5?|jsonc|toml|xml|ini|conf|cfg|env|tf|hcl|sql)$`)

// dataFile is the only such file in the failing command line, "" for none or several.
func (s *scene) dataFile() (found string) {
	for _, v := range invocations(s.command) {
		for _, w := range v.words[1:] {
			_, value, ok := strings.Cut(w, "=")
			if !ok {
				value = w
			}
			switch {
			case !data.MatchString(value) || value == found:
			case found != "":
				return ""
			default:
				found = value
			}
		}
	}
	return found
}

// unbalanced is what shells say of a command line that they cannot parse.
var unbalanced = recovery.NewPattern(`(?i)unexpected EOF while looking for|unexpected end of file|syntax error near unexpected token|unterminated quoted string|unmatched ['"\x60]|parse error near`)

// inline is the program that got code inside of the failing command line.
func (s *scene) inline() string {
	for _, v := range invocations(s.command) {
		for _, w := range v.words[1:] {
			if w == "-c" || w == "-e" || w == "--eval" || w == "-r" || strings.HasPrefix(w, "<<") {
				return v.runs()
			}
		}
	}
	if s.command != "" && unbalanced.MatchString(s.f.Line) {
		return "sh"
	}
	return ""
}
