package annotate

import (
	"path"
	"strings"

	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// commandOf is the command line in a call's arguments, "" if there is none.
func commandOf(tool, arguments string) string {
	s := strings.TrimSpace(arguments)
	if s == "" || len(s) > maxArguments {
		return ""
	}
	if s[0] != '{' {
		if tool == "" || Kinds(transcript.Tool{Name: tool})&Shell != 0 {
			return s // a text protocol
		}
		return ""
	}
	return trajectory.CommandIn(s)
}

// invocation is one program in a command line.
type invocation struct {
	program string   // base name
	words   []string // with the program as it was written first; quotes removed
	text    string   // as it was written
}

// Bounds of how a command line is read.
const (
	maxInvocations = 16
	maxWords       = 64
	maxCommand     = 8 << 10
)

// invocations reads a command line roughly: quotes are honoured, substitutions
// are not. Assignments before a program are dropped.
func invocations(command string) (out []invocation) {
	command = command[:min(len(command), maxCommand)]
	var (
		words []string
		word  []byte
		began bool
		quote byte
		from  int
	)
	endWord := func() {
		if began && len(words) < maxWords {
			words = append(words, string(word))
		}
		word, began = word[:0], false
	}
	endPart := func(to int) {
		endWord()
		for len(words) > 0 {
			w := words[0]
			if i := strings.IndexByte(w, '='); i > 0 && !strings.ContainsAny(w[:i], "/.-") || w == "time" || w == "command" || w == "then" || w == "do" || w == "env" || w == "(" || w == "{" {
				words = words[1:]
				continue
			}
			break
		}
		if len(words) > 0 && len(out) < maxInvocations {
			out = append(out, invocation{path.Base(strings.TrimSuffix(words[0], ".exe")), words, strings.TrimSpace(command[from:to])})
		}
		words = nil
	}
	for i := 0; i < len(command); i++ {
		c := command[i]
		switch {
		case quote != 0:
			switch {
			case c == quote:
				quote = 0
			case c == '\\' && quote == '"' && i+1 < len(command):
				i++
				word = append(word, command[i])
			default:
				word = append(word, c)
			}
		case c == '\'' || c == '"':
			quote, began = c, true
		case c == '\\' && i+1 < len(command):
			i++
			word, began = append(word, command[i]), true
		case c == ' ' || c == '\t' || c == '\r':
			endWord()
		case c == '|' || c == ';' || c == '\n' || c == '&' && !(i > 0 && command[i-1] == '>') && !(i+1 < len(command) && command[i+1] == '>'):
			endPart(i)
			for i+1 < len(command) && (command[i+1] == '|' || command[i+1] == '&') {
				i++
			}
			from = i + 1
		case c == '>':
			if n := len(word); n == 1 && (word[0] == '1' || word[0] == '2' || word[0] == '&') {
				word, began = append(word, c), true
				break // 2> is one word
			}
			if !strings.HasSuffix(string(word), ">") {
				endWord()
			}
			word, began = append(word, c), true
			if i+1 < len(command) && command[i+1] != '>' && command[i+1] != '&' {
				endWord()
			}
		default:
			word, began = append(word, c), true
		}
	}
	endPart(len(command))
	return out
}

// operands are the words that are neither options nor redirections.
func (v invocation) operands() (out []string) {
	for i := 1; i < len(v.words); i++ {
		w := v.words[i]
		if strings.Contains(w, ">") || w == "<" {
			if strings.HasSuffix(w, ">") || w == "<" {
				i++ // its target
			}
			continue
		}
		if w != "" && (w[0] != '-' || len(w) == 1) {
			out = append(out, w)
		}
	}
	return out
}

// targets are the files that it redirects its output to.
func (v invocation) targets() (out []string) {
	for i, w := range v.words {
		switch {
		case w == ">" || w == ">>" || w == "1>" || w == "1>>" || w == "&>":
			if i+1 < len(v.words) {
				out = append(out, v.words[i+1])
			}
		}
	}
	return out
}

// permitted reports whether a command may be named as a step: none that runs as
// another user or shows a secret, and a risky one only where that is allowed.
func (s *scene) permitted(command string) bool {
	if elevated.MatchString(command) || secret(command) {
		return false
	}
	return s.risky || !dangerous.MatchString(command)
}

func secret(command string) bool {
	low := strings.ToLower(command)
	for _, w := range [...]string{"authorization", "token", "password", "passwd", "secret", "api_key", "apikey", "api-key", "bearer", "credential", "x-auth", ":@"} {
		if strings.Contains(low, w) {
			return true
		}
	}
	return false
}
