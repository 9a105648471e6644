package inspect

import (
	"bytes"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
)

// essence is what a result says, without the wrappers of agents.
type essence struct {
	text   string // head and tail of a large one
	middle string // what is between them, as it came
	media  string // marks of images and the like
}

func (s *step) essence() *essence {
	if !s.read {
		s.open()
	}
	return &s.said
}

// look is essence with the message's images.
func (h *history) look(s *step) *essence {
	e := s.essence()
	if e.media == "" {
		e.media = "-" + string(h.list[s.Index].AppendMedia(nil))
	}
	return e
}

// sameResult reports whether two results of the same call say the same. Of
// successes all must be equal but the time that something took; of errors what
// differs each time does not count. A known failure is its line; of another kind
// of failure the whole text counts, so that six failing tests are not five.
func (h *history) sameResult(a, b *step) bool {
	x, y := h.look(a), h.look(b)
	if x.media != y.media {
		return false
	}
	if a.content() == b.content() {
		return true
	}
	f, g, failed := a.judge(), b.judge(), a.wrong()
	if f.Failed != g.Failed || failed != b.wrong() {
		return false
	}
	if f.Failed && f.Category != recovery.CategoryNone && f.Fingerprint == g.Fingerprint {
		return true
	}
	if x.text == y.text && x.middle == y.middle {
		return true
	}
	if !f.Failed && underWay(x.text) || !failed && x.middle != y.middle {
		return false
	}
	return masked(x.text, failed) == masked(y.text, failed)
}

// complaint is a word of what a program prints that did not succeed.
var complaint = recovery.NewPattern(`(?i)\b(?:error|errors|fatal|panic|exception|undefined|unresolved|refused|cannot|[1-9]\d* (?:failed|failures?|errors?))\b|\bFAIL(?:ED|URE)?\b`)

// wrong reports whether the result is a failure, or reads like one where nothing
// tells how the call ended, as in text protocols without exit codes.
func (s *step) wrong() bool {
	if f := s.judge(); f.Failed || f.Rule != "success" || s.reads() {
		return f.Failed
	}
	text := s.essence().text
	return len(text) < headWindow && complaint.MatchString(text)
}

// progressWords are in the results of polls.
var progressWords = []string{"running", "pending", "queued", "in_progress", "in progress", "waiting", "elapsed", "building", "deploying", "processing", "starting", "provisioning"}

// underWay reports whether a short result tells of something that goes on by
// itself: asking again is polling.
func underWay(text string) bool {
	return len(text) < 1000 && containsAny(strings.ToLower(text), progressWords)
}

// nothing are beginnings of results that say that there is nothing.
var nothing = []string{"no matches", "no match", "no files", "no results", "no result", "nothing found", "not found", "none found", "0 results",
	"0 matches", "(no output", "no output", "no entries", "no such", "found 0", "no references", "no symbols", "no content", "empty", "(empty"}

// trivial reports whether a result brings nothing.
func trivial(text string) bool {
	if len(text) > 160 {
		return false
	}
	low := strings.ToLower(strings.Trim(text, " \t\r\n.\"'"))
	switch low {
	case "", "[]", "{}", "null", "none", "0":
		return true
	}
	for _, p := range nothing {
		if strings.HasPrefix(low, p) {
			return true
		}
	}
	return low[0] == '{' && (strings.Contains(low, ":[]") || strings.Contains(low, ": []"))
}

// masked replaces what differs each time something happens. In errors: times,
// durations, ids, addresses, temporary names, numbers that count nothing. What
// counts (3 failed, 40 %) stays. Otherwise only fractions of seconds.
func masked(text string, all bool) string {
	out := make([]byte, 0, len(text))
	var before string // the word before
	for i := 0; i < len(text); {
		c := text[i]
		if !wordByte(c) {
			if out = append(out, c); c == '\n' || c == '[' {
				before = string(c)
			}
			i++
			continue
		}
		from := i
		for i < len(text) && (wordByte(text[i]) || text[i] == '.' && i+1 < len(text) && wordByte(text[i+1]) || all && text[i] == ':' && i+1 < len(text) && digit(text[i+1]) && digit(text[i-1])) {
			i++
		}
		word := text[from:i]
		switch {
		case !strings.ContainsAny(word, "0123456789") && !(all && strings.HasPrefix(word, "tmp") && len(word) > 6):
			out = append(out, word...)
		case duration(word, text[i:]), all && volatileWord(word, before, text[i:]):
			out = append(out, '#')
		default:
			out = append(out, word...)
		}
		before = word
	}
	return string(out)
}

func digit(c byte) bool { return c-'0' < 10 }

func wordByte(c byte) bool {
	return digit(c) || c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c == '-' || c >= 0x80
}

// number is the beginning of a word that is a number, and the rest.
func number(word string) (n, rest string) {
	i := 0
	for i < len(word) && (digit(word[i]) || word[i] == '.') {
		i++
	}
	return word[:i], word[i:]
}

// unit reports whether s begins with a unit of time that is a word.
func unit(s string) bool {
	i := 0
	for i < len(s) && (s[i]|0x20 >= 'a' && s[i]|0x20 <= 'z' || s[i] >= 0x80) {
		i++
	}
	switch strings.ToLower(s[:i]) {
	case "ns", "µs", "us", "ms", "s", "sec", "secs", "second", "seconds", "m", "min", "mins", "minutes", "milliseconds":
		return true
	}
	return false
}

// duration reports whether the word is a time with a fraction, or in units below a second.
func duration(word, rest string) bool {
	n, u := number(word)
	if n == "" {
		return false
	}
	if u == "" {
		u = strings.TrimPrefix(rest, " ")
	}
	return unit(u) && (strings.IndexByte(n, '.') > 0 || strings.HasPrefix(u, "ms") || strings.HasPrefix(u, "us") || strings.HasPrefix(u, "µs") || strings.HasPrefix(u, "ns"))
}

// volatileWord reports whether a word with a digit is a time, an id, or a number
// that counts nothing.
func volatileWord(word, before, rest string) bool {
	n, u := number(word)
	if u == "" {
		if len(n) > 3 || before == "[" && strings.HasPrefix(rest, "]") || unit(strings.TrimPrefix(rest, " ")) {
			return true
		}
		switch strings.ToLower(before) {
		case "pid", "goroutine", "thread", "process", "port", "line", "attempt", "try", "retry", "job":
			return true
		}
		return false
	}
	return unit(u) || len(word) >= 6 || strings.HasPrefix(word, "tmp") || strings.HasPrefix(word, "0x")
}

// contains is bytes.Contains; an empty probe is contained in all.
func contains(raw, probe []byte) bool { return len(probe) == 0 || bytes.Contains(raw, probe) }
