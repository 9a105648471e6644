package trajectory

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Invocation is one call of a program in a command line.
type Invocation struct {
	Program string   // without folders
	Words   []string // the program as written, then its arguments; without quotes
	Targets []string // files that its output is redirected to
	Text    string   // as written
}

// maxInvocations limits the programs of a command line.
const maxInvocations = 16

// Invocations returns the programs that a command line runs, in order. A line that is invalid or too long is
// returned as one program with its words.
func Invocations(line string) (out []Invocation) {
	line = strings.TrimSpace(line)
	if line == "" {
		return nil
	}
	if file := parsed(line); file != nil {
		syntax.Walk(file, func(n syntax.Node) bool {
			if s, ok := n.(*syntax.Stmt); ok && len(out) < maxInvocations {
				if call, ok := s.Cmd.(*syntax.CallExpr); ok {
					out = append(out, invocation(line, s, call)...)
				}
			}
			return true
		})
		return out
	}
	words := strings.Fields(line[:min(len(line), maxLine)])
	return []Invocation{{Program: program(words[0]), Words: words, Text: line[:min(len(line), maxLine)]}}
}

// invocation returns what a simple command runs, without prefixes such as time and env; nil if it only sets
// variables.
func invocation(line string, s *syntax.Stmt, call *syntax.CallExpr) []Invocation {
	args := call.Args
	for len(args) > 0 {
		if w := args[0].Lit(); w != "time" && w != "command" && w != "env" && (!strings.Contains(w, "=") || len(args) == len(call.Args)) {
			break
		}
		args = args[1:]
	}
	if len(args) == 0 {
		return nil
	}
	v := Invocation{Text: line[args[0].Pos().Offset():min(int(s.End().Offset()), len(line))]}
	for _, w := range args {
		v.Words = append(v.Words, plainWord(line, w.Parts))
	}
	for _, r := range s.Redirs {
		if writes(r) {
			v.Targets = append(v.Targets, plainWord(line, r.Word.Parts))
		}
	}
	v.Text = strings.TrimRight(strings.TrimSuffix(strings.TrimSpace(v.Text), ";"), "& ")
	v.Program = program(v.Words[0])
	return []Invocation{v}
}

func program(word string) string { return path.Base("/" + strings.TrimSuffix(word, ".exe")) }

// plainWord returns a word without its quotes; expansions stay as written.
func plainWord(line string, parts []syntax.WordPart) string {
	var b strings.Builder
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			b.WriteString(strings.ReplaceAll(p.Value, `\`, ""))
		case *syntax.SglQuoted:
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			b.WriteString(plainWord(line, p.Parts))
		default:
			b.WriteString(line[p.Pos().Offset():min(int(p.End().Offset()), len(line))])
		}
	}
	return b.String()
}

// Operands returns the arguments that are not options.
func (v Invocation) Operands() (out []string) {
	for _, w := range v.Words[1:] {
		if w != "" && (w[0] != '-' || len(w) == 1) {
			out = append(out, w)
		}
	}
	return out
}

// prepares are programs that only prepare or filter the work of others.
var prepares = map[string]bool{"cd": true, "export": true, "set": true, "true": true, "echo": true, "source": true, ".": true, "head": true, "tail": true,
	"tee": true, "wc": true, "less": true, "more": true, "sort": true, "uniq": true, "exit": true, "jq": true}

// Prepares reports whether the program only prepares or filters the work of others.
func (v Invocation) Prepares() bool { return prepares[v.Program] }

// runners are programs that run another one, after the given word if there is one.
var runners = map[string]string{"timeout": "", "nohup": "", "nice": "", "env": "", "stdbuf": "", "xargs": "", "npx": "", "poetry": "run", "uv": "run",
	"pipenv": "run", "bundle": "exec"}

// Runs returns the program that finally runs.
func (v Invocation) Runs() string {
	verb, runs := runners[v.Program]
	for _, w := range v.Operands() {
		switch {
		case !runs:
			return v.Program
		case verb != "":
			runs, verb = w == verb, ""
		case w[0] >= 'a' && w[0] <= 'z' && !strings.Contains(w, "="):
			return program(w)
		}
	}
	return v.Program
}
