package fit

import (
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// The limits of shortened arguments.
const (
	keepValue = 80  // bytes of values that always stay
	minKept   = 40  // bytes below which nothing of a long value is kept
	maxValues = 256 // short values that are kept
)

// renderArguments renders opArguments: arguments longer than room are shortened to about
// room bytes.
func (v *history) renderArguments(it *item, room int) (out rendered, ok bool) {
	for n, c := range it.calls {
		if len(c.text) <= room || c.Span == (transcript.Span{}) || c.Typed() || isCompressed(c.text) {
			continue
		}
		text := mark(sizeText(c.text) + " of arguments removed")
		if c.isObject {
			text = v.excerpts.shortenObject(c.text, room)
		} else if isObject := len(c.Arguments) > 0 && c.Arguments[0] != '"'; isObject {
			continue // neither a string nor an object
		}
		if len(text) >= len(c.text) {
			continue
		}
		if out.args == nil {
			out.args = map[int]string{}
		}
		out.args[n] = text
	}
	return out, out.args != nil
}

// shortenObject returns an object with its short values, and a mark that names the long
// ones and quotes an excerpt of each, within room bytes in all.
func (e excerpts) shortenObject(object string, room int) string {
	type value struct{ name, text string }
	var long []value
	b, left, all, kept := []byte{'{'}, 0, 0, 0
	gjson.Parse(object).ForEach(func(key, v gjson.Result) bool {
		if len(v.Raw) <= keepValue && kept < maxValues && key.Str != markKey {
			b = append(append(append(b, key.Raw...), ':'), v.Raw...)
			b = append(b, ',')
			kept++
			return true
		}
		text := v.String()
		long = append(long, value{oneLine(key.String(), keepValue), text})
		all += len(text)
		return true
	})
	if left = room - len(b); len(long) > maxValues {
		long = long[:maxValues]
	}
	var what strings.Builder
	for i, v := range long {
		if i > 0 {
			what.WriteString("\n")
		}
		what.WriteString(v.name + ": ")
		short := ""
		if share := left * len(v.text) / max(1, all); share >= minKept {
			short = e.extract(v.text, share)
		}
		what.WriteString(characters(utf8.RuneCountInString(v.text)-utf8.RuneCountInString(short)) + " removed")
		if short != "" {
			what.WriteString(":\n" + short)
		}
	}
	b = append(b, mark(what.String())[1:]...)
	return string(b)
}
