package inspect

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Bounds of the arguments that are read as JSON, in bytes and in depth, and of
// those that are searched for words.
const (
	maxCanonical  = 256 << 10
	canonicalDeep = 64
	maxSearched   = 4 << 10
)

// sameCall reports whether both are the same call: same tool, and arguments that
// mean the same. Order of keys, blanks and spelling of JSON do not matter.
func sameCall(a, b *step) bool {
	if a.Tool != b.Tool || a.Arguments == b.Arguments {
		return a.Tool == b.Tool
	}
	if a.texts() && b.texts() {
		return strings.TrimSpace(a.Arguments) == strings.TrimSpace(b.Arguments)
	}
	return a.canonical() == b.canonical()
}

// texts is sortedTexts of the arguments. Where it is so of two calls, they are in
// canonical form.
func (s *step) texts() bool {
	if !s.scanned {
		s.scanned, s.plain = true, sortedTexts(strings.TrimSpace(s.Arguments))
	}
	return s.plain
}

// canonical is the arguments in a form in which equal ones have equal bytes.
func (s *step) canonical() string {
	if !s.sorted {
		s.args, s.sorted = canonical(s.Arguments), true
	}
	return s.args
}

func canonical(arguments string) string {
	t := strings.TrimSpace(arguments)
	if sortedTexts(t) {
		return t[:len(t)-1] + ",}"
	}
	return canonicalJSON(t)
}

func canonicalJSON(t string) string {
	if t == "" || t[0] != '{' && t[0] != '[' || len(t) > maxCanonical || transcript.Valid([]byte(t), canonicalDeep) != nil {
		return t
	}
	return string(appendCanonical(make([]byte, 0, len(t)), gjson.Parse(t)))
}

// sortedTexts reports whether s is an object that is canonical but for the last
// comma, as the arguments of most calls are: names in order and texts, all of ASCII
// without escapes, and no blanks between them.
func sortedTexts(s string) bool {
	if len(s) > maxCanonical || !strings.HasPrefix(s, "{") {
		return false
	}
	for last := ""; ; {
		name, rest, ok := plainText(s[1:])
		if !ok || name <= last || !strings.HasPrefix(rest, ":") {
			return false
		}
		if _, s, ok = plainText(rest[1:]); !ok || s == "" {
			return false
		}
		if s[0] != ',' {
			return s == "}"
		}
		last = name
	}
}

// plainText is the text that s begins with in quotes, and what follows; ok is false
// where it is not written as it is.
func plainText(s string) (text, rest string, ok bool) {
	if s == "" || s[0] != '"' {
		return "", "", false
	}
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return s[1:i], s[i+1:], true
		case c < ' ' || c == '\\' || c >= utf8.RuneSelf:
			return "", "", false
		}
	}
	return "", "", false
}

func appendCanonical(dst []byte, v gjson.Result) []byte {
	switch {
	case v.IsObject():
		type member struct {
			key   string
			value gjson.Result
		}
		var list []member
		v.ForEach(func(key, value gjson.Result) bool {
			list = append(list, member{key.Str, value})
			return true
		})
		slices.SortStableFunc(list, func(a, b member) int { return strings.Compare(a.key, b.key) })
		dst = append(dst, '{')
		for i, m := range list {
			if i+1 < len(list) && list[i+1].key == m.key {
				continue // the last of equal keys counts
			}
			dst = append(transcript.AppendString(dst, m.key), ':')
			dst = append(appendCanonical(dst, m.value), ',')
		}
		return append(dst, '}')
	case v.IsArray():
		dst = append(dst, '[')
		v.ForEach(func(_, value gjson.Result) bool {
			dst = append(appendCanonical(dst, value), ',')
			return true
		})
		return append(dst, ']')
	case v.Type == gjson.String:
		return transcript.AppendString(dst, v.Str)
	case v.Type == gjson.Number && len(v.Raw) <= 15: // no digit is lost
		return strconv.AppendFloat(dst, v.Num, 'g', -1, 64)
	}
	return append(dst, v.Raw...)
}

// waitingWords are names of tools, and programs, that only let time pass.
var waitingWords = []string{"wait", "await", "sleep", "pause", "delay", "start-sleep"}

// waitingArguments are ways to tell a tool to wait.
var waitingArguments = []string{"sleep(", "--wait", "--watch", `"wait`, `"delay`, `"sleep`, `"yield_time`, `"poll_interval`, "settimeout("}

// waits reports whether the call lets time pass: doing it again is patience.
func (s *step) waits() bool {
	for _, w := range recovery.NameWords(s.Tool) {
		if slices.Contains(waitingWords, w) {
			return true
		}
	}
	k := kindOf(s.Tool)
	if k == kindEditor || len(s.Arguments) > maxSearched {
		return false
	}
	low := strings.ToLower(s.Arguments)
	if containsAny(low, waitingArguments) {
		return true
	}
	if !strings.Contains(low, "wait") && !strings.Contains(low, "sleep") {
		return false
	}
	for _, p := range programs(recovery.CommandIn(s.Arguments)) {
		if slices.Contains(waitingWords, p) {
			return true
		}
	}
	return false
}

// gestures are tools that move something on with each call, whatever they answer.
var gestures = []string{"press", "key", "keypress", "click", "scroll", "type", "tap", "swipe", "next", "forward", "back", "send", "stdin", "step"}

// moves reports whether the call is a gesture that was only acknowledged.
func (s *step) moves() bool {
	for _, w := range recovery.NameWords(s.Tool) {
		if slices.Contains(gestures, w) {
			return len(s.essence().text) < 40
		}
	}
	return false
}

// lookups are words with which names of tools begin that only look.
var lookups = []string{"get", "query", "lookup", "look", "describe", "check", "count", "status", "inspect", "explain"}

// reads reports whether the call is known to change nothing.
func (s *step) reads() bool {
	switch kindOf(s.Tool) {
	case kindReader:
		return true
	case kindShell:
		command := recovery.CommandIn(s.Arguments)
		if command == "" {
			return false
		}
		plain := strings.NewReplacer("2>/dev/null", "", "2>&1", "", ">/dev/null", "").Replace(command)
		return onlyReads(programs(command)) && !strings.ContainsAny(plain, ">`") && !strings.Contains(plain, "$(") &&
			!containsAny(plain, []string{" -delete", " -exec", " --in-place", "sed -i", "sed -ni", "|tee", "| tee"})
	case kindOther:
		words := recovery.NameWords(s.Tool)
		return len(words) > 0 && slices.Contains(lookups, words[0])
	}
	return false
}

// lasting are failures that waiting does not help against.
func lasting(c recovery.Category) bool {
	switch c {
	case recovery.CommandNotFound, recovery.ToolNotFound, recovery.PermissionDenied, recovery.InvalidArguments, recovery.SyntaxError, recovery.DiskFull:
		return true
	}
	return false
}

// passing are failures after which a call is tried once more as it is.
func passing(c recovery.Category) bool {
	return c == recovery.NetworkError || c == recovery.ToolRateLimited
}
