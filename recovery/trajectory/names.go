package trajectory

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// maxCallArguments limits the arguments that are searched for a command, in bytes.
const maxCallArguments = 16 << 10

// commandNames are the names of arguments that contain a command line.
var commandNames = setOf("command, commands, cmd, script, commandline, command_line, bash_command, shell_command")

// parameter matches an argument in a text protocol's call.
var parameter = recovery.NewPattern(`(?s)<parameter=([\w.-]{1,80})>\s*(.*?)\s*</parameter>`)

// CommandIn returns the command line in a call's arguments, by the argument names of known agents' tools, or "".
// Arguments that are not a JSON object are the command itself, as in text protocols.
func CommandIn(arguments string) string {
	s := strings.TrimSpace(arguments)
	if len(s) > maxCallArguments {
		return ""
	}
	if strings.HasPrefix(s, "<parameter=") {
		for _, m := range parameter.FindAllStringSubmatch(s, 8) {
			if commandNames[m[1]] {
				return m[2]
			}
		}
		return ""
	}
	if !strings.HasPrefix(s, "{") {
		return s
	}
	if transcript.Valid([]byte(s), 32) != nil {
		return ""
	}
	command := ""
	gjson.Parse(s).ForEach(func(key, value gjson.Result) bool {
		if commandNames[strings.ToLower(key.Str)] {
			command = lineOf(key.Str, value)
		}
		return command == ""
	})
	return command
}

// lineOf returns a command line that is given as a text, as a list of words, or as a list of commands.
func lineOf(name string, command gjson.Result) string {
	if !command.IsArray() {
		return command.String()
	}
	var words []string
	command.ForEach(func(_, w gjson.Result) bool { words = append(words, w.String()); return true })
	if strings.EqualFold(name, "commands") {
		return strings.Join(words, "\n")
	}
	if len(words) == 3 && strings.HasPrefix(words[1], "-") && strings.HasSuffix(words[1], "c") {
		return words[2] // bash -lc "…"
	}
	return strings.Join(words, " ")
}

// PathIn returns the file or directory in a call's arguments, by the argument names of known agents' tools, or
// "".
func PathIn(arguments string) (path string) {
	s := strings.TrimSpace(arguments)
	if len(s) > maxCallArguments || !strings.HasPrefix(s, "{") || transcript.Valid([]byte(s), 32) != nil {
		return ""
	}
	gjson.Parse(s).ForEach(func(key, value gjson.Result) bool {
		if value.Type == gjson.String && len(value.Str) <= 1024 && holding[Plain(key.Str)]&HoldsPath != 0 {
			path = value.Str
		}
		return path == ""
	})
	return path
}

// maxNameWords limits the words that NameWords returns.
const maxNameWords = 8

// NameWords returns the lower-case words of a tool's name, at most eight: split at punctuation, digits and
// capitals. Only the first 128 bytes count.
func NameWords(name string) []string {
	out := make([]string, 0, maxNameWords)
	from, prev := 0, byte(0)
	name = name[:min(len(name), 128)]
	cut := func(to int) {
		if to > from && len(out) < maxNameWords {
			out = append(out, strings.ToLower(name[from:to]))
		}
	}
	for i := range len(name) {
		c := name[i]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80
		switch {
		case !letter:
			cut(i)
			from = i + 1
		case capital(c) && (prev >= 'a' && prev <= 'z' || capital(prev) && i+1 < len(name) && name[i+1] >= 'a' && name[i+1] <= 'z'):
			cut(i)
			from = i
		}
		prev = c
	}
	cut(len(name))
	return out
}

func capital(c byte) bool { return c >= 'A' && c <= 'Z' }
