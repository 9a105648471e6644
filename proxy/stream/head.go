package stream

import (
	"bytes"
	"io"
)

// Form is what the first bytes of a body show it to be.
type Form uint8

// The forms.
const (
	FormOther  Form = iota // neither, or it cannot be told: the label decides
	FormJSON               // an object or a list
	FormEvents             // server-sent events
)

// Head is a body whose first bytes were looked at. One goroutine uses it.
type Head struct {
	io.ReadCloser
	seen     [64]byte
	from, to int
	err      error // that ended the look
}

// fields are how the lines of events begin. A comment has no name before its colon.
var fields = [...]string{":", "data:", "event:", "id:", "retry:"}

// Look waits for the first bytes of body that tell its form. Reading h yields all of body.
func (h *Head) Look(body io.ReadCloser) Form {
	*h = Head{ReadCloser: body}
	for h.err == nil && h.to < len(h.seen) {
		var n int
		n, h.err = body.Read(h.seen[h.to:])
		h.to += n
		if form, sure := formOf(h.seen[:h.to]); sure {
			return form
		}
	}
	return FormOther
}

// formOf returns the form of a body that begins so; sure is false where more of it could tell.
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
	return h.ReadCloser.Read(p)
}
