package trajectory

import (
	"strings"
)

// hasher is FNV-1a, which is equal in every process.
type hasher uint64

const (
	hashOffset = 14695981039346656037
	hashPrime  = 1099511628211
)

func (h *hasher) text(s string) {
	sum := uint64(*h)
	for i := range len(s) {
		sum = (sum ^ uint64(s[i])) * hashPrime
	}
	*h = hasher(sum)
}

// Hash returns a hash of texts, including their lengths. It is never 0 and equal in every process.
func Hash(parts ...string) uint64 {
	h := hasher(hashOffset)
	for _, p := range parts {
		sum := uint64(h)
		for n := len(p); ; n >>= 8 {
			sum = (sum ^ uint64(n&0xff)) * hashPrime
			if n < 256 {
				break
			}
		}
		h = hasher(sum)
		h.text(p)
	}
	return max(uint64(h), 1)
}

// Outcome returns a hash of a tool's result, never 0, that is equal for equivalent results: durations do not
// count, and with volatile neither do times, dates, addresses, random ids, process ids, line numbers of a shell
// and names of temporary files. Everything else counts: another file, another line of it, another count, another
// text. It takes time linear in the text.
func Outcome(text string, volatile bool) uint64 {
	h := hasher(hashOffset)
	words(text, volatile, h.text)
	return max(uint64(h), 1)
}

// WithoutVolatile returns the text that Outcome hashes.
func WithoutVolatile(text string, volatile bool) string {
	var b strings.Builder
	words(text, volatile, func(s string) { b.WriteString(s) })
	return b.String()
}

// words calls emit with the parts of a text, and with # for each part that does not count.
func words(text string, volatile bool, emit func(string)) {
	before, line := "", 0 // the previous word, and the number of words of the line so far
	kept := 0             // everything before it was emitted
	flush := func(to int) {
		if to > kept {
			emit(text[kept:to])
		}
	}
	for i := 0; i < len(text); {
		if c := text[i]; !wordByte(c) {
			if c == '\n' {
				before, line = "", 0
			} else if c == '[' || c == '/' {
				before = text[i : i+1]
			}
			i++
			continue
		}
		from := i
		digits := false
		for i < len(text) && (wordByte(text[i]) || (text[i] == '.' || text[i] == ':' && digit(text[i-1])) && i+1 < len(text) && wordByte(text[i+1])) {
			digits = digits || digit(text[i])
			i++
		}
		word := text[from:i]
		if volatile && clock(word) && i+1 < len(text) && text[i] == ',' && digit(text[i+1]) { // 10:07:17,723
			for i++; i < len(text) && digit(text[i]); i++ {
			}
			word = text[from:i]
		}
		line++
		if digits && (duration(word, text[i:]) || volatile && isVolatile(word, before, line, text, from, i)) || volatile && temporary(word, text, from) {
			flush(from)
			emit("#")
			kept = i
		}
		before = word
	}
	flush(len(text))
}

func wordByte(c byte) bool {
	return digit(c) || c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c == '-' || c >= 0x80
}

// amount splits a word into the number that it begins with, and the rest.
func amount(word string) (n, rest string) {
	i := 0
	for i < len(word) && (digit(word[i]) || word[i] == '.') {
		i++
	}
	return word[:i], word[i:]
}

// unit reports whether s is a unit of time.
func unit(s string) bool {
	switch s {
	case "ns", "us", "µs", "ms", "s", "m", "h", "sec", "secs", "min", "mins":
		return true
	}
	return false
}

func unitWord(s string) bool {
	s = strings.TrimPrefix(s, " ")
	i := 0
	for i < len(s) && s[i]|0x20 >= 'a' && s[i]|0x20 <= 'z' {
		i++
	}
	switch strings.ToLower(s[:i]) {
	case "ns", "us", "ms", "s", "sec", "secs", "second", "seconds", "min", "mins", "minute", "minutes", "millis", "milliseconds":
		return true
	}
	return false
}

// duration reports whether the word is a duration: 2.13s, 1m20s, 14 ms, 3.2 seconds.
func duration(word, rest string) bool {
	n, u := amount(word)
	if n == "" {
		return false
	}
	if u == "" {
		return unitWord(rest)
	}
	for u != "" {
		i := 0
		for i < len(u) && !digit(u[i]) {
			i++
		}
		if !unit(u[:i]) {
			return false
		}
		if n, u = amount(u[i:]); n == "" && u != "" {
			return false
		}
	}
	return true
}

// isVolatile reports whether a word with a digit is a time, an address or an id that differs each time.
func isVolatile(word, before string, line int, text string, from, to int) bool {
	switch {
	case clock(word), isRandomID(word):
		return true
	}
	n, rest := amount(word)
	if rest != "" {
		return false
	}
	if from > 1 && text[from-2:from] == ": " && processEnded(text[to:]) {
		return true // bash: line 1: 4711 Segmentation fault
	}
	if to < len(text) && text[to] == ':' && shellHead(text[:from]) {
		return true // bash: line 13128: cd: …
	}
	switch strings.ToLower(before) {
	case "pid", "process", "thread", "goroutine", "attempt", "try", "retry", "job", "run", "request", "pgid":
		return true
	case "[": // a process in brackets, as in syslog
		return to < len(text) && text[to] == ']' && len(n) > 1
	}
	// A number of ten digits is a time or an id; a fraction after "#8" is the time at which a build step printed.
	return len(n) >= 10 && strings.IndexByte(n, '.') < 0 ||
		line == 2 && strings.IndexByte(n, '.') > 0 && len(before)+2 <= from && text[from-2-len(before)] == '#' && strings.Trim(before, "0123456789") == ""
}

// shellHead reports whether a text ends with what a shell puts before the number of its input line. In a script
// that is a position; in a shell it counts commands.
func shellHead(text string) bool {
	head := text[strings.LastIndexByte(text, '\n')+1:]
	head, _ = strings.CutSuffix(head, "line ")
	head, ok := strings.CutSuffix(head, ": ")
	if !ok {
		head, ok = strings.CutSuffix(head, ":") // (eval):1:
	}
	name := strings.TrimPrefix(head[strings.LastIndexByte(head, '/')+1:], "-")
	switch name {
	case "sh", "bash", "zsh", "dash", "ksh", "ash", "fish", "(eval)":
		return ok
	}
	return false
}

// processEnded reports whether a text begins with a shell's message about the end of a process, after its number.
func processEnded(text string) bool {
	text = strings.TrimLeft(text, " ")
	for _, end := range []string{"Segmentation fault", "Killed", "Aborted", "Terminated", "Bus error", "Floating point exception", "Illegal instruction", "Trace/breakpoint trap"} {
		if strings.HasPrefix(text, end) {
			return true
		}
	}
	return false
}

// clock reports whether a word is a date or a time of day, or begins with a date.
func clock(word string) bool {
	shape := func(form string) bool {
		if len(word) < len(form) {
			return false
		}
		for i := range len(form) {
			if form[i] == '0' && !digit(word[i]) || form[i] != '0' && word[i]|0x20 != form[i]|0x20 {
				return false
			}
		}
		return true
	}
	return shape("0000-00-00") || shape("00:00:00") || len(word) == 7 && shape("0:00:00")
}

// isRandomID reports whether a word is a memory address, a hash, or a random id.
func isRandomID(word string) bool {
	ofRequest := strings.HasPrefix(word, "req_")                // may consist of digits only
	if i := strings.LastIndexByte(word, '_'); i >= 0 && i < 8 { // req_…, chatcmpl_…
		word = word[i+1:]
	}
	if strings.HasPrefix(word, "0x") || strings.HasPrefix(word, "0X") {
		return true
	}
	digits, letters := 0, 0
	for i := range len(word) {
		switch c := word[i]; {
		case digit(c):
			digits++
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			letters++
		case c == '-' && len(word) == 36:
		default:
			return false
		}
	}
	return digits > 0 && (letters > 0 || ofRequest) && len(word) >= 7
}

// temporary reports whether a word is the name of a temporary file, or a part of one.
func temporary(word string, text string, from int) bool {
	if strings.HasPrefix(word, "tmp") && len(word) > 6 {
		return true
	}
	if from == 0 || text[from-1] != '/' || !strings.ContainsAny(word, "0123456789") {
		return false
	}
	dir := text[max(0, from-32):from]
	return strings.HasSuffix(dir, "/tmp/") || strings.Contains(dir, "/pytest-of-") || strings.HasSuffix(dir, "/T/")
}
