package transcript

import (
	"bytes"
	"strconv"
)

// Object returns a JSON object with these names and values; see AppendValue.
func Object(fields ...any) []byte {
	b := []byte{'{'}
	for i := 0; i+1 < len(fields); i += 2 {
		b = AppendField(b, fields[i].(string), fields[i+1])
	}
	return append(b, '}')
}

// AppendField appends a field to an object without its closing brace.
func AppendField(b []byte, name string, value any) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	return AppendValue(append(AppendString(b, name), ':'), value)
}

// AppendValue appends a string or number as JSON, bytes unchanged, and anything else as null.
func AppendValue(b []byte, value any) []byte {
	switch v := value.(type) {
	case string:
		return AppendString(b, v)
	case []byte:
		return append(b, v...)
	case int:
		return strconv.AppendInt(b, int64(v), 10)
	}
	return append(b, "null"...)
}

// List returns a JSON array of raw values.
func List(items [][]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(items, []byte{','})...), ']')
}
