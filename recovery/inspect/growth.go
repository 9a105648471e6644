package inspect

import (
	"slices"
	"strconv"

	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// growth describes which numbers grew from one call to the next.
type growth struct {
	rules  *lists
	before string // the text before the first number that grew
	by     []float64
}

// maxGrowing limits how many numbers may grow: a range has two.
const maxGrowing = 2

// growthOf compares two arguments that differ only in higher numbers. Numbers in names do not count, nor do
// dates and times, because those pass anyway.
func (l *lists) growthOf(a, b string) (g growth, ok bool) {
	g.rules = l
	same := trajectory.CompareNumbers(a, b, func(i int, x, y string) bool {
		d := value(y) - value(x)
		if !(d > 0) || len(g.by) == maxGrowing || i > 0 && letter(a[i-1]) || dotted(a, i, i+len(x)) || dated(a, i, i+len(x)) || epoch(value(x)) {
			return false
		}
		if g.by == nil {
			g.before = a[:i]
		}
		g.by = append(g.by, d)
		return true
	})
	return g, same && g.by != nil
}

// explains reports whether two texts differ only in volatile parts and in numbers that grew as much as the
// calls' numbers.
func (g *growth) explains(a, b string) bool {
	return trajectory.CompareNumbers(trajectory.WithoutVolatile(a, true), trajectory.WithoutVolatile(b, true), func(_ int, x, y string) bool { return slices.Contains(g.by, value(y)-value(x)) })
}

// pages reports whether the number is one that pages through lists and files.
func (g *growth) pages() bool {
	return g.named("pages")
}

// part reports whether the number selects a part or an amount.
func (g *growth) part() bool {
	return g.pages() || g.named("parts")
}

// named reports whether the name of the first number contains a word of the list.
func (g *growth) named(list string) bool {
	return slices.ContainsFunc(wordsBefore(g.before), func(w string) bool { return g.rules.words[list][w] })
}

// value returns the value of a numeral.
func value(numeral string) float64 {
	v, _ := strconv.ParseFloat(numeral, 64) // infinite if it is out of range
	return v
}

// letter reports whether c is a letter: digits after it are the end of a name, as in p13.
func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80 }

// dated reports whether the number s[from:to] is part of a date or a time: 2025-01-31, 10:30.
func dated(s string, from, to int) bool {
	joint := func(c byte) bool { return c == '-' || c == ':' }
	return from > 1 && joint(s[from-1]) && digit(s[from-2]) || to+1 < len(s) && joint(s[to]) && digit(s[to+1])
}

// dotted reports whether the number s[from:to] is part of a version or an IP address: another number there means
// another thing.
func dotted(s string, from, to int) bool {
	return from > 1 && s[from-1] == '.' && digit(s[from-2]) || to+1 < len(s) && s[to] == '.' && digit(s[to+1])
}

// epoch reports whether the number may be a Unix time in seconds or milliseconds.
func epoch(v float64) bool { return v >= 1e9 && v < 2e9 || v >= 1e12 && v < 2e12 }

// wordsBefore returns the words of the last name in s: "page" before `,"page":`.
func wordsBefore(s string) []string {
	end := len(s)
	for end > 0 && !letter(s[end-1]) {
		end--
	}
	from := end
	for from > 0 && (letter(s[from-1]) || s[from-1] == '_' || s[from-1] == '-') {
		from--
	}
	return trajectory.NameWords(s[from:end])
}

// unnumbered replaces the numbers in a text.
func unnumbered(s string) string {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		if !digit(s[i]) {
			out = append(out, s[i])
			i++
			continue
		}
		out = append(out, '#')
		i += len(trajectory.Numeral(s, i))
	}
	return string(out)
}
