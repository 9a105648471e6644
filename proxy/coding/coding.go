package coding

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// Errors besides those of invalid data.
var (
	ErrUnknown  = errors.New("the content coding is none of gzip, deflate, zstd, br")
	ErrTooDense = fmt.Errorf("the data expands to more than %d times its size", MaxRatio)
)

// Limits of the expansion. Conversations compress to a fifth to a thirtieth of their size; a stream's
// events, which are similar, to a fiftieth.
const (
	MaxRatio = 100     // output bytes per input byte
	free     = 1 << 20 // output bytes allowed regardless of the input
)

// maxWindow is the largest zstd window for HTTP (RFC 9659), in bytes; brotli's format allows twice as
// much.
const maxWindow = 8 << 20

// Name returns the content coding in the values of Content-Encoding, in lower case, or "" for none.
// Several codings are ErrUnknown: no client uses them.
func Name(values []string) (string, error) {
	name := strings.ToLower(strings.TrimSpace(strings.Join(values, ",")))
	switch name {
	case "", "identity":
		return "", nil
	case "x-gzip":
		return "gzip", nil
	case "gzip", "deflate", "zstd", "br":
		return name, nil
	}
	return "", ErrUnknown
}

// Begins reports whether data of a coding that Name returned can begin with start, which must not be
// empty. Brotli has no magic number, so for it anything that does not begin like JSON or events is
// accepted.
func Begins(name string, start []byte) bool {
	switch first := start[0]; name {
	case "gzip":
		return first == 0x1f // RFC 1952
	case "deflate":
		return first&0x0f == 8 // RFC 1950: the method
	case "zstd":
		return first == 0x28 || first&0xf0 == 0x50 // RFC 8878: a frame, or a skippable one
	}
	for _, plain := range [...]string{`{"`, "data:", "event:"} {
		if bytes.HasPrefix(start, []byte(plain)) {
			return false
		}
	}
	return true
}

// Memory returns the largest memory use of a coding's Reader, in bytes.
func Memory(name string) int64 {
	switch name {
	case "zstd":
		return 2 * maxWindow // its history may be twice the window
	case "br":
		return 2*maxWindow + 1<<20
	}
	return 64 << 10
}

// Packer compresses for [Unpack]. Repetitions within eight mebibytes take almost no space. One
// goroutine may use it.
type Packer struct{ w *zstd.Encoder }

// NewPacker creates a Packer, which uses some mebibytes of memory.
func NewPacker() (*Packer, error) {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(maxWindow), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, fmt.Errorf("compressing: %w", err)
	}
	return &Packer{w}, nil
}

// Pack returns the compressed data.
func (p *Packer) Pack(data []byte) []byte { return p.w.EncodeAll(data, nil) }

// Unpack decompresses data from Pack, if the result has at most limit bytes.
func Unpack(data []byte, limit int) ([]byte, error) {
	r, err := zstd.NewReader(bytes.NewReader(data), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, fmt.Errorf("unpacking: %w", err)
	}
	defer r.Close()
	out, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err != nil {
		return nil, fmt.Errorf("unpacking: %w", err)
	}
	if len(out) > limit {
		return nil, fmt.Errorf("unpacking: it is larger than %d bytes", limit)
	}
	return out, nil
}

// Reader reads decompressed data. One goroutine may use it.
type Reader struct {
	from    counted
	decoder io.Reader
	out     int64
}

// NewReader returns a Reader for a coding that Name returned. It may wait for the first bytes. It
// starts no goroutine and needs no Close.
func NewReader(name string, src io.Reader) (*Reader, error) {
	r := &Reader{from: counted{src: src}}
	var err error
	switch name {
	case "gzip":
		r.decoder, err = gzip.NewReader(&r.from)
	case "deflate":
		r.decoder, err = zlib.NewReader(&r.from)
	case "zstd":
		r.decoder, err = zstd.NewReader(&r.from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	case "br":
		r.decoder = brotli.NewReader(&r.from)
	default:
		return nil, ErrUnknown
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return r, nil
}

// Read implements io.Reader. Data that expands too much ends with ErrTooDense.
func (r *Reader) Read(p []byte) (int, error) {
	n, err := r.decoder.Read(p)
	r.out += int64(n)
	if r.out > free+MaxRatio*r.from.n {
		return 0, ErrTooDense
	}
	return n, err
}

// counted counts the bytes that are read.
type counted struct {
	src io.Reader
	n   int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.src.Read(p)
	c.n += int64(n)
	return n, err
}
