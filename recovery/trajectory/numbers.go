package trajectory

// CompareNumbers reports whether two texts are equal except for numbers. It calls differ with each pair of
// different numbers and the position of the first in a, and returns false as soon as differ does.
func CompareNumbers(a, b string, differ func(i int, x, y string) bool) bool {
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		if !digit(a[i]) || !digit(b[j]) {
			if a[i] != b[j] {
				return false
			}
			i++
			j++
			continue
		}
		x, y := Numeral(a, i), Numeral(b, j)
		if x != y && !differ(i, x, y) {
			return false
		}
		i += len(x)
		j += len(y)
	}
	return i == len(a) && j == len(b)
}

// Numeral returns the number at s[i]: digits with a fraction and an exponent. A part of a version or an IP
// address has no fraction.
func Numeral(s string, i int) string {
	end := digits(s, i)
	if (i == 0 || s[i-1] != '.') && end+1 < len(s) && s[end] == '.' && digit(s[end+1]) {
		end = digits(s, end+1)
	}
	if end+2 < len(s) && s[end] == 'e' && (s[end+1] == '+' || s[end+1] == '-') && digit(s[end+2]) {
		end = digits(s, end+2)
	}
	return s[i:end]
}

// digits returns the end of the digits at s[i].
func digits(s string, i int) int {
	for i < len(s) && digit(s[i]) {
		i++
	}
	return i
}

func digit(c byte) bool { return c-'0' < 10 }
