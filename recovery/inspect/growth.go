package inspect

import (
	"strconv"

	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// maxGrowing is the number of numbers that may grow: a range has two.
const maxGrowing = 2

// grows reports whether two arguments differ in higher numbers only. A number in a name
// is none, nor is a day or a time: that passes by itself.
func grows(a, b string) bool {
	grown := 0
	same := trajectory.CompareNumbers(a, b, func(i int, x, y string) bool {
		grown++
		return value(y) > value(x) && grown <= maxGrowing && (i == 0 || !letter(a[i-1])) && !dotted(a, i, i+len(x)) && !dated(a, i, i+len(x))
	})
	return same && grown > 0
}

// value is what a numeral means.
func value(numeral string) float64 {
	v, _ := strconv.ParseFloat(numeral, 64) // beyond its range it is infinite
	return v
}

// letter reports whether c is one: a number behind it is the end of a name, as in p13.
func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80 }

// dated reports whether the number s[from:to] is a part of a day or of a time:
// 2025-01-31, 10:30.
func dated(s string, from, to int) bool {
	joint := func(c byte) bool { return c == '-' || c == ':' }
	return from > 1 && joint(s[from-1]) && digit(s[from-2]) || to+1 < len(s) && joint(s[to]) && digit(s[to+1])
}

// dotted reports whether the number s[from:to] is a part of a version or of an
// address of the network: another one is another thing.
func dotted(s string, from, to int) bool {
	return from > 1 && s[from-1] == '.' && digit(s[from-2]) || to+1 < len(s) && s[to] == '.' && digit(s[to+1])
}

// unnumbered is a text with its numbers taken out.
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
