package trajectory

import (
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// Limits of a command line that is parsed, in bytes and in open brackets: the parser is recursive, and slow if
// brackets nest deeply. Longer or deeper lines are used unparsed.
const (
	maxLine = 4 << 10
	maxDeep = 24
)

// Command is a parsed shell command line.
type Command struct {
	Programs  []string // the programs in order: without folders, in lower case, with the verb of git, kubectl and similar programs
	Compound  bool     // it has loops or conditions
	Pauses    bool     // it waits
	OnlyReads bool     // apart from waiting it only reads
	Edits     bool     // it writes to a file, or may

	filters uint32 // bit mask of the programs that read another one's output

	line string
	file *syntax.File // nil once the key is computed, and if the line is not parsed
}

// ParseCommand parses a command line. The key of an invalid line is its own text; its program is its first word,
// and it neither pauses nor looks.
func ParseCommand(line string) Command {
	line = strings.TrimSpace(line)
	c := Command{line: line, file: parsed(line)}
	if c.file == nil {
		c.Edits = true
		if first, _, _ := strings.Cut(line, " "); first != "" {
			c.Programs = []string{strings.ToLower(program(first))}
		}
		return c
	}
	syntax.Walk(c.file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.ForClause, *syntax.WhileClause, *syntax.IfClause, *syntax.CaseClause:
			c.Compound = true
		case *syntax.Redirect:
			c.Edits = c.Edits || writes(n)
		case *syntax.CmdSubst, *syntax.ProcSubst, *syntax.FuncDecl:
			c.Edits = true
		}
		return true
	})
	for _, v := range invocations(line, c.file) {
		c.add(v)
	}
	c.OnlyReads = len(c.Programs) > 0 && !c.Edits && !slices.ContainsFunc(c.Programs, func(p string) bool { return !readOnlyPrograms[p] && !pauses[p] })
	return c
}

// add records what one program does.
func (c *Command) add(v Invocation) {
	filters := v.filters
	v = v.innermost()
	args := v.Words[1:]
	c.Pauses = c.Pauses || slices.ContainsFunc(args, func(w string) bool {
		flag, _, _ := strings.Cut(w, "=")
		return waitFlags[flag]
	})
	program := strings.ToLower(v.Program)
	if v.quoted || slices.Contains(launchers, program) || slices.Contains([]string{"cd", "true", "set", "export", ":"}, program) {
		return
	}
	if verb := verbOf(program, args); verb != "" {
		program += " " + verb
	}
	c.Pauses = c.Pauses || pauses[program]
	c.Edits = c.Edits || edits(program, args)
	if filters {
		c.filters |= 1 << len(c.Programs)
	}
	c.Programs = append(c.Programs, program)
}

// Filters reports whether program i of Programs reads the output of another one.
func (c *Command) Filters(i int) bool { return c.filters>>i&1 != 0 }

// Key returns a form of the command that is equal for equivalent commands: without pauses, comments, echoes, and
// numbers of jobs and attempts.
func (c *Command) Key() string {
	if c.file != nil {
		syntax.Walk(c.file, func(n syntax.Node) bool {
			if call, ok := n.(*syntax.CallExpr); ok {
				maskNumbers(call)
			}
			return true
		})
		c.file.Stmts = pruned(c.file.Stmts)
		var b strings.Builder
		p := printers.Get().(*syntax.Printer)
		if p.Print(&b, c.file) == nil {
			c.line = strings.TrimSpace(b.String())
		}
		printers.Put(p)
		c.file = nil
	}
	return c.line
}

// parsers and printers are reused, because each has a buffer.
var (
	parsers  = sync.Pool{New: func() any { return syntax.NewParser(syntax.Variant(syntax.LangBash)) }}
	printers = sync.Pool{New: func() any { return syntax.NewPrinter(syntax.SingleLine(true)) }}
)

// parsed parses a command line; it returns nil for an invalid line, or one beyond the limits.
func parsed(line string) *syntax.File {
	if len(line) > maxLine || deep(line) {
		return nil
	}
	p := parsers.Get().(*syntax.Parser)
	defer parsers.Put(p)
	file, err := p.Parse(strings.NewReader(line), "")
	if err != nil {
		return nil
	}
	return file
}

// deep reports whether brackets may nest more deeply than the limit.
func deep(line string) bool {
	depth, ticks := 0, 0
	for i := range len(line) {
		switch line[i] {
		case '(', '{', '[':
			if depth++; depth > maxDeep {
				return true
			}
		case ')', '}', ']':
			depth = max(depth-1, 0)
		case '`':
			ticks++
		}
	}
	return ticks > 2*maxDeep
}

// writes reports whether a redirection writes to a file.
func writes(r *syntax.Redirect) bool {
	switch r.Op {
	case syntax.RdrOut, syntax.AppOut, syntax.RdrAll, syntax.AppAll, syntax.RdrClob, syntax.RdrInOut:
		return r.Word.Lit() != "/dev/null"
	}
	return false
}

// maskNumbers replaces numbers that do not change what a simple command does by #.
func maskNumbers(n *syntax.CallExpr) {
	for _, a := range n.Assigns {
		if a.Name != nil && a.Value != nil && irrelevantNumber(a.Name.Value) {
			a.Value.Parts = []syntax.WordPart{&syntax.Lit{Value: "#"}}
		}
	}
	waits, before := false, ""
	for _, w := range n.Args {
		lit, masked := w.Lit(), ""
		flag, value, _ := strings.Cut(lit, "=")
		switch {
		case number(lit) && (waits || before == "-j" || strings.HasPrefix(before, "-") && irrelevantNumber(before)):
			masked = "#"
		case number(value) && irrelevantNumber(flag):
			masked = flag + "=#"
		case strings.HasPrefix(lit, "-j") && number(lit[2:]):
			masked = "-j#"
		}
		if masked != "" {
			w.Parts = []syntax.WordPart{&syntax.Lit{Value: masked}}
		}
		waits, before = waits || pauses[name(w)], lit
	}
}

// name returns the program that a word names.
func name(w *syntax.Word) string { return strings.ToLower(program(w.Lit())) }

// verbOf returns the subcommand of a program that has subcommands.
func verbOf(program string, words []string) string {
	if !verbs[program] {
		return ""
	}
	for i := 0; i < len(words); i++ {
		switch w := words[i]; {
		case w == "-C" || w == "-c" || w == "-n" || w == "--namespace" || w == "--context":
			i++
		case w != "" && w[0] != '-':
			verb := strings.ToLower(w)
			if slices.Contains([]string{"compose", "run", "pr", "rollout"}, verb) && i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") {
				verb += " " + strings.ToLower(words[i+1])
			}
			return verb
		}
	}
	return ""
}

// edits reports whether the options make a program change something that otherwise only reads.
func edits(program string, words []string) bool {
	return program == "tee" || slices.ContainsFunc(words, func(w string) bool {
		begins := func(starts ...string) bool {
			return slices.ContainsFunc(starts, func(s string) bool { return strings.HasPrefix(w, s) })
		}
		switch program {
		case "sed", "perl":
			return w == "--in-place" || begins("-") && !begins("--") && strings.Contains(w, "i")
		case "find", "fd":
			return w == "-delete" || w == "-x" || w == "-ok" || begins("-exec")
		case "curl", "wget", "http":
			return w == "-d" || w == "-F" || w == "-T" || begins("--data", "--form", "--upload", "--post") ||
				slices.Contains([]string{"POST", "PUT", "DELETE", "PATCH"}, strings.TrimPrefix(w, "-X"))
		}
		return false
	})
}

// pruned returns the statements without irrelevant ones; if all are irrelevant, it returns all.
func pruned(list []*syntax.Stmt) (out []*syntax.Stmt) {
	for _, s := range list {
		if s = prune(s); s != nil {
			out = append(out, s)
		}
	}
	if out == nil {
		return list // the command does nothing else
	}
	return out
}

// prune returns a statement without irrelevant parts of its && and || chain, or nil if nothing is left.
func prune(s *syntax.Stmt) *syntax.Stmt {
	switch cmd := s.Cmd.(type) {
	case *syntax.BinaryCmd:
		if cmd.Op != syntax.AndStmt && cmd.Op != syntax.OrStmt {
			return s
		}
		x, y := prune(cmd.X), prune(cmd.Y)
		switch {
		case x == nil:
			return y
		case y == nil:
			return x
		}
		cmd.X, cmd.Y = x, y
	case *syntax.CallExpr:
		if len(cmd.Args) > 0 && len(s.Redirs) == 0 && effectless[name(cmd.Args[0])] {
			return nil
		}
	}
	return s
}

// number reports whether a word is a number, possibly with a unit of time.
func number(s string) bool {
	s = strings.TrimRight(s, "smh")
	return s != "" && strings.Trim(s, "0123456789.") == ""
}

// irrelevantNumber reports whether a number with this name does not change what is done: a degree of parallelism, or a
// count of attempts.
func irrelevantNumber(name string) bool {
	for _, w := range NameWords(name) {
		switch w {
		case "jobs", "workers", "threads", "parallel", "parallelism", "attempt", "attempts", "try", "tries", "retry", "retries":
			return true
		}
	}
	return false
}

var (
	// effectless programs have no effect that another call could depend on.
	effectless = map[string]bool{
		"sleep": true, "usleep": true, "echo": true, "printf": true, "true": true, ":": true, "date": true, "clear": true, "wait": true,
		"start-sleep": true,
	}
	// pauses are programs that wait.
	pauses = map[string]bool{
		"sleep": true, "usleep": true, "wait": true, "start-sleep": true, "wait-process": true, "kubectl wait": true, "kubectl rollout status": true,
		"gh run watch": true, "docker wait": true, "inotifywait": true, "wait-for-it": true, "wait-for-it.sh": true, "wait-on": true,
	}
	// waitFlags are options that make programs wait.
	waitFlags = map[string]bool{
		"--wait": true, "--watch": true, "--follow": true,
	}
	// verbs are programs with subcommands.
	verbs = map[string]bool{
		"git": true, "docker": true, "kubectl": true, "go": true, "gh": true, "systemctl": true, "podman": true, "helm": true, "aws": true, "gcloud": true,
		"az": true, "oc": true, "docker-compose": true, "redis-cli": true, "mysqladmin": true, "service": true, "pm2": true, "supervisorctl": true,
		"nomad": true, "flyctl": true, "vercel": true, "heroku": true,
	}
	// readOnlyPrograms are programs that only read and print.
	readOnlyPrograms = map[string]bool{
		"cat": true, "head": true, "tail": true, "sed": true, "awk": true, "grep": true, "egrep": true, "fgrep": true, "rg": true, "ag": true, "ack": true,
		"less": true, "more": true, "ls": true, "find": true, "fd": true, "tree": true, "echo": true, "printf": true, "man": true, "jq": true, "yq": true,
		"nl": true, "wc": true, "cut": true, "sort": true, "uniq": true, "strings": true, "xxd": true, "hexdump": true, "bat": true, "type": true,
		"dir": true, "get-content": true, "gc": true, "select-string": true, "get-childitem": true, "tr": true, "zcat": true, "journalctl": true,
		"dmesg": true, "diff": true, "pgrep": true, "test": true, "[": true, "cmp": true, "which": true, "apropos": true, "date": true, "ps": true,
		"top": true, "lsof": true, "ss": true, "netstat": true, "nc": true, "ping": true, "pg_isready": true, "nslookup": true, "dig": true, "host": true,
		"stat": true, "file": true, "du": true, "df": true, "uptime": true, "free": true, "id": true, "whoami": true, "pwd": true, "env": true,
		"nvidia-smi": true, "squeue": true, "sacct": true, "curl": true, "wget": true, "http": true, "break": true, "continue": true, "exit": true,
		"jobs": true, "basename": true, "dirname": true, "git log": true, "git show": true, "git diff": true, "git grep": true, "git blame": true,
		"git status": true, "git branch": true, "git rev-parse": true, "git ls-files": true, "docker logs": true, "docker ps": true,
		"docker inspect": true, "docker wait": true, "docker compose ps": true, "docker compose logs": true, "docker-compose ps": true,
		"docker-compose logs": true, "podman ps": true, "podman logs": true, "kubectl logs": true, "kubectl get": true, "kubectl describe": true,
		"kubectl wait": true, "kubectl rollout status": true, "kubectl top": true, "oc get": true, "oc logs": true, "oc describe": true, "go doc": true,
		"gh run view": true, "gh run watch": true, "gh run list": true, "gh pr checks": true, "gh pr view": true, "systemctl status": true,
		"systemctl is-active": true, "service status": true, "helm status": true, "redis-cli ping": true, "mysqladmin ping": true, "pm2 status": true,
		"pm2 list": true, "supervisorctl status": true, "open": true, "goto": true, "scroll_down": true, "scroll_up": true, "search_file": true,
		"search_dir": true, "find_file": true,
	}
)
