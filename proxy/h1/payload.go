package h1

import (
	"fmt"
	"io"
)

// payloadKind is how a body ends.
type payloadKind uint8

const (
	noPayload      payloadKind = iota
	sizedPayload               // after Content-Length bytes
	chunkedPayload             // by an empty chunk
	closedPayload              // with the connection
)

// chunkPhase is what comes next in a chunked body.
type chunkPhase uint8

const (
	chunkSize chunkPhase = iota
	chunkData
	chunkEnd // the CRLF after the data
	chunkTrailer
	chunkDone
)

// payload takes the framing off a body. One goroutine at a time may use it.
type payload struct {
	in      *reader
	kind    payloadKind
	phase   chunkPhase
	left    int64 // of the body, or of the chunk
	trailer int   // bytes that the trailers may still have
	waste   int64 // bytes of framing beyond what chunks of a sensible size need
}

// Read implements io.Reader. The last bytes come together with io.EOF if it is
// known that they are the last; an end that comes too early is io.ErrUnexpectedEOF.
func (p *payload) Read(b []byte) (int, error) {
	defer p.in.settle()
	switch p.kind {
	case sizedPayload:
		if int64(len(b)) > p.left {
			b = b[:p.left]
		}
		n, err := p.in.read(b)
		if p.left -= int64(n); p.left == 0 {
			return n, io.EOF
		}
		return n, unexpected(err)
	case chunkedPayload:
		p.in.lend(b)
		return p.readChunked(b)
	case closedPayload:
		return p.in.read(b)
	default:
		return 0, io.EOF
	}
}

// readChunked fills b from as many chunks as have arrived, and waits only if
// it has nothing to return.
func (p *payload) readChunked(b []byte) (n int, err error) {
	for {
		switch p.phase {
		case chunkDone:
			return n, io.EOF
		case chunkData:
			if n == len(b) || n > 0 && p.in.buffered() == 0 {
				return n, nil
			}
			m, err := p.in.read(b[n:min(int64(len(b)), int64(n)+p.left)])
			n += m
			if p.left -= int64(m); p.left == 0 {
				p.phase = chunkEnd
			}
			if err != nil {
				return n, unexpected(err)
			}
		default:
			if n > 0 && !p.in.hasLine() {
				return n, nil
			}
			if err := p.step(); err != nil {
				return n, err
			}
		}
	}
}

// step reads one line between the data.
func (p *payload) step() error {
	l, err := p.in.line()
	if err != nil {
		return err
	}
	switch p.phase {
	case chunkSize:
		if p.left, err = parseChunkSize(l); err != nil {
			return err
		}
		if p.waste = max(0, p.waste+int64(len(l))-16-2*p.left); p.waste > maxChunkWaste {
			return fmt.Errorf("%w: too much framing around too little data", ErrMalformed)
		}
		p.phase = chunkData
		if p.left == 0 {
			p.phase = chunkTrailer
		}
	case chunkEnd:
		if len(l) > 0 {
			return fmt.Errorf("%w: chunk longer than announced", ErrMalformed)
		}
		p.phase = chunkSize
	case chunkTrailer:
		if p.trailer -= len(l); p.trailer < 0 {
			return fmt.Errorf("%w: trailers", ErrHeaderTooLarge)
		}
		if len(l) == 0 {
			p.phase = chunkDone
		}
	}
	return nil
}

// parseChunkSize reads the hexadecimal number before any extension.
func parseChunkSize(l []byte) (int64, error) {
	var n int64
	digits := 0
	for _, c := range l {
		var v byte
		switch {
		case digit(c):
			v = c - '0'
		case 'a' <= c && c <= 'f':
			v = c - 'a' + 10
		case 'A' <= c && c <= 'F':
			v = c - 'A' + 10
		case digits > 0 && (c == ';' || (c == ' ' || c == '\t') && onlySpace(l[digits:])):
			return n, nil
		default:
			return 0, fmt.Errorf("%w: chunk size %.40q", ErrMalformed, l)
		}
		if digits++; digits > 15 {
			return 0, fmt.Errorf("%w: chunk size %.40q", ErrMalformed, l)
		}
		n = n<<4 | int64(v)
	}
	if digits == 0 {
		return 0, fmt.Errorf("%w: chunk without a size", ErrMalformed)
	}
	return n, nil
}

// onlySpace reports whether white space is all there is before an extension or the end.
func onlySpace(l []byte) bool {
	for _, c := range l {
		switch c {
		case ' ', '\t':
		case ';':
			return true
		default:
			return false
		}
	}
	return true
}

// drain reports whether bytes that have already arrived complete the body, and
// consumes them. It never waits.
func (p *payload) drain() bool {
	for {
		switch {
		case p.kind == noPayload || p.kind == chunkedPayload && p.phase == chunkDone:
			return true
		case p.kind == closedPayload:
			return false
		case p.kind == sizedPayload || p.phase == chunkData:
			n := min(p.left, int64(p.in.buffered()))
			p.in.r += int(n)
			if p.left -= n; p.left > 0 {
				return false
			}
			if p.kind == sizedPayload {
				return true
			}
			p.phase = chunkEnd
		default:
			if !p.in.hasLine() || p.step() != nil {
				return false
			}
		}
	}
}
