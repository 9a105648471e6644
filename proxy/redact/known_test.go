package redact

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

var known = []string{"sk-abcabcabd", "sk-abcabcabd-longer", "with/slash+and\"quote", "EMPTY", "aaaaaaaab"}

// What is hidden of a whole text is hidden of the same text in pieces, and all
// else arrives as it was.
func TestSecretsAreHidden(t *testing.T) {
	s := NewKnown(known, Least)
	for text, want := range map[string]string{
		"":                                     "",
		"nothing here":                         "nothing here",
		"key sk-abcabcabd.":                    "key [redacted].",
		"sk-abcabcabcabd":                      "sk-abcabcabcabd",
		"sk-sk-abcabcabdsk-abcabcabd":          "sk-[redacted][redacted]",
		"sk-abcabcab":                          "sk-abcabcab", // only a beginning
		`{"m":"with\/slash+and\"quote"}`:       `{"m":"[redacted]"}`,
		"?key=with%2Fslash%2Band%22quote&b=c":  "?key=[redacted]&b=c",
		"sk-abcabcabd-longer.":                 "[redacted].", // also the key that is its beginning
		"sk-abcabcabd-longsk-abcabcabd":        "[redacted]-long[redacted]",
		"EMPTY stays":                          "EMPTY stays",
		"aaaaaaaaaaaaaaaaaaaaaab":              "aaaaaaaaaaaaaa[redacted]",
		strings.Repeat("sk-abcabcabd ", 10000): strings.Repeat("[redacted] ", 10000),
	} {
		if got := string(s.Bytes([]byte(text))); got != want {
			t.Errorf("%.60q became %.60q", text, got)
		}
		for name, r := range map[string]io.Reader{"whole": strings.NewReader(text), "bytes": iotest.OneByteReader(strings.NewReader(text)), "halves": iotest.HalfReader(strings.NewReader(text))} {
			got, err := io.ReadAll(s.Body(io.NopCloser(r)))
			if err != nil || string(got) != want {
				t.Errorf("%.60q read as %s became %.60q, %v", text, name, got, err)
			}
		}
	}
}

// A stream waits for nothing that cannot become a secret.
func TestHidingHoldsNothingBack(t *testing.T) {
	s := NewKnown(known, Least)
	r, w := io.Pipe()
	defer r.Close()
	go func() { _, _ = w.Write([]byte("data: {\"a\":1}\n\n")) }()
	got := make([]byte, 100)
	if n, err := s.Body(r).Read(got); err != nil || string(got[:n]) != "data: {\"a\":1}\n\n" {
		t.Errorf("%q, %v", got[:n], err)
	}
}

func FuzzSecrets(f *testing.F) {
	f.Add([]byte("sk-abcabcabd sk-abc"), uint8(3))
	s := NewKnown(known, Least)
	f.Fuzz(func(t *testing.T, text []byte, size uint8) {
		want := s.Bytes(bytes.Clone(text))
		for _, k := range known {
			if len(k) >= Least && bytes.Contains(want, []byte(k)) {
				t.Fatalf("%q is left in %q", k, want)
			}
		}
		got, err := io.ReadAll(s.Body(io.NopCloser(&pieces{text, int(size%16) + 1})))
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("whole %q, in pieces %q, %v", want, got, err)
		}
	})
}

type pieces struct {
	rest []byte
	size int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.rest[:min(p.size, len(p.rest))])
	p.rest = p.rest[n:]
	return n, nil
}
