package coding_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"

	"github.com/rebound-llm/rebound/proxy/coding"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// encoders are the codings as others write them.
func encoders() map[string]func(io.Writer) io.WriteCloser {
	return map[string]func(io.Writer) io.WriteCloser{
		"gzip":    func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
		"deflate": func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
		"br":      func(w io.Writer) io.WriteCloser { return brotli.NewWriterLevel(w, 5) },
		"zstd": func(w io.Writer) io.WriteCloser {
			z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
			if err != nil {
				panic(err)
			}
			return z
		},
	}
}

func encode(t testing.TB, name string, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := encoders()[name](&b)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// text is n bytes that shrink to about a tenth.
func text(n int) []byte {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		b.WriteString("line ")
		b.WriteString(strings.Repeat(string(rune('a'+i%26)), 1+i*i%17))
		b.WriteByte(byte(i * 7 % 251))
	}
	return []byte(b.String()[:n])
}

func TestReader(t *testing.T) {
	for name := range encoders() {
		for _, n := range []int{0, 1, 100, 3 << 20} {
			want := text(n)
			r, err := coding.NewReader(name, bytes.NewReader(encode(t, name, want)))
			if err != nil {
				t.Fatal(name, err)
			}
			got, err := io.ReadAll(r)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: %d bytes of %d, %v", name, len(got), n, err)
			}
		}
		whole := encode(t, name, text(1<<20))
		if r, err := coding.NewReader(name, bytes.NewReader(whole[:len(whole)/2])); err == nil {
			if got, err := io.ReadAll(r); err == nil {
				t.Errorf("%s: half of the data is taken for %d bytes", name, len(got))
			}
		}
	}
}

// What expands without measure ends soon, and takes little memory.
func TestBombs(t *testing.T) {
	for name := range encoders() {
		bomb := encode(t, name, bytes.Repeat([]byte{'\n'}, 24<<20))
		r, err := coding.NewReader(name, bytes.NewReader(bomb))
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, r)
		if !errors.Is(err, coding.ErrTooDense) || n > int64(len(bomb))*coding.MaxRatio+2<<20 {
			t.Errorf("%s: %d bytes out of %d, %v", name, n, len(bomb), err)
		}
	}
}

// A window that is larger than agreed is refused before memory is taken for it.
func TestLargeWindow(t *testing.T) {
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b, zstd.WithWindowSize(64<<20), zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = w.Write(text(70 << 20))
	_ = w.Close()
	r, err := coding.NewReader("zstd", &b)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, r); err == nil {
		t.Errorf("%d bytes", n)
	}
}

func TestName(t *testing.T) {
	for values, want := range map[string]string{"": "", "identity": "", "GZIP": "gzip", " x-gzip ": "gzip", "br": "br", "zstd": "zstd", "deflate": "deflate"} {
		if got, err := coding.Name([]string{values}); got != want || err != nil {
			t.Errorf("%q: %q, %v", values, got, err)
		}
	}
	for _, values := range [][]string{{"compress"}, {"gzip, br"}, {"gzip", "gzip"}, {"gzip", "identity"}, {"gzip\x00"}} {
		if got, err := coding.Name(values); !errors.Is(err, coding.ErrUnknown) {
			t.Errorf("%q: %q", values, got)
		}
	}
	if _, err := coding.NewReader("compress", nil); !errors.Is(err, coding.ErrUnknown) {
		t.Error(err)
	}
}

func FuzzReader(f *testing.F) {
	names := []string{"gzip", "deflate", "zstd", "br"}
	for i, name := range names {
		f.Add(uint8(i), encode(f, name, text(1000)))
		f.Add(uint8(i), encode(f, name, bytes.Repeat([]byte{'a'}, 2<<20)))
	}
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		r, err := coding.NewReader(names[int(which)%len(names)], bytes.NewReader(data))
		if err != nil {
			return
		}
		if n, _ := io.Copy(io.Discard, r); n > 2<<20+coding.MaxRatio*int64(len(data)) {
			t.Errorf("%d bytes out of %d", n, len(data))
		}
	})
}
