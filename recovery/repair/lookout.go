package repair

import (
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Lookout implements recovery.Mender.
func (m *Mender) Lookout(req *transcript.Body) recovery.Lookout {
	if !m.Holds(req).Calls || req.ToolChoice().Choice == transcript.ChoiceNone {
		return nil
	}
	return &lookout{offers: func(name string) bool {
		o := m.offered(req)
		return o.named(name) != nil || o.named(bare(name)) != nil
	}}
}

// lookout finds in a text that is not complete what leaks may find at its end. Work
// is linear in the text: what was given free is not read again, and what is held
// is read again only when it has grown by half.
type lookout struct {
	offers func(name string) bool // a tool of the request
	free   int                    // no call begins before it
	next   int                    // from this length on another look is worth it
	tried  int                    // places that looked like a call and were none
}

// again is by how many bytes at least a text that may be a call has to grow before
// it is read again.
const again = 24

// Free implements recovery.Lookout.
func (l *lookout) Free(text string) int {
	switch {
	case len(text) > maxArguments, l.tried >= maxPlaces:
		l.free = len(text) // it is not judged
		return l.free
	case len(text) < l.next, l.free == 0 && strings.TrimLeft(text, blanks) == "":
		return l.free
	case l.free > 0 && markless(text[l.free:]):
		l.free = len(text)
		return l.free
	}
	if l.free == 0 && l.begins(strings.TrimLeft(text, blanks)) {
		l.next = len(text) + max(again, len(text)/2)
		return 0
	}
	for l.tried < maxPlaces {
		at := opening(text, l.free)
		json := l.json(text, l.free)
		half := halfOpener(text, l.free)
		var may bool
		switch first := earliest(at, json, half); {
		case first < 0:
			l.free = len(text)
			return l.free
		case first == at:
			f := markedAt(text, at)
			may = f.open || f.marked
			first = min(first, len(f.before))
			l.free = max(l.free, first)
		case first == json:
			may = objectsAt(text[json:]) && !fenced(text[:json])
			l.free = json
		default:
			l.free = half
			return l.free
		}
		if may {
			l.next = len(text) + max(again, (len(text)-l.free)/2)
			return l.free
		}
		l.free, l.tried = max(l.free, earliest(at, json, half))+1, l.tried+1
	}
	l.free = len(text)
	return l.free
}

// earliest is the least of places that are not -1; -1 if all are.
func earliest(places ...int) int {
	first := -1
	for _, p := range places {
		if p >= 0 && (first < 0 || p < first) {
			first = p
		}
	}
	return first
}

// halfOpener is where an opener begins that the text ends in, from a place on; -1
// if there is none.
func halfOpener(text string, from int) int {
	for i := max(from, len(text)-longestOpener+1); i < len(text); i++ {
		if strings.IndexByte("<[`", text[i]) >= 0 && slices.ContainsFunc(openers, func(o string) bool { return strings.HasPrefix(o, text[i:]) }) {
			return i
		}
	}
	return -1
}

// begins reports whether a text may be nothing but a call that has no mark, or
// one in a fence.
func (l *lookout) begins(text string) bool {
	for _, mark := range []string{codeMark, printMark, "commentary to=functions.", "analysis to=functions.", "assistantcommentary to=functions.", "assistantanalysis to=functions."} {
		if strings.HasPrefix(mark, text) {
			return true
		}
		if !strings.HasPrefix(text, mark) {
			continue
		}
		c := cursor{in: text}
		if mark == codeMark || mark == printMark {
			_, _ = c.program()
			c.space()
			return c.open()
		}
		c.i = max(0, strings.IndexByte(text, '{'))
		_, _ = c.json()
		return c.open()
	}
	for _, fence := range []string{"```", "~~~", "`"} {
		if strings.HasPrefix(fence, text) {
			return true
		}
		if body, ok := strings.CutPrefix(text, fence); ok {
			if language := languages.FindString(body); strings.HasSuffix(language, "\n") {
				body = body[len(language):]
			}
			value := strings.TrimLeft(strings.TrimPrefix(body, "json"), blanks)
			if value == "" || value[0] != '{' && value[0] != '[' {
				return len(body) < len("javascript") && !strings.Contains(body, "\n")
			}
			return l.names(value) && objectsAt(value)
		}
	}
	return false
}

// json is where, from a place on, the first line begins with JSON that may be a
// call; -1 if none does.
func (l *lookout) json(text string, from int) int {
	for at := from; ; at++ {
		if at = beginsJSON(text, at); at < 0 || l.names(text[at:]) {
			return at
		}
	}
}

// blanks are characters that say nothing.
const blanks = " \t\r\n"

// objectsAt reports whether a text is, or may become, nothing but calls as JSON or Python.
func objectsAt(text string) bool {
	c := cursor{in: text}
	if strings.HasPrefix(text, "[Call") {
		c.i = max(0, strings.IndexByte(text, '{'))
	}
	if _, ok := c.python(); !ok {
		_, _ = c.objects()
	}
	c.noise()
	return c.open()
}

// The bounds of what tells JSON that is a call.
const (
	maxKey     = 20 // bytes of a member's name
	maxNamed   = 200
	maxLeading = 64 // bytes of brackets and space
)

// names reports whether a text begins like a call of a tool of the request in
// JSON or Python, as far as it goes. It reads no more than the names.
func (l *lookout) names(text string) bool {
	rest := strings.TrimLeft(text, blanks+"[")
	if rest == "" || len(text)-len(rest) > maxLeading {
		return len(text) <= maxLeading
	}
	if rest[0] != '{' {
		if strings.HasPrefix(text, "[Call") {
			i := strings.IndexByte(text, '{')
			return i < 0 && len(text) < maxNamed || i >= 0 && sentence.MatchString(text)
		}
		name := named.FindString(rest)
		after := rest[len(name):]
		return text[0] == '[' && name != "" && (after == "" || after[0] == '(' && l.offers(strings.TrimSuffix(name, ".call")))
	}
	rest = rest[1:]
	for range 6 {
		key, after, whole := quoted(rest)
		if !whole {
			return key != "?" && len(rest) <= maxKey
		}
		after = strings.TrimLeft(after, blanks)
		value := strings.TrimLeft(strings.TrimPrefix(after, ":"), blanks)
		switch {
		case after != "" && after[0] != ':':
			return false
		case slices.Contains(inWrapper, key):
			return true
		case key == "function" && strings.HasPrefix(value, "{"):
			return l.names(value)
		case key == "name" || key == "function" || key == "tool" || key == "tool_name":
			name, _, whole := quoted(value)
			return whole && l.offers(name) || !whole && name != "?" && len(value) <= maxNamed
		case key != "type" && key != "id" && key != "call_id" && key != "index":
			return false
		}
		i := strings.IndexByte(value, ',')
		if i < 0 || i > maxNamed {
			return len(value) <= maxNamed
		}
		rest = value[i+1:]
	}
	return false
}

// quoted is the string at the beginning of a text. Of one that is not whole it
// is empty, of what is no string "?".
func quoted(text string) (s, after string, whole bool) {
	text = strings.TrimLeft(text, blanks)
	if text == "" {
		return "", "", false
	}
	if text[0] != '"' {
		return "?", "", false
	}
	s, after, whole = strings.Cut(text[1:], `"`)
	if !whole {
		s = ""
	}
	return s, after, whole
}
