package annotate

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// missing finds the program in the words of shells and of runtimes.
var missing = recovery.NewPattern(`(?i)(?:^|/)env: ['"‘]([\w.+/@-]{1,64})['"’]: No such file|^make(?:\[\d+\])?: ([\w.+-]{1,64}): No such file|([\w.+/@-]{1,64}): (?:command )?not found\b|` +
	`(?:command not found|unknown command|unrecognized command|no such command)[:\s]+['"‘\x60]?([\w.+/@-]{1,64})|` +
	`['"‘\x60]([\w.+/@-]{1,64})['"’\x60]:? (?:is not recognized|executable file not found|command not found)|\bspawn ([\w.+/@-]{1,64}) ENOENT|` +
	`(?:No such file or directory|cannot find the file|failed to (?:run|execute))[^'"‘]{0,40}['"‘]([\w.+/@-]{1,64})['"’]|(?:command|program) ['"‘\x60]([\w.+/@-]{1,64})['"’\x60]`)

// program is the program that failed: the one that the message calls missing,
// else the one of the command line that it names, else the last.
func (s *scene) program() string {
	line := shellHead.ReplaceAllString(s.f.Line, "")
	if m := missing.FindStringSubmatch(line); m != nil {
		named := cmp.Or(m[1:]...)
		for _, v := range s.parts {
			if v.Words[0] == named || v.Program == named {
				return v.Program
			}
		}
		if named != "line" {
			return named
		}
	}
	for _, v := range s.parts {
		if hasWord(line, v.Words[0]) || hasWord(line, v.Program) {
			return v.Program
		}
	}
	for _, v := range slices.Backward(s.parts) {
		if !v.Prepares() {
			return v.Runs()
		}
	}
	return ""
}

// executable is the path of the missing program, as an earlier result printed it.
func (s *scene) executable() (found string) {
	if p := s.unbuilt(); p != "" {
		s.mentions(base(p), func(full string) bool {
			if clean(full) != clean(p) && strings.Contains(full, "/") && s.permitted(full) {
				found = full
			}
			return found == ""
		})
		return found
	}
	s.mentions(s.program(), func(full string) bool {
		if strings.Contains(full, "bin/") && s.permitted(full) {
			found = full
		}
		return found == ""
	})
	return found
}

// ofSystem are the programs of the system, which nobody builds in a project.
var ofSystem = recovery.NewPattern(`^/(?:usr/|opt/|nix/)?(?:s?bin|local|libexec)/`)

// unbuilt is the path of a missing program, where the call has a path.
func (s *scene) unbuilt() string {
	if p := s.program(); strings.Contains(p, "/") && !strings.HasPrefix(p, "@") && !ofSystem.MatchString(p) {
		return p
	}
	return ""
}

// ofBash is what dash and its kin say of what only bash and its kin know.
var ofBash = recovery.NewPattern(`^(?:\S*/)?[\w.+-]{1,64}: \d{1,6}: (?:(\[\[|source|declare|typeset|shopt|pushd|popd|let): not found|(Bad substitution)|` +
	`set: Illegal option (-o pipefail))`)

// bashism is that.
func (s *scene) bashism() string {
	m := ofBash.FindStringSubmatch(s.f.Line)
	switch {
	case m == nil:
		return ""
	case m[2] != "":
		return "such a substitution"
	}
	return quoted(m[1] + m[3])
}

// standIns are the uses of tools that do what programs do.
var standIns = map[string]trajectory.Use{"grep": trajectory.UseSearch, "rg": trajectory.UseSearch, "ag": trajectory.UseSearch, "ack": trajectory.UseSearch, "findstr": trajectory.UseSearch,
	"cat": trajectory.UseRead, "head": trajectory.UseRead, "tail": trajectory.UseRead, "less": trajectory.UseRead, "bat": trajectory.UseRead,
	"ls": trajectory.UseList, "tree": trajectory.UseList, "dir": trajectory.UseList, "curl": trajectory.UseFetch, "wget": trajectory.UseFetch}

// searchers are words in names of tools that search text.
var searchers = []string{"grep", "rg", "ripgrep", "text", "content", "regex", "code"}

// standIn is an offered tool that does what the missing program does.
func (s *scene) standIn() string {
	if s.program() == "find" || s.program() == "fd" {
		if f := s.finder(); f != s.toolFor([]trajectory.Use{trajectory.UseShell}) {
			return f
		}
		return ""
	}
	use := standIns[s.program()]
	if i := slices.IndexFunc(s.tools, func(t trajectory.Tool) bool {
		return use == trajectory.UseSearch && t.Uses&use != 0 && trajectory.AnyOf(trajectory.NameWords(t.Name), searchers)
	}); i >= 0 {
		return quoted(s.tools[i].Name)
	}
	return s.toolFor([]trajectory.Use{use})
}

// alternative is another program that usually does the same.
func (s *scene) alternative() string {
	program := strings.ToLower(s.program())
	if known := cmp.Or(alternatives[program], alternatives[strings.TrimRight(program, "0123456789.")]); !strings.HasPrefix(known, program+" ") { // else the program itself, in another way
		return known
	}
	return ""
}

// meant is the program that a misspelt name is: a usual one, or one that the
// conversation used.
func (s *scene) meant() (best string) {
	program := s.program()
	if len(program) < 3 || alternatives[program] != "" || slices.Contains(usual[:], program) {
		return ""
	}
	least := min(2, trajectory.Slips(program)) + 1
	consider := func(name string) bool {
		d := trajectory.Distance(program, name, least-1)
		same := letters(program) == letters(name)
		closer := len(name) > 2 && name != program && (name[0] == program[0] || same) && d < least && // rake is no slip of make
			(len(program) != len(name) || len(name) > 4 || same) // just is none of jest
		if closer {
			best, least = name, d
		}
		return closer
	}
	for _, name := range usual {
		consider(name)
	}
	for n, c := range s.steps() {
		if n == 60 || best != "" {
			break
		}
		for _, v := range trajectory.Invocations(c.Line()) {
			if s.permitted(v.Program) && s.worked(c) && consider(v.Program) {
				break
			}
		}
	}
	return best
}

// letters is the letters of a name in order.
func letters(name string) string {
	b := []byte(name)
	slices.Sort(b)
	return string(b)
}

// usual are programs whose names are often misspelt.
var usual = [...]string{"python", "python3", "pytest", "pip3", "node", "npm", "npx", "yarn", "pnpm", "docker", "docker-compose", "kubectl", "git", "grep", "find", "sed", "awk",
	"curl", "wget", "make", "cmake", "cargo", "rustc", "java", "javac", "gradle", "bash", "tail", "head", "sort", "mkdir", "touch", "ruff", "mypy", "black", "eslint", "tsc", "jest",
	"terraform", "ansible", "helm", "psql", "mysql", "sqlite3", "redis-cli", "ffmpeg", "which", "tar", "unzip", "gzip", "rsync", "ssh", "scp", "golangci-lint", "gofmt", "mvn", "poetry", "pipenv"}

// alternatives are programs that do what another one does, as far as the usual
// systems have them. None installs or downloads anything.
var alternatives = map[string]string{
	"python": "python3", "python2": "python3", "py": "python3", "python3": "python", "ipython": "python3", "pip": "python3 -m pip", "pip3": "python3 -m pip",
	"pytest": "python3 -m pytest", "ruff": "python3 -m ruff", "black": "python3 -m black", "mypy": "python3 -m mypy", "flake8": "python3 -m flake8", "isort": "python3 -m isort",
	"pylint": "python3 -m pylint", "coverage": "python3 -m coverage", "tox": "python3 -m tox", "poetry": "python3 -m poetry", "pipenv": "python3 -m pipenv",
	"virtualenv": "python3 -m venv", "uvicorn": "python3 -m uvicorn", "flask": "python3 -m flask", "django-admin": "python3 -m django", "jupyter": "python3 -m jupyter",
	"nodejs": "node", "node": "nodejs", "yarn": "npm", "pnpm": "npm", "tsc": "npx --no-install tsc", "ts-node": "npx --no-install ts-node", "tsx": "npx --no-install tsx",
	"eslint": "npx --no-install eslint", "prettier": "npx --no-install prettier", "jest": "npx --no-install jest", "vitest": "npx --no-install vitest",
	"mocha": "npx --no-install mocha", "vite": "npx --no-install vite", "webpack": "npx --no-install webpack", "next": "npx --no-install next",
	"docker-compose": "docker compose", "gradle": "./gradlew", "mvn": "./mvnw", "gmake": "make", "cc": "gcc", "gcc": "cc", "g++": "c++",
	"rg": "grep -rn", "ag": "grep -rn", "ack": "grep -rn", "fd": "find . -name", "fdfind": "find . -name", "bat": "cat", "exa": "ls", "eza": "ls", "tree": "find . -maxdepth 3",
	"jq": "python3 -m json.tool", "xxd": "od -An -tx1", "hexdump": "od -An -tx1", "wget": "curl -fsSLO", "curl": "wget -qO-", "netstat": "ss -tlnp", "ifconfig": "ip addr",
	"dig": "getent hosts", "nslookup": "getent hosts", "host": "getent hosts", "unzip": "python3 -m zipfile -e", "zip": "python3 -m zipfile -c", "sqlite3": "python3 -c 'import sqlite3'",
	"bc": "python3 -c", "gsed": "sed", "ggrep": "grep", "gawk": "awk", "md5": "md5sum", "shasum": "sha256sum", "realpath": "readlink -f", "which": "command -v",
	"where": "command -v", "findstr": "grep", "get-content": "cat", "get-childitem": "ls", "select-string": "grep", "pwsh": "bash", "powershell": "bash", "zsh": "bash",
	"lsof": "ss -tlnp", "nc": "curl -v telnet://HOST:PORT", "shellcheck": "bash -n", "open": "cat", "rsync": "cp -a", "gtimeout": "timeout", "golint": "go vet",
	"golangci-lint": "go vet", "staticcheck": "go vet", "goimports": "gofmt", "rustfmt": "cargo fmt",
}
