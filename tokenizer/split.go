package tokenizer

// splitter returns the end of the piece that starts at s[i:], i < len(s). The
// result is larger than i, so the pieces together cover the text.
type splitter func(t *classTable, s string, i int) int

// splitCL100K implements the pattern of cl100k_base:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)
//	[^\r\n\p{L}\p{N}]?\p{L}+
//	\p{N}{1,3}
//	 ?[^\s\p{L}\p{N}]+[\r\n]*
//	\s*[\r\n]+
//	\s+(?!\S)
//	\s+
func splitCL100K(t *classTable, s string, i int) int {
	if j := contraction(s, i); j > i {
		return j
	}
	c, n := t.at(s, i)
	if c&classLetter != 0 {
		return t.skip(s, i+n, classLetter)
	}
	if c&(classNumber|classNewline) == 0 {
		if j := t.skip(s, i+n, classLetter); j > i+n {
			return j
		}
	}
	return splitRest(t, s, i, false)
}

// splitO200K implements the pattern of o200k_base, whose words have a head of upper case
// and a tail of lower case (letters without case, and marks, may be in both):
//
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	\p{N}{1,3}
//	 ?[^\s\p{L}\p{N}]+[\r\n/]*
//	\s*[\r\n]+
//	\s+(?!\S)
//	\s+
func splitO200K(t *classTable, s string, i int) int {
	c, n := t.at(s, i)
	if c&(classNumber|classNewline) != 0 {
		return splitRest(t, s, i, true)
	}
	from := i // start of the word behind the optional first rune
	if c&classLetter == 0 {
		from += n
	}
	j, headEnd := word(t, s, from)
	if j < 0 && c&classMark != 0 {
		// The mark is not the optional first rune but the word itself.
		j, _ = word(t, s, i)
	}
	if j < 0 && headEnd > from {
		j = headEnd
	}
	if j < 0 {
		return splitRest(t, s, i, true)
	}
	return contraction(s, j)
}

// word matches [head]*[tail]+ of o200k_base at s[i:] and returns its end, or -1
// if there is no match. headEnd is the end of the run of head runes, which the
// second alternative takes if the first has no match (then no tail can follow).
func word(t *classTable, s string, i int) (end, headEnd int) {
	end, headEnd = -1, i
	for {
		c, n := t.at(s, headEnd)
		if c&classHead == 0 {
			if c&classTail != 0 { // lower case
				end = t.skip(s, headEnd+n, classTail)
			}
			return end, headEnd
		}
		headEnd += n
		if c&classTail != 0 {
			// A backtracking engine would end the head before this rune and let the
			// tail match it.
			end = headEnd
		}
	}
}

// contraction returns the end of (?i:'s|'t|'re|'ve|'m|'ll|'d) at s[i:], or i.
func contraction(s string, i int) int {
	if i+1 >= len(s) || s[i] != '\'' {
		return i
	}
	const lower = 'a' - 'A'
	switch a := s[i+1] | lower; a {
	case 's', 't', 'm', 'd':
		return i + 2
	case 'r', 'v', 'l':
		if i+2 < len(s) {
			b := s[i+2] | lower
			if a == 'l' && b == 'l' || a != 'l' && b == 'e' {
				return i + 3
			}
		}
	}
	return i
}

// splitRest matches the alternatives that both patterns share: digits, symbols, white
// space. With slash, slashes may follow symbols as line breaks may.
func splitRest(t *classTable, s string, i int, slash bool) int {
	c, n := t.at(s, i)
	if c&classNumber != 0 {
		return digits(t, s, i+n)
	}
	if j := symbols(t, s, i, slash); j > i {
		return j
	}
	return space(t, s, i)
}

// digits returns the end of \p{N}{1,3} whose first rune ends at i.
func digits(t *classTable, s string, i int) int {
	for range 2 {
		c, n := t.at(s, i)
		if c&classNumber == 0 {
			break
		}
		i += n
	}
	return i
}

// symbols returns the end of " ?[^\s\p{L}\p{N}]+[\r\n]*" at s[i:], or i.
func symbols(t *classTable, s string, i int, slash bool) int {
	from := i
	if s[i] == ' ' {
		from++
	}
	j := from
	for {
		c, n := t.at(s, j)
		if n == 0 || c&(classLetter|classNumber|classSpace) != 0 {
			break
		}
		j += n
	}
	if j == from {
		return i
	}
	for j < len(s) && (s[j] == '\n' || s[j] == '\r' || slash && s[j] == '/') {
		j++
	}
	return j
}

// space matches the last three alternatives at s[i:], which begins with white space. The
// match is the run of white space up to its last line break; without a line break, the whole
// run if the text ends with it; else the run without its last rune, which belongs to the next
// piece, unless it is the only one.
func space(t *classTable, s string, i int) int {
	end, last, newline := i, i, i
	for {
		c, n := t.at(s, end)
		if c&classSpace == 0 {
			break
		}
		last = end
		end += n
		if c&classNewline != 0 {
			newline = end
		}
	}
	switch {
	case newline > i:
		return newline
	case end == len(s) || last == i:
		return end
	}
	return last
}
