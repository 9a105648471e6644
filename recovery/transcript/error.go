package transcript

import "fmt"

// Code names the kind of an Error. The values are stable and are shown to clients.
type Code string

// The codes of errors.
const (
	CodeInvalidJSON  Code = "invalid_json"  // the bytes are not one JSON value
	CodeDuplicateKey Code = "duplicate_key" // a top-level field occurs twice: JSON readers disagree on which value counts
	CodeTooDeep      Code = "too_deep"      // nested deeper than the limit
	CodeTooLarge     Code = "too_large"     // 2 GiB or more
	CodeTooMany      Code = "too_many"      // more messages, calls, tools or fields than the limits allow
	CodeNotObject    Code = "not_object"    // valid JSON, but not an object
	CodeWrongType    Code = "wrong_type"    // a field that the gateway needs has another type
)

// Error describes what is wrong with a body, for the developer of the client.
type Error struct {
	Code    Code
	Offset  int    // of the offending byte
	Field   string // the top-level field with the error, or ""
	Message string // one sentence; holds no text of the body beyond one character or a field's name
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// quoteByte renders one byte for a message.
func quoteByte(c byte) string {
	if c < 0x20 || c >= 0x7f {
		return fmt.Sprintf("byte 0x%02x", c)
	}
	return "'" + string(rune(c)) + "'"
}
