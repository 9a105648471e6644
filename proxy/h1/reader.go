package h1

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// reader is a buffer in front of a connection. Unlike bufio.Reader it can
// grow for a large head, and it has memory only while it has bytes: who waits
// for the next part of a body does so in the memory of whoever wants it. One
// goroutine at a time may use it.
type reader struct {
	src   io.Reader
	reads *sync.Pool        // of *[readBuffer]byte
	own   *[readBuffer]byte // of reads, if buf is that
	buf   []byte            // nil without memory
	lent  bool              // buf belongs to the caller of a Read, until settle
	plain bool              // folded header lines are refused
	r, w  int
	past  recall // the last head
	err   error  // of src, returned when the buffer is empty
}

// newReads is where readers have their memory from.
func newReads() sync.Pool {
	return sync.Pool{New: func() any { return new([readBuffer]byte) }}
}

func (b *reader) buffered() int { return b.w - b.r }

// attach gets memory for at least as many bytes, and moves what is buffered there.
func (b *reader) attach(least int) {
	rest := b.buf[b.r:b.w]
	old := b.own
	b.own, b.lent = nil, false
	if least <= readBuffer {
		b.own = b.reads.Get().(*[readBuffer]byte)
		b.buf = b.own[:]
	} else {
		b.buf = make([]byte, least)
	}
	b.r, b.w = 0, copy(b.buf, rest)
	if old != nil {
		b.reads.Put(old)
	}
}

// release gives the memory back, and forgets what is buffered.
func (b *reader) release() {
	if b.own != nil {
		b.reads.Put(b.own)
	}
	b.own, b.buf, b.lent, b.r, b.w = nil, nil, false, 0, 0
}

// lend lets a reader without memory use the caller's, which gets the bytes of
// the body once the framing is taken off: they are never longer than what they
// are read from, so that they can be moved to its beginning. Nothing may be
// filled in after that and before settle.
func (b *reader) lend(p []byte) {
	if b.buf == nil && len(p) >= smallRead {
		b.buf, b.lent = p, true
	}
}

// settle ends a Read: the caller's memory is left alone, and only what is
// buffered has memory.
func (b *reader) settle() {
	switch {
	case b.r == b.w:
		b.release()
	case b.lent:
		b.attach(b.buffered())
	}
}

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
	if b.w == len(b.buf) && (b.buf == nil || b.lent && b.w < readBuffer) {
		b.attach(readBuffer)
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
// if the caller's memory is at least as large as the buffer, and not small.
func (b *reader) read(p []byte) (int, error) {
	if b.r == b.w {
		if b.err != nil {
			return 0, b.err
		}
		if len(p) >= max(len(b.buf), smallRead) {
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
// lines that were folded are joined here, or refused: RFC 9112, section 5.2
// wants the one of clients and permits both to servers. At
// the source's end it returns io.EOF if there was no byte at all.
func (b *reader) head(limit int) ([]byte, error) {
	line, next := 0, 0 // offsets from b.r: where this line begins, where to look for its end
	for n := 0; ; {
		if n == 0 {
			if end := b.past.match(b.buf[b.r:b.w]); end > 0 && end <= limit {
				return b.buf[b.r : b.r+end], nil
			}
		}
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
			if b.plain {
				return nil, errFolded
			}
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
	if n := len(b.buf); n > 0 && b.buffered() == n && b.err == nil {
		b.attach(min(2*n, max(limit+1, n+1)))
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

var errFolded = fmt.Errorf("%w: folded header line", ErrMalformed)

var errLongLine = fmt.Errorf("%w: line of chunked encoding longer than %d bytes", ErrMalformed, maxChunkLine)
