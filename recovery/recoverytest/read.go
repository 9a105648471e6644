package recoverytest

import (
	"compress/gzip"
	"io"
	"os"
	"testing"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Parse parses a request in a format; an error fails the test.
func Parse[S ~string | ~[]byte](t testing.TB, raw S, format transcript.Format) *transcript.Body {
	t.Helper()
	b, err := transcript.Parse([]byte(raw), format, transcript.Limits{})
	if err != nil {
		t.Fatalf("%v in %.2000s", err, raw)
	}
	return b
}

// Gunzip returns the decompressed content of a file.
func Gunzip(t testing.TB, file string) []byte {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
