package trajectory

import (
	"path"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// altering are the deeds that change something.
const altering = recovery.Installs | recovery.Deletes | recovery.Writes | recovery.Permits | recovery.Publishes

// Deeds are what the call does, as far as its tool's name and its arguments tell:
// a command line is read as a shell does. It reads the arguments each time.
func (c *Call) Deeds() (out recovery.Deeds) {
	out = deedsOfName(NameWords(c.Tool))
	switch kind := c.Kind(); {
	case c.Line() != "":
		out = DeedsOfLine(c.Line())
		if len(c.Files()) > 0 && kind == Editor {
			out |= recovery.Writes
		}
	case kind == Shell:
		out |= recovery.Runs
	case kind == Code:
		out |= recovery.Runs | deedsOfText(c.Arguments[:min(len(c.Arguments), maxCallArguments)])
	case kind == Editor && out&recovery.Deletes == 0 && traitsOf(NameWords(c.Tool))&noteWord == 0 && c.writes():
		out |= recovery.Writes
	}
	return out
}

// writes reports whether an editor's call does write: one that has commands may view.
func (c *Call) writes() bool {
	files := c.Files()
	return len(files) == 0 || slices.ContainsFunc(files, func(f File) bool { return f.Act != Read })
}

// Deeds are what a call of the tool with these arguments would do: what its name
// and uses tell, and each argument that is a command line, code or an address.
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

// deedsOfName is what the words of a tool's name say.
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

// DeedsOfLine is what a command line does. What is not known does nothing but run.
func DeedsOfLine(line string) recovery.Deeds {
	out := recovery.Runs
	for _, v := range Invocations(line) {
		out |= v.deeds(0)
	}
	return out
}

// through are programs that run what follows their options.
var through = []string{"sudo", "doas", "timeout", "nohup", "nice", "env", "stdbuf", "xargs", "time", "command", "exec"}

func (v Invocation) deeds(depth int) (out recovery.Deeds) {
	if len(v.Targets) > 0 {
		out |= recovery.Writes
	}
	program, verb := strings.ToLower(v.Program), ""
	operands := v.Operands()
	if len(operands) > 0 {
		verb = strings.ToLower(operands[0])
	}
	says := func(words ...string) bool { return slices.Contains(words, verb) }
	has := func(words ...string) bool { return AnyOf(v.Words, words) }
	switch program {
	case "sudo", "su", "doas", "pkexec", "runas":
		out |= recovery.Elevates
	case "rm", "rmdir", "unlink", "shred", "del", "rd", "remove-item":
		out |= recovery.Deletes | recovery.Writes
	case "find", "fd":
		if has("-delete", "rm") {
			out |= recovery.Deletes | recovery.Writes
		}
	case "chmod", "chown", "chgrp", "setfacl", "icacls":
		out |= recovery.Permits
	case "curl", "wget", "ssh", "scp", "sftp", "rsync", "ftp", "telnet", "nc", "ping", "dig", "nslookup", "host", "aws", "gcloud", "az", "gh", "http", "invoke-webrequest":
		out |= recovery.Reaches
		if program == "gh" && has("create", "merge", "push", "publish") {
			out |= recovery.Publishes
		}
	case "tee", "touch", "mkdir", "cp", "mv", "ln", "patch", "dd", "install", "truncate", "create", "edit", "str_replace", "insert":
		out |= recovery.Writes
	case "sed", "perl":
		if slices.ContainsFunc(v.Words[1:], func(w string) bool {
			return w == "--in-place" || len(w) > 1 && w[0] == '-' && w[1] != '-' && strings.Contains(w, "i")
		}) {
			out |= recovery.Writes
		}
	case "psql", "mysql", "mariadb", "sqlite3", "mongosh", "mongo", "redis-cli", "sqlcmd", "clickhouse-client", "cqlsh", "pg_dump", "pg_restore", "mysqldump", "createdb", "dropdb",
		"alembic", "flyway", "liquibase", "prisma":
		out |= recovery.Queries | deedsOfText(strings.Join(v.Words, " "))&recovery.Deletes
		if program == "dropdb" || has("flushall", "FLUSHALL", "flushdb", "FLUSHDB") {
			out |= recovery.Deletes
		}
	case "pip", "pip3", "pipx", "npm", "pnpm", "yarn", "bun", "gem", "cargo", "go", "apt", "apt-get", "dnf", "yum", "apk", "zypper", "brew", "conda", "mamba", "poetry",
		"composer", "dotnet", "winget", "choco", "snap", "opam", "cabal", "luarocks", "cpan", "cpanm", "rustup", "bundle", "uv", "mix", "pacman":
		switch {
		case says("install", "add", "i", "ci", "get") || has("-S", "-Sy", "-Syu") || program == "cpanm", program == "uv" && has("install", "add", "sync"), program == "yarn" && verb == "":
			out |= recovery.Installs | recovery.Reaches | recovery.Writes
		case says("publish", "push"):
			out |= recovery.Publishes | recovery.Reaches
		}
	case "python", "python3", "py", "node", "ruby", "php":
		if i := slices.Index(v.Words, "-m"); i > 0 && i+1 < len(v.Words) && depth < 4 {
			out |= Invocation{Program: v.Words[i+1], Words: v.Words[i+1:]}.deeds(depth + 1)
		}
		if i := slices.IndexFunc(v.Words, func(w string) bool { return w == "-c" || w == "-e" || w == "-r" }); i > 0 && i+1 < len(v.Words) {
			out |= deedsOfText(v.Words[i+1])
		}
		if has("migrate", "flush") {
			out |= recovery.Queries
		}
	case "git":
		switch {
		case says("clone", "pull", "fetch", "push", "ls-remote"):
			out |= recovery.Reaches
			if says("push") {
				out |= recovery.Publishes
			} else if says("clone", "pull") {
				out |= recovery.Writes
			}
		case says("commit", "merge", "rebase", "tag", "cherry-pick"):
			out |= recovery.Publishes | recovery.Writes
		case says("rm", "clean"):
			out |= recovery.Deletes | recovery.Writes
		case says("apply", "checkout", "restore", "reset", "stash", "mv", "revert", "init"):
			out |= recovery.Writes
		}
	case "docker", "podman", "kubectl", "oc", "helm", "terraform":
		switch {
		case says("rm", "rmi", "delete", "destroy", "uninstall") || has("prune"):
			out |= recovery.Deletes
		case says("push", "apply", "upgrade", "install", "deploy"):
			out |= recovery.Publishes | recovery.Reaches
		case says("pull"):
			out |= recovery.Reaches
		}
	case "twine":
		out |= recovery.Publishes | recovery.Reaches
	}
	if slices.Contains(through, program) && depth < 4 {
		for i, w := range v.Words[1:] {
			if w != "" && w[0] != '-' && !strings.Contains(w, "=") && !number(w) {
				out |= Invocation{Program: path.Base("/" + w), Words: v.Words[1+i:]}.deeds(depth + 1)
				break
			}
		}
	}
	if i := slices.Index(v.Words, "-c"); i > 0 && i+1 < len(v.Words) && depth < 2 && shells[program] {
		for _, inner := range Invocations(v.Words[i+1]) {
			out |= inner.deeds(depth + 2)
		}
	}
	return out
}

var shells = map[string]bool{"sh": true, "bash": true, "zsh": true, "dash": true}

// signs are what code and SQL do, by what stands in them in small letters.
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

// deedsOfText is what code or SQL does, roughly.
func deedsOfText(text string) (out recovery.Deeds) {
	text = strings.ToLower(text[:min(len(text), maxCallArguments)])
	for _, s := range signs {
		if slices.ContainsFunc(s.texts, func(t string) bool { return strings.Contains(text, t) }) {
			out |= s.deed
		}
	}
	return out
}

// Changes reports whether the call is known to change something.
func (c *Call) Changes() bool {
	switch {
	case c.Reads():
		return false
	case c.Deeds()&altering != 0:
		return true
	}
	return c.Kind() == Other && c.Tool != "" && traitsOf(NameWords(c.Tool))&(actWord|noteWord) == actWord
}
