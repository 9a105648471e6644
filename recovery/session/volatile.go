package session

import (
	"bytes"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
)

// The names in dates, in lower case.
const (
	weekdays = " monday mon tuesday tues tue wednesday wed thursday thurs thu friday fri saturday sat sunday sun "
	months   = " january jan february feb march mar april apr may june jun july jul august aug september sept sep october oct november nov december dec "
)

// Parts of dates.
const (
	numeric = `(?:\d{4}(?:-\d\d?-|/\d\d?/|\.\d\d?\.)\d\d?|\d\d?(?:-\d\d?-\d\d|/\d\d?/(?:\d\d)?|\.\d\d?\.\d\d)\d\d)`
	clock   = `\d\d?:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d+(?::\d+)?| ?[aApP][mM])?\b`
	day     = `\d\d?(?:[a-z][a-z])?`
	year    = `(?:(?:, ?| )\d{4})?\b`
)

// A date from its first digit on, and what may follow the name of a month.
var (
	date       = recovery.NewPattern(`^(?:(?:` + numeric + `T)?` + clock + `|` + numeric + `\b)`)
	dayMonth   = recovery.NewPattern(`^` + day + ` (?:of )?([A-Za-z]+)` + year)
	afterMonth = recovery.NewPattern(`^(?:\d{4}\b|` + day + year + `)`)
)

const (
	maxDate    = 48      // bytes that are searched from the first digit of a date on
	maxNumbers = 4 << 10 // numbers that are tried; each takes half a microsecond
)

// maskDates replaces each date and time in a text with a zero byte, in place, because clients rebuild system prompts for
// every request and a conversation may continue after midnight. Other numbers stay, since they may distinguish two
// customers.
//
//	2026-11-24   2026/11/24   24.11.2026   11/24/2026   11/24/26   2026-11-24T10:00:00.123+01:00
//	Mon Nov 24 2026   Tuesday, November 24th, 2026   24 Nov 2026   Nov 2026   10:05   10:05:30 PM
func maskDates(text []byte) []byte {
	out, from, numbers := text[:0], 0, 0
	for i := 0; i < len(text) && numbers < maxNumbers; i++ {
		if !isDigit(text[i]) || i > 0 && glued(text[i-1]) {
			continue
		}
		numbers++
		head := string(text[i:min(i+maxDate, len(text))])
		start, end := i, i+len(date.FindString(head))
		if m := dayMonth.FindStringSubmatch(head); m != nil && isName(months, m[1]) {
			end = i + len(m[0])
		}
		if month := nameBefore(text[from:i], months); month > 0 && (end > i || afterMonth.MatchString(head)) {
			start, end = i-month, max(end, i+len(afterMonth.FindString(head)))
		}
		if end > i {
			start -= nameBefore(text[from:start], weekdays)
			out = append(append(out, text[from:start]...), 0)
			from, i = end, end-1
		}
	}
	return append(out, text[from:]...)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// glued reports whether a number after c is a part of something longer.
func glued(c byte) bool {
	return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80 || strings.IndexByte("_.:-/", c) >= 0
}

// nameBefore returns the length of the name that a text ends with, with one full stop or comma and one space behind it,
// or 0 if it ends with none of the names.
func nameBefore(text []byte, names string) int {
	end := bytes.TrimSuffix(text, []byte(" "))
	if n := len(end) - 1; n >= 0 && (end[n] == ',' || end[n] == '.') {
		end = end[:n]
	}
	start := len(end)
	for start > 0 && end[start-1]|0x20 >= 'a' && end[start-1]|0x20 <= 'z' {
		start--
	}
	if word := end[start:]; len(end) == len(text) || len(word) > 9 || !isName(names, string(word)) {
		return 0
	}
	return len(text) - start
}

func isName(names, word string) bool {
	return word != "" && strings.Contains(names, " "+strings.ToLower(word)+" ")
}
