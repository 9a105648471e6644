package stream

import (
	"bytes"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// numberless are values that Python's json module writes and reads and JSON does not allow, with
// numbers of the same length.
var numberless = [...]struct{ value, number string }{{"NaN", "0.0"}, {"Infinity", "0.000000"}}

// lenient returns a copy of data with numbers in place of NaN and Infinity, or nil if data has
// neither. All other bytes keep their positions, so positions in the copy are valid in data.
func lenient(data []byte) (out []byte) {
	for i := 0; i < len(data); i++ {
		switch c := data[i]; c {
		case '"':
			i = stringEnd(data, i)
		case 'N', 'I':
			for _, n := range numberless {
				if bytes.HasPrefix(data[i:], []byte(n.value)) {
					if out == nil {
						out = bytes.Clone(data)
					}
					copy(out[i:], n.number)
					i += len(n.value) - 1
					break
				}
			}
		}
	}
	return out
}

// readAny is read, and reads lenient(data) if data is not valid JSON. It reports whether that helped.
func (d *Delta) readAny(data []byte, message string, known *Identity) bool {
	if d.read(data, message, known); d.Kind != KindNoise {
		return false
	}
	other := lenient(data)
	if other != nil {
		d.read(other, message, known)
	}
	return other != nil
}

// wholeObject returns a body that is a JSON object, or lenient(body), or nil.
func wholeObject(body []byte) []byte {
	if transcript.Valid(body, maxDepth) != nil {
		body = lenient(body)
	}
	if transcript.Valid(body, maxDepth) != nil || !isObject(body) {
		return nil
	}
	return body
}

// stringEnd returns the position of the quote that ends the string at i, or len(data).
func stringEnd(data []byte, i int) int {
	for i++; i < len(data) && data[i] != '"'; i++ {
		if data[i] == '\\' {
			i++
		}
	}
	return i
}

// closed reports whether a body that is not valid JSON begins like it and closes everything that it
// opens.
func closed(body []byte) bool {
	if body[0] != '{' && body[0] != '[' {
		return false
	}
	var j openJSON
	j.feed(viewString(body))
	return j.complete()
}

// inside returns a body without the byte order mark and blanks around it, and the number of bytes
// before it.
func inside(all []byte) (body []byte, lead int) {
	body = bytes.TrimLeft(bytes.TrimPrefix(bytes.TrimLeft(all, blanks), []byte(byteOrderMark)), blanks)
	lead = len(all) - len(body)
	return bytes.TrimRight(body, blanks), lead
}
