package tokenizer

import (
	"bytes"
	"compress/gzip"
	"flag"
	"os"
	"strings"
	"testing"

	loader "github.com/pkoukk/tiktoken-go-loader"
	"github.com/pkoukk/tiktoken-go-loader/assets"
)

var update = flag.Bool("update", false, "write the embedded vocabularies anew, from the loader's files")

// writeVocabulary compresses the loader's file of that name.
func writeVocabulary(t *testing.T, asset string) {
	t.Helper()
	data, err := assets.Assets.ReadFile(asset)
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("vocabularies/"+asset+".gz", packed.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Exactly the tokens that tiktoken-go's loader reads have a rank, and the same one.
func TestVocabularyEqualsLoader(t *testing.T) {
	for _, c := range []*core{&o200kCore, &cl100kCore} {
		if *update {
			writeVocabulary(t, c.asset)
			continue
		}
		v, err := loadVocabulary(c.asset)
		if err != nil {
			t.Fatal(err)
		}
		want, err := loader.NewOfflineLoader().LoadTiktokenBpe(c.asset)
		if err != nil {
			t.Fatal(err)
		}
		if len(v.ends)-1 != len(want) {
			t.Errorf("%s: %d tokens, want %d", c.asset, len(v.ends)-1, len(want))
		}
		for word, rank := range want {
			if got := v.rank(word); got != uint32(rank) {
				t.Fatalf("%s: rank(%q) = %d, want %d", c.asset, word, got, rank)
			}
			for _, other := range []string{word + "\x00", word[1:], word[:len(word)-1] + "\xfe"} {
				r, ok := want[other]
				if got := v.rank(other); ok && got != uint32(r) || !ok && got != noRank {
					t.Fatalf("%s: rank(%q) = %d, want %d, %v", c.asset, other, got, r, ok)
				}
			}
		}
		for b := range 256 {
			if v.rank(string([]byte{byte(b)})) == noRank {
				t.Errorf("%s: byte %#x is not a token", c.asset, b)
			}
		}
	}
}

func TestParseVocabularyRefuses(t *testing.T) {
	for _, tc := range []struct{ name, data string }{
		{"no rank", "IQ==\n"},
		{"rank is no number", "IQ== x\n"},
		{"rank out of order", "IQ== 0\nIg== 2\n"},
		{"rank twice", "IQ== 0\nIg== 0\n"},
		{"not base64", "!!!! 0\n"},
		{"empty token", " 0\n"},
	} {
		if _, err := parseVocabulary([]byte(tc.data)); err == nil {
			t.Errorf("%s: no error", tc.name)
		}
	}
	if _, err := loadVocabulary("absent.tiktoken"); err == nil {
		t.Error("absent file: no error")
	}
	v, err := parseVocabulary([]byte("IQ== 0\n\nIg== 1"))
	if err != nil || v.rank("!") != 0 || v.rank("\"") != 1 || v.rank("") != noRank {
		t.Errorf("a small file: %v, %v", v, err)
	}
}

// Without a vocabulary the count is the number of bytes, for short and long pieces.
func TestCountWithoutVocabulary(t *testing.T) {
	enc := &Encoding{name: "broken", core: &core{asset: "absent.tiktoken", split: splitO200K}}
	for _, n := range []int{1, 40, 3 * windowSize} {
		text := strings.Repeat("a", n)
		if got := enc.Count(text); got != n {
			t.Errorf("Count of %d bytes = %d", n, got)
		}
	}
}

func FuzzParseVocabulary(f *testing.F) {
	f.Add([]byte("IQ== 0\nIg== 1\nISI= 2\n"))
	f.Add([]byte("IQ== 0\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := parseVocabulary(data)
		if err != nil {
			return
		}
		for r := range len(v.ends) - 1 {
			word := v.text[v.ends[r]:v.ends[r+1]]
			if got := v.rank(string(word)); got > uint32(r) || !bytes.Equal(v.text[v.ends[got]:v.ends[got+1]], word) {
				t.Fatalf("rank(%q) = %d, want %d", word, got, r)
			}
		}
	})
}
