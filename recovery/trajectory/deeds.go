package trajectory

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// altering are the deeds that change something.
const altering = recovery.Installs | recovery.Deletes | recovery.Writes | recovery.Permits | recovery.Publishes

// Deeds returns what the call does, judged by its tool's name and its arguments; a command line is parsed as a
// shell parses it. It parses the arguments on each call.
func (c *Call) Deeds() (out recovery.Deeds) {
	out = deedsOfName(NameWords(c.Tool))
	switch kind := c.Kind(); {
	case c.Line() != "":
		out = DeedsOfLine(c.Line())
	case kind == Shell:
		out |= recovery.Runs
	case kind == Code:
		out |= recovery.Runs | deedsOfText(c.Arguments[:min(len(c.Arguments), maxCallArguments)])
	case kind == Editor && out&recovery.Deletes == 0 && traitsOf(NameWords(c.Tool))&noteWord == 0 && c.writes():
		out |= recovery.Writes
	}
	return out
}

// writes reports whether an editor's call writes: an editor with subcommands may also view.
func (c *Call) writes() bool {
	files := c.Files()
	return len(files) == 0 || slices.ContainsFunc(files, func(f File) bool { return f.Act != Read })
}

// Deeds returns what a call of the tool with these arguments would do, judged by its name, its uses, and each
// argument that is a command line, code or a URL.
func (t *Tool) Deeds(arguments string) recovery.Deeds {
	c := Call{Tool: t.Name, Arguments: arguments}
	out := c.Deeds()
	for use, deed := range map[Use]recovery.Deeds{UseShell: recovery.Runs, UseCode: recovery.Runs, UseFetch: recovery.Reaches} {
		if t.Uses&use != 0 {
			out |= deed
		}
	}
	if len(arguments) > maxCallArguments || !strings.HasPrefix(strings.TrimSpace(arguments), "{") || transcript.Valid([]byte(arguments), 32) != nil {
		return out
	}
	gjson.Parse(arguments).ForEach(func(key, v gjson.Result) bool {
		if i := slices.IndexFunc(t.Params, func(p Parameter) bool { return p.Name == key.Str }); i >= 0 && v.Type == gjson.String {
			switch h := t.Params[i].Holds; {
			case h&HoldsCommand != 0:
				out |= DeedsOfLine(v.Str)
			case h&HoldsURL != 0 && h&HoldsPath == 0:
				out |= recovery.Reaches
			case h&HoldsCode != 0 && t.Uses&UseCode != 0:
				out |= deedsOfText(v.Str)
			}
		}
		return true
	})
	return out
}

// deedsOfName returns the deeds that the words of a tool's name state.
func deedsOfName(words []string) (out recovery.Deeds) {
	for _, w := range words {
		switch w {
		case "delete", "remove", "rm", "unlink", "erase", "purge", "drop", "truncate", "wipe", "destroy":
			out |= recovery.Deletes
		case "install", "uninstall":
			out |= recovery.Installs
		case "sql", "database", "db", "postgres", "mysql", "sqlite", "mongodb", "redis":
			out |= recovery.Queries
		case "fetch", "web", "browser", "http", "url", "download", "websearch", "webfetch", "navigate", "curl", "wget":
			out |= recovery.Reaches
		case "commit", "push", "deploy", "publish", "release", "merge":
			out |= recovery.Publishes
		case "chmod", "chown", "grant", "revoke":
			out |= recovery.Permits
		}
	}
	return out
}

// DeedsOfLine returns what a command line does. An unknown program counts only as run.
func DeedsOfLine(line string) recovery.Deeds {
	out := recovery.Runs
	for _, v := range Invocations(line) {
		out |= v.deeds(0)
	}
	return out
}

// programDeeds is what programs do: always, by their first operand (the first matching entry of verbs counts), and by
// words anywhere in their arguments.
type programDeeds struct {
	programs string
	does     recovery.Deeds
	verbs    []wordDeeds
	words    []wordDeeds
}

// wordDeeds maps any of several space-separated words to deeds.
type wordDeeds struct {
	words string
	does  recovery.Deeds
}

const (
	deletes   = recovery.Deletes | recovery.Writes
	installs  = recovery.Installs | recovery.Reaches | recovery.Writes
	publishes = recovery.Publishes | recovery.Reaches
)

var (
	programTable = []programDeeds{
		{programs: "sudo su doas pkexec runas", does: recovery.Elevates},
		{programs: "rm rmdir unlink shred del rd remove-item", does: deletes},
		{programs: "find fd", words: []wordDeeds{{"-delete rm", deletes}}},
		{programs: "chmod chown chgrp setfacl icacls", does: recovery.Permits},
		{programs: "curl wget ssh scp sftp rsync ftp telnet nc ping dig nslookup host aws gcloud az http invoke-webrequest", does: recovery.Reaches},
		{programs: "gh", does: recovery.Reaches, words: []wordDeeds{{"create merge push publish", recovery.Publishes}}},
		{programs: "tee touch mkdir cp mv ln patch dd install truncate create edit str_replace insert", does: recovery.Writes},
		{programs: "psql mysql mariadb sqlite3 mongosh mongo redis-cli sqlcmd clickhouse-client cqlsh pg_dump pg_restore mysqldump createdb alembic flyway liquibase prisma",
			does: recovery.Queries, words: []wordDeeds{{"flushall FLUSHALL flushdb FLUSHDB", recovery.Deletes}}},
		{programs: "dropdb", does: recovery.Queries | recovery.Deletes},
		{programs: "pip pip3 pipx npm pnpm yarn bun gem cargo go apt apt-get dnf yum apk zypper brew conda mamba poetry composer dotnet winget choco snap opam cabal luarocks " +
			"cpan rustup bundle mix", verbs: []wordDeeds{{"install add i ci get", installs}, {"publish push", publishes}}},
		{programs: "uv", verbs: []wordDeeds{{"publish", publishes}}, words: []wordDeeds{{"install add sync", installs}}},
		{programs: "pacman", words: []wordDeeds{{"-S -Sy -Syu", installs}}},
		{programs: "cpanm", does: installs},
		{programs: "python python3 py node ruby php", words: []wordDeeds{{"migrate flush", recovery.Queries}}},
		{programs: "git", verbs: []wordDeeds{
			{"push", publishes},
			{"clone pull", recovery.Reaches | recovery.Writes},
			{"fetch ls-remote", recovery.Reaches},
			{"commit merge rebase tag cherry-pick", recovery.Publishes | recovery.Writes},
			{"rm clean", deletes},
			{"apply checkout restore reset stash mv revert init", recovery.Writes},
		}},
		{programs: "docker podman kubectl oc helm terraform", words: []wordDeeds{{"prune", recovery.Deletes}}, verbs: []wordDeeds{
			{"rm rmi delete destroy uninstall", recovery.Deletes},
			{"push apply upgrade install deploy", publishes},
			{"pull", recovery.Reaches},
		}},
		{programs: "twine", does: publishes},
	}
	deedsOfProgram = func() map[string]*programDeeds {
		of := map[string]*programDeeds{}
		for _, h := range programTable {
			for p := range strings.FieldsSeq(h.programs) {
				of[p] = &h
			}
		}
		return of
	}()
)

// says reports whether one of its words is among the given ones.
func (w wordDeeds) says(words ...string) bool {
	for one := range strings.FieldsSeq(w.words) {
		if slices.Contains(words, one) {
			return true
		}
	}
	return false
}

// deeds returns what an invocation does according to the habit.
func (h *programDeeds) deeds(v *Invocation) recovery.Deeds {
	out := h.does
	if operands := v.Operands(); len(operands) > 0 {
		if i := slices.IndexFunc(h.verbs, func(w wordDeeds) bool { return w.says(strings.ToLower(operands[0])) }); i >= 0 {
			out |= h.verbs[i].does
		}
	}
	for _, w := range h.words {
		if w.says(v.Words...) {
			out |= w.does
		}
	}
	return out
}

// deeds returns what an invocation does; depth counts the programs that run it.
func (v Invocation) deeds(depth int) (out recovery.Deeds) {
	if len(v.Targets) > 0 {
		out |= recovery.Writes
	}
	program := strings.ToLower(v.Program)
	if h := deedsOfProgram[program]; h != nil {
		out |= h.deeds(&v)
	}
	switch {
	case out&recovery.Queries != 0:
		out |= deedsOfText(strings.Join(v.Words, " ")) & recovery.Deletes
	case program == "yarn" && len(v.Operands()) == 0:
		out |= installs
	case (program == "sed" || program == "perl") && edits(program, v.Words[1:]):
		out |= recovery.Writes
	}
	if interpreters[program] {
		out |= v.interpreted(depth)
	}
	if inner, ok := v.launched(); ok && depth < 4 {
		out |= inner.deeds(depth + 1)
	}
	if i := slices.Index(v.Words, "-c"); i > 0 && i+1 < len(v.Words) && depth < 2 && shells[program] {
		for _, inner := range Invocations(v.Words[i+1]) {
			out |= inner.deeds(depth + 2)
		}
	}
	return out
}

var (
	shells       = setOf("sh, bash, zsh, dash")
	interpreters = setOf("python, python3, py, node, ruby, php")
)

// interpreted returns what an interpreter runs: a module, or code.
func (v *Invocation) interpreted(depth int) (out recovery.Deeds) {
	if i := slices.Index(v.Words, "-m"); i > 0 && i+1 < len(v.Words) && depth < 4 {
		out |= Invocation{Program: v.Words[i+1], Words: v.Words[i+1:]}.deeds(depth + 1)
	}
	if i := slices.IndexFunc(v.Words, func(w string) bool { return w == "-c" || w == "-e" || w == "-r" }); i > 0 && i+1 < len(v.Words) {
		out |= deedsOfText(v.Words[i+1])
	}
	return out
}

// signs are lower-case texts in code and SQL that indicate deeds.
var signs = []struct {
	deed  recovery.Deeds
	texts []string
}{
	{recovery.Deletes, []string{"drop table", "drop database", "delete from", "truncate table", "os.remove", "os.unlink", "shutil.rmtree", "fs.unlink", "fs.rm", ".unlink("}},
	{recovery.Reaches, []string{"requests.", "urllib.request", "http.client", "fetch(", "axios"}},
	{recovery.Writes, []string{", 'w')", `, "w")`, `, \"w\")`, ", 'a')", "write_text(", ".write(", "writefile", "to_csv("}},
	{recovery.Installs, []string{"pip install", "'pip', 'install'"}},
	{recovery.Elevates, []string{"sudo "}},
}

// deedsOfText returns what code or SQL does, roughly.
func deedsOfText(text string) (out recovery.Deeds) {
	text = strings.ToLower(text[:min(len(text), maxCallArguments)])
	for _, s := range signs {
		if slices.ContainsFunc(s.texts, func(t string) bool { return strings.Contains(text, t) }) {
			out |= s.deed
		}
	}
	return out
}

// Changes reports whether the call certainly changes something.
func (c *Call) Changes() bool {
	switch {
	case c.Reads():
		return false
	case c.Deeds()&altering != 0:
		return true
	}
	return c.Kind() == Other && c.Tool != "" && traitsOf(NameWords(c.Tool))&(actWord|noteWord) == actWord
}
