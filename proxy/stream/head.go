package stream

import (
	"bytes"
	"io"
)

// Form is the format of a body, recognised by its first bytes.
type Form uint8

// The forms.
const (
	FormOther  Form = iota // neither, or unclear: the Content-Type decides
	FormJSON               // an object or a list
	FormEvents             // server-sent events
)

// Head is a body whose first bytes were inspected. One goroutine uses it.
type Head struct {
	io.ReadCloser
	seen     [64]byte
	from, to int
	err      error  // the error that ended the inspection
	blank    func() // runs for blanks before the body's content; nil from there on
}

// fields are the beginnings of the lines of events. A comment begins with a colon.
var fields = [...]string{":", "data:", "event:", "id:", "retry:"}

// Look reads the first bytes of body, as many as needed, and returns its form. Reading h yields the
// whole body. Both run blank for blanks before the content, with which servers such as DeepSeek's show
// that a request waits there.
func (h *Head) Look(body io.ReadCloser, blank func()) Form {
	*h = Head{ReadCloser: body, blank: blank}
	for h.err == nil && h.to < len(h.seen) {
		var n int
		n, h.err = h.more(h.seen[h.to:])
		h.to += n
		if form, sure := formOf(h.seen[:h.to]); sure {
			return form
		}
	}
	return FormOther
}

// formOf returns the form of a body from its beginning; sure is false if more bytes may change it.
func formOf(start []byte) (form Form, sure bool) {
	start, _ = inside(start)
	switch {
	case len(start) == 0, len(start) < len(byteOrderMark) && bytes.HasPrefix([]byte(byteOrderMark), start):
		return FormOther, false
	case start[0] == '{', start[0] == '[':
		return FormJSON, true
	}
	sure = true
	for _, f := range fields {
		if bytes.HasPrefix(start, []byte(f)) {
			return FormEvents, true
		}
		sure = sure && !bytes.HasPrefix([]byte(f), start)
	}
	return FormOther, sure
}

// Read implements io.Reader.
func (h *Head) Read(p []byte) (int, error) {
	if h.from < h.to {
		n := copy(p, h.seen[h.from:h.to])
		h.from += n
		return n, nil
	}
	if h.err != nil {
		return 0, h.err
	}
	return h.more(p)
}

// more reads bytes that Look has not inspected, and calls blank for blanks before the content.
func (h *Head) more(p []byte) (int, error) {
	n, err := h.ReadCloser.Read(p)
	switch {
	case h.blank == nil || n == 0:
	case len(bytes.TrimLeft(p[:n], blanks)) > 0:
		h.blank = nil
	default:
		h.blank()
	}
	return n, err
}
