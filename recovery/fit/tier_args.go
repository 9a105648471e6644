package fit

import (
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// longArguments proposes to shrink the arguments of old calls above limit
// characters. The result of the call, and the file that it wrote, say what
// became of them.
func longArguments(v *view, p *protection, limit int) (out []proposal) {
	for i := range v.items {
		if p.of[i] != 0 {
			continue
		}
		for _, c := range v.items[i].calls {
			if len(c.text) > limit && utf8.RuneCountInString(c.text) > limit {
				out = append(out, proposal{i, recipe{Op: opArguments, A: uint32(min(keepValue, limit/4))}})
				break
			}
		}
	}
	return out
}

// keepValue is the size in bytes of values that arguments keep.
const keepValue = 160

// maxShrunk is the size in bytes above which shrunken arguments lose their
// inner structure too.
const maxShrunk = 2000

// shrink renders opArguments: all calls of the message whose arguments become
// at least a third smaller.
func (v *view) shrink(it *item, keep int) (out rendered, ok bool) {
	for n, c := range it.calls {
		if len(c.text) <= 2*keep || c.Span == (transcript.Span{}) || compressed(c.text) {
			continue
		}
		text := mark("The arguments of this call, " + size(c.text) + ", were removed.")
		if c.object {
			text = stub(c.text, keep)
		} else if isObject := len(c.Arguments) > 0 && c.Arguments[0] != '"'; isObject {
			continue // neither a string nor an object: nothing that is known
		}
		if 3*len(text) > 2*len(c.text) {
			continue
		}
		if out.args == nil {
			out.args = map[int]string{}
		}
		out.args[n] = text
	}
	return out, out.args != nil
}

// stub is an object with the same keys, whose long values say what they were.
func stub(object string, keep int) string {
	text := string(shrinkValue(nil, gjson.Parse(object), keep, 0))
	if len(text) <= maxShrunk {
		return text
	}
	var b []byte
	b = append(b, '{')
	gjson.Parse(object).ForEach(func(key, value gjson.Result) bool {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(b, key.Raw...), ':')
		if len(value.Raw) <= keep {
			b = append(b, value.Raw...)
		} else {
			b = append(b, transcript.String(gone(value.Raw))...)
		}
		return len(b) < maxShrunk
	})
	b = append(b, '}')
	if len(b) <= 2*maxShrunk {
		return string(b)
	}
	return mark("The arguments of this call, " + size(object) + ", were removed.")
}

// maxElements bounds how many elements of a list a stub names.
const maxElements = 12

func shrinkValue(dst []byte, value gjson.Result, keep, depth int) []byte {
	switch {
	case len(value.Raw) <= keep:
		return append(dst, value.Raw...)
	case value.Type == gjson.String:
		return append(dst, transcript.String(gone(value.String()))...)
	case !value.IsObject() && !value.IsArray() || depth > 3:
		return append(dst, transcript.String(gone(value.Raw))...)
	}
	object := value.IsObject()
	open, shut, n := byte('['), byte(']'), 0
	if object {
		open, shut = '{', '}'
	}
	dst = append(dst, open)
	value.ForEach(func(key, element gjson.Result) bool {
		if n > 0 {
			dst = append(dst, ',')
		}
		if n++; !object && n > maxElements {
			dst = append(dst, transcript.String(mark("Further elements were removed."))...)
			return false
		}
		if object {
			dst = append(append(dst, key.Raw...), ':')
		}
		dst = shrinkValue(dst, element, keep, depth+1)
		return true
	})
	return append(dst, shut)
}

// gone is what stands for a value that was removed; its name is still there.
func gone(text string) string { return mark(size(text) + " removed") }
