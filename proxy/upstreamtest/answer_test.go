package upstreamtest

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

func readSource(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestTexts(t *testing.T) {
	for _, size := range []int{0, 1, 2, 7, 600, 4000, 100_000} {
		text := TextOf("svc", "", size)
		if len(text) != size || !utf8.ValidString(text) {
			t.Errorf("size %d: %d bytes, valid %t", size, len(text), utf8.ValidString(text))
		}
		if TextOf("svc@429/ok", "", size) != text {
			t.Errorf("size %d: the script changes the text", size)
		}
	}
	a, b, plain := TextOf("svc", "A", 600), TextOf("svc", "B", 600), TextFor("svc")
	if a[:4] == b[:4] || a[:4] == plain[:4] {
		t.Errorf("variants begin alike: %q %q %q", a[:4], b[:4], plain[:4])
	}
	if TextFor("other") == plain {
		t.Error("two names share a text")
	}
	if !strings.Contains(plain, `"`) || !strings.Contains(plain, `\`) || utf8.RuneCountInString(plain) == len(plain) {
		t.Errorf("nothing to escape or no multi-byte characters in %q", plain)
	}
}

func TestPieces(t *testing.T) {
	for _, text := range []string{"", "a", "日本語", TextOf("svc", "", 999), "tab\tnul\x00\r\n\"\\"} {
		for _, n := range []int{1, 2, 3, 20, 5000} {
			parts := pieces(text, n)
			if len(parts) > n {
				t.Errorf("%d pieces of %q, at most %d wanted", len(parts), text, n)
			}
			var back strings.Builder
			for _, p := range parts {
				var s string
				if err := json.Unmarshal([]byte(`"`+p+`"`), &s); err != nil {
					t.Fatalf("%q: %v", p, err)
				}
				back.WriteString(s)
			}
			if back.String() != text {
				t.Errorf("%d pieces of %q give %q", n, text, back.String())
			}
		}
	}
	if n := len(pieces(TextOf("svc", "", 600), 20)); n != 20 {
		t.Errorf("%d pieces, want 20", n)
	}
}

func TestContinued(t *testing.T) {
	const text = "one two three four five six seven"
	for _, tc := range []struct {
		prefix string
		mode   prefillMode
		want   string
	}{
		{"", prefillContinue, text},
		{"one two th", prefillContinue, "ree four five six seven"},
		{"one two", prefillIgnore, text},
		{"one two three four five", prefillOverlap, "two three four five six seven"},
		{"one", prefillOverlap, "one two three four five six seven"},
		{"something else", prefillContinue, PrefillElsewhere},
		{text, prefillContinue, ""},
	} {
		if got := continuation(text, tc.prefix, tc.mode); got != tc.want {
			t.Errorf("%q, mode %s: %q, want %q", tc.prefix, tc.mode, got, tc.want)
		}
	}
}
