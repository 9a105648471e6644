package h1

import (
	"bytes"
	"fmt"
	"io"
)

// reader is a buffer in front of a connection. Unlike bufio.Reader it can
// grow for a large head, and it gives its memory back while the connection is
// idle. One goroutine at a time may use it.
type reader struct {
	src  io.Reader
	buf  []byte
	r, w int
	err  error // of src, returned when the buffer is empty
}

func (b *reader) buffered() int { return b.w - b.r }

// fill reads once from the source. Either a byte was added or an error is returned.
func (b *reader) fill() error {
	if b.err != nil {
		return b.err
	}
	if b.r == b.w {
		b.r, b.w = 0, 0
	} else if b.w == len(b.buf) && b.r > 0 {
		b.w = copy(b.buf, b.buf[b.r:b.w])
		b.r = 0
	}
	if b.w == len(b.buf) {
		return io.ErrShortBuffer
	}
	n, err := b.readSource(b.buf[b.w:])
	b.w += n
	if n > 0 {
		return nil
	}
	return err
}

// readSource reads at least one byte or returns an error. An error that came
// together with bytes is kept for the next time.
func (b *reader) readSource(p []byte) (int, error) {
	for range 16 {
		n, err := b.src.Read(p)
		if err != nil {
			b.err = err
		}
		if n > 0 {
			return n, nil
		}
		if err != nil {
			return 0, err
		}
	}
	b.err = io.ErrNoProgress
	return 0, b.err
}

// read reads body bytes: buffered ones first, then straight from the source
// if the caller's memory is at least as large as the buffer.
func (b *reader) read(p []byte) (int, error) {
	if b.r == b.w {
		if b.err != nil {
			return 0, b.err
		}
		if len(p) >= len(b.buf) {
			return b.readSource(p)
		}
		if err := b.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, b.buf[b.r:b.w])
	b.r += n
	return n, nil
}

// head returns the bytes up to and with the next empty line, without consuming
// them. They are valid until the next call and may be changed in place: header
// lines that were folded are joined here, as RFC 9112, section 5.2 permits. At
// the source's end it returns io.EOF if there was no byte at all.
func (b *reader) head(limit int) ([]byte, error) {
	line, next := 0, 0 // offsets from b.r: where this line begins, where to look for its end
	for n := 0; ; {
		i := bytes.IndexByte(b.buf[b.r+next:b.w], '\n')
		if i < 0 {
			next = b.buffered()
			if next > limit {
				return nil, ErrHeaderTooLarge
			}
			if err := b.grow(limit); err != nil {
				if next > 0 {
					err = unexpected(err)
				}
				return nil, err
			}
			continue
		}
		end := next + i + 1
		if end > limit {
			return nil, ErrHeaderTooLarge
		}
		h := b.buf[b.r : b.r+end]
		if end-line == 1 || end-line == 2 && h[line] == '\r' {
			return h, nil
		}
		if n > 1 && (h[line] == ' ' || h[line] == '\t') {
			h[line-1] = ' '
			if h[line-2] == '\r' {
				h[line-2] = ' '
			}
		}
		if n++; n > maxHeaderLines {
			return nil, fmt.Errorf("%w: more than %d lines", ErrHeaderTooLarge, maxHeaderLines)
		}
		line, next = end, end
	}
}

// grow is fill with a larger buffer if need be, though not beyond what limit requires.
func (b *reader) grow(limit int) error {
	if b.buffered() == len(b.buf) && b.err == nil {
		larger := make([]byte, min(2*len(b.buf), max(limit+1, len(b.buf)+1)))
		b.w = copy(larger, b.buf[b.r:b.w])
		b.r = 0
		b.buf = larger
	}
	return b.fill()
}

// hasLine reports whether line will return without reading.
func (b *reader) hasLine() bool {
	return bytes.IndexByte(b.buf[b.r:b.w], '\n') >= 0
}

// line consumes a line of a chunked body and returns it without its CRLF,
// which has to be one (RFC 9112, erratum 7633). It is valid until the next call.
func (b *reader) line() ([]byte, error) {
	for next := 0; ; {
		if i := bytes.IndexByte(b.buf[b.r+next:b.w], '\n'); i >= 0 {
			l := b.buf[b.r : b.r+next+i+1]
			b.r += len(l)
			switch cr := bytes.IndexByte(l, '\r'); {
			case len(l) > maxChunkLine:
				return nil, errLongLine
			case cr < 0 || cr != len(l)-2:
				return nil, fmt.Errorf("%w: bare CR or LF in chunked encoding", ErrMalformed)
			}
			return l[:len(l)-2], nil
		}
		next = b.buffered()
		if next >= maxChunkLine {
			return nil, errLongLine
		}
		if err := b.fill(); err != nil {
			return nil, unexpected(err)
		}
	}
}

var errLongLine = fmt.Errorf("%w: line of chunked encoding longer than %d bytes", ErrMalformed, maxChunkLine)
