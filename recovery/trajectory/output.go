package trajectory

import (
	"strings"
	"unicode"
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
	kept := 0 // everything before it was emitted
	for w := (word{text: text}); w.next(); {
		if !w.isDuration() && !(volatile && w.isVolatile()) {
			continue
		}
		if w.from > kept {
			emit(text[kept:w.from])
		}
		emit("#")
		kept = w.to
	}
	if kept < len(text) {
		emit(text[kept:])
	}
}

// word is a word of a text, with what comes before it.
type word struct {
	text     string
	from, to int
	digits   bool   // it has a digit
	before   string // the word before it in its line, or [ or / if one of them is between the two
	number   int    // of the word in its line, from 1
}

// next moves to the next word.
func (w *word) next() bool {
	text, i := w.text, w.to
	for w.before = text[w.from:i]; i < len(text) && !wordByte(text[i]); i++ {
		switch text[i] {
		case '\n':
			w.before, w.number = "", 0
		case '[', '/':
			w.before = text[i : i+1]
		}
	}
	w.from, w.digits = i, false
	for i < len(text) && (wordByte(text[i]) || (text[i] == '.' || text[i] == ':' && digit(text[i-1])) && i+1 < len(text) && wordByte(text[i+1])) {
		w.digits = w.digits || digit(text[i])
		i++
	}
	w.to = i
	w.number++
	return w.from < i
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
	case "ns", "us", "µs", "ms", "s", "m", "h", "sec", "secs", "second", "seconds", "min", "mins", "minute", "minutes", "millis", "milliseconds":
		return true
	}
	return false
}

// isDuration reports whether the word is a duration: 2.13s, 1m20s, 14 ms, 3.2 seconds.
func (w *word) isDuration() bool {
	if !w.digits {
		return false
	}
	n, u := amount(w.text[w.from:w.to])
	if n == "" {
		return false
	}
	if u == "" { // the unit is the next word
		next := strings.TrimPrefix(w.text[w.to:], " ")
		return unit(strings.ToLower(next[:len(next)-len(strings.TrimLeftFunc(next, unicode.IsLetter))]))
	}
	for u != "" {
		i := 0
		for i < len(u) && !digit(u[i]) {
			i++
		}
		if !unit(u[:i]) {
			return false
		}
		_, u = amount(u[i:])
	}
	return true
}

// isVolatile reports whether the word is a time, an address, an id or a temporary name that differs each time.
func (w *word) isVolatile() bool {
	text, name := w.text, w.text[w.from:w.to]
	if clock(name) {
		if end := digits(text, w.to+1); end > w.to+1 && text[w.to] == ',' { // 10:07:17,723
			w.to = end
		}
		return true
	}
	if temporary(name, text, w.from) || w.digits && isRandomID(name) {
		return true
	}
	n, rest := amount(name)
	if n == "" || rest != "" {
		return false
	}
	if w.from > 1 && text[w.from-2:w.from] == ": " && processEnded(text[w.to:]) {
		return true // bash: line 1: 4711 Segmentation fault
	}
	if w.to < len(text) && text[w.to] == ':' && shellHead(text[:w.from]) {
		return true // bash: line 13128: cd: …
	}
	switch strings.ToLower(w.before) {
	case "pid", "process", "thread", "goroutine", "attempt", "try", "retry", "job", "run", "request", "pgid":
		return true
	case "[": // a process in brackets, as in syslog
		return w.to < len(text) && text[w.to] == ']' && len(n) > 1
	}
	whole := strings.IndexByte(n, '.') < 0
	return len(n) >= 10 && whole || !whole && w.number == 2 && w.afterStep() // a time or an id of ten digits
}

// afterStep reports whether the word follows the number of a build step, as the time at which the step printed does:
// #8 0.153 …
func (w *word) afterStep() bool {
	at := w.from - len(w.before) - 2
	return at >= 0 && w.text[at] == '#' && digits(w.before, 0) == len(w.before)
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
