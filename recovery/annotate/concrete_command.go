package annotate

import (
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// missing finds the program in the words of shells and of runtimes.
var missing = recovery.NewPattern(`(?i)([\w.+/@-]{1,64}): (?:command )?not found\b|(?:command not found|unknown command|unrecognized command|no such command)[:\s]+['"‘\x60]?([\w.+/@-]{1,64})|['"‘\x60]([\w.+/@-]{1,64})['"’\x60]:? (?:is not recognized|executable file not found|command not found)|\bspawn ([\w.+/@-]{1,64}) ENOENT|(?:No such file or directory|cannot find the file|failed to (?:run|execute))[^'"‘]{0,40}['"‘]([\w.+/@-]{1,64})['"’]|(?:command|program) ['"‘\x60]([\w.+/@-]{1,64})['"’\x60]`)

// program is the program that failed: the one of the call's command line that
// the message names, else the one that the message calls missing, else the last.
func (s *scene) program() string {
	list := invocations(s.command)
	line := s.f.Line
	named := ""
	if m := missing.FindStringSubmatch(line); m != nil {
		for _, g := range m[1:] {
			if g != "" {
				named = g
				break
			}
		}
	}
	for _, v := range list {
		if v.words[0] == named || v.program == named {
			return v.program
		}
	}
	if named != "" && named != "line" {
		return named
	}
	for _, v := range list {
		if hasWord(line, v.words[0]) || hasWord(line, v.program) {
			return v.program
		}
	}
	for _, v := range slices.Backward(list) {
		if !aside[v.program] {
			return v.runs()
		}
	}
	return ""
}

// aside are programs that only prepare or filter what others do.
var aside = map[string]bool{"cd": true, "export": true, "set": true, "true": true, "echo": true, "source": true, ".": true, "head": true, "tail": true, "tee": true, "wc": true,
	"less": true, "more": true, "sort": true, "uniq": true, "exit": true, "jq": true}

// runs is the program that an invocation runs in the end.
func (v invocation) runs() string {
	switch v.program {
	case "timeout", "nohup", "nice", "env", "stdbuf", "xargs", "npx", "poetry", "uv", "pipenv":
		for _, w := range v.operands() {
			if w[0] >= 'a' && w[0] <= 'z' && w != "run" && w != "exec" && !strings.Contains(w, "=") {
				return base(w)
			}
		}
	}
	return v.program
}

// hasWord reports whether a text has a word, with something else on both sides.
func hasWord(text, word string) bool {
	if word == "" {
		return false
	}
	for from := 0; ; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return false
		}
		i += from
		if (i == 0 || !isWord(text[i-1])) && (i+len(word) == len(text) || !isWord(text[i+len(word)])) {
			return true
		}
		from = i + 1
	}
}

func isWord(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

func (s *scene) commandValue(name slot) string {
	program := s.program()
	if program == "" {
		return ""
	}
	switch name {
	case slotMeant:
		return quoted(s.meant(program))
	case slotExecutable:
		found := ""
		s.mentions(program, func(full string) bool {
			if strings.Contains(full, "bin/") && s.permitted(full) {
				found = full
			}
			return found == ""
		})
		return quoted(found)
	case slotWorked:
		return quoted(s.workedLike(program))
	}
	known := alternatives[strings.ToLower(program)]
	if i := strings.IndexByte(known, ' '); i >= 0 && strings.EqualFold(known[:i], program) {
		return "" // the program itself, in another way
	}
	return quoted(known)
}

// workedLike is an earlier command with a program that does what the missing
// one does, and that did not fail. It is bounded, and never one that steps may
// not name.
func (s *scene) workedLike(program string) (found string) {
	var like []string
	if alt, ok := alternatives[strings.ToLower(program)]; ok {
		like = append(like, strings.Fields(alt)[0])
	}
	stem := strings.TrimRight(program, "0123456789.")
	if len(stem) < 2 {
		return ""
	}
	if len(like) == 0 {
		like = append(like, stem)
	}
	for _, needle := range slices.Compact(append(like, stem)) {
		s.calls(needle, func(c call) bool {
			for _, v := range invocations(c.command) {
				same := v.program != program && (v.program == needle || strings.TrimRight(v.program, "0123456789.") == stem)
				if same && len(v.text) <= maxQuoted && s.permitted(v.text) && s.worked(c) {
					found = v.text
					return false
				}
			}
			return true
		})
		if found != "" {
			return found
		}
	}
	return ""
}

// meant is the program that a misspelt name is: one that the conversation used,
// or a usual one.
func (s *scene) meant(program string) string {
	if len(program) < 3 || alternatives[program] != "" {
		return ""
	}
	best, least := "", min(2, trajectory.Slips(program))+1
	consider := func(name string) {
		if len(name) < 3 || name == program {
			return
		}
		if d := trajectory.Distance(program, name, least-1); d < least {
			best, least = name, d
		}
	}
	for _, name := range usual {
		consider(name)
	}
	if best == "" {
		n := 0
		s.calls("", func(c call) bool {
			for _, v := range invocations(c.command) {
				if v.program != program && trajectory.Distance(program, v.program, least-1) < least && s.permitted(v.program) && s.worked(c) {
					consider(v.program)
				}
			}
			n++
			return n < 60
		})
	}
	return best
}

// usual are programs whose names are often misspelt.
var usual = [...]string{"python", "python3", "pytest", "pip3", "node", "npm", "npx", "yarn", "pnpm", "docker", "docker-compose", "kubectl", "git", "grep", "find", "sed", "awk",
	"curl", "wget", "make", "cmake", "cargo", "rustc", "java", "javac", "gradle", "bash", "tail", "head", "sort", "mkdir", "touch", "ruff", "mypy", "black", "eslint", "tsc", "jest",
	"terraform", "ansible", "helm", "psql", "mysql", "sqlite3", "redis-cli", "ffmpeg", "tar", "unzip", "gzip", "rsync", "ssh", "scp", "golangci-lint", "gofmt", "mvn", "poetry", "pipenv"}

// alternatives are programs that do what another one does, as far as the usual
// systems have them. None installs or downloads anything.
var alternatives = map[string]string{
	"python": "python3", "python2": "python3", "py": "python3", "python3": "python", "ipython": "python3", "pip": "python3 -m pip", "pip3": "python3 -m pip",
	"pytest": "python3 -m pytest", "py.test": "python3 -m pytest", "ruff": "python3 -m ruff", "black": "python3 -m black", "mypy": "python3 -m mypy",
	"flake8": "python3 -m flake8", "isort": "python3 -m isort", "pylint": "python3 -m pylint", "coverage": "python3 -m coverage", "tox": "python3 -m tox",
	"poetry": "python3 -m poetry", "pipenv": "python3 -m pipenv", "virtualenv": "python3 -m venv", "uvicorn": "python3 -m uvicorn", "gunicorn": "python3 -m gunicorn",
	"flask": "python3 -m flask", "django-admin": "python3 -m django", "sphinx-build": "python3 -m sphinx", "jupyter": "python3 -m jupyter",
	"nodejs": "node", "node": "nodejs", "bun": "node", "deno": "node", "yarn": "npm run", "pnpm": "npm run", "tsc": "npx --no-install tsc", "ts-node": "npx --no-install ts-node",
	"tsx": "npx --no-install tsx", "eslint": "npx --no-install eslint", "prettier": "npx --no-install prettier", "jest": "npx --no-install jest", "vitest": "npx --no-install vitest",
	"mocha": "npx --no-install mocha", "vite": "npx --no-install vite", "webpack": "npx --no-install webpack", "biome": "npx --no-install biome", "next": "npx --no-install next",
	"docker-compose": "docker compose", "gradle": "./gradlew", "mvn": "./mvnw", "gmake": "make", "cc": "gcc", "gcc": "cc", "g++": "c++", "clang": "cc",
	"rg": "grep -rn", "ag": "grep -rn", "ack": "grep -rn", "fd": "find . -name", "fdfind": "find . -name", "bat": "cat", "batcat": "cat", "exa": "ls", "eza": "ls", "lsd": "ls",
	"tree": "find . -maxdepth 3", "jq": "python3 -m json.tool", "yq": "python3", "xxd": "od -An -tx1", "hexdump": "od -An -tx1", "hd": "od -An -tx1", "strings": "grep -a",
	"wget": "curl -fsSLO", "curl": "wget -qO-", "http": "curl -sS", "httpie": "curl -sS", "nc": "curl -v telnet:", "netstat": "ss -tlnp", "ifconfig": "ip addr", "route": "ip route",
	"dig": "getent hosts", "nslookup": "getent hosts", "host": "getent hosts", "traceroute": "tracepath", "telnet": "curl -v telnet:",
	"unzip": "python3 -m zipfile -e", "zip": "python3 -m zipfile -c", "sqlite3": "python3 -c 'import sqlite3'", "bc": "python3 -c", "gsed": "sed", "ggrep": "grep", "gawk": "awk",
	"awk": "sed", "md5": "md5sum", "md5sum": "openssl md5", "shasum": "sha256sum", "sha256sum": "openssl sha256", "realpath": "readlink -f", "which": "command -v", "whereis": "command -v",
	"less": "cat", "more": "cat", "file": "head -c 64", "ll": "ls -l", "la": "ls -la", "l": "ls -l", "dir": "ls", "cls": "clear", "type": "cat", "copy": "cp", "move": "mv", "ren": "mv",
	"where": "command -v", "findstr": "grep", "get-content": "cat", "get-childitem": "ls", "select-string": "grep", "pwsh": "bash", "powershell": "bash", "zsh": "bash", "fish": "bash", "bash": "sh",
	"pbcopy": "cat", "open": "cat", "vim": "cat", "vi": "cat", "nvim": "cat", "nano": "cat", "gh": "git", "hub": "git", "hg": "git", "rsync": "cp -r", "locate": "find", "pgrep": "ps aux", "htop": "top -b -n 1",
	"lsof": "ss -tlnp", "timeout": "python3", "gtimeout": "timeout", "watch": "sh -c", "perl": "python3", "ruby": "python3", "php": "python3", "go-test": "go test",
	"golint": "go vet", "golangci-lint": "go vet", "staticcheck": "go vet", "goimports": "gofmt", "rustfmt": "cargo fmt", "clippy": "cargo clippy", "convert": "magick", "magick": "convert",
}
