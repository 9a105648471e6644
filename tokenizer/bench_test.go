package tokenizer

import (
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
)

const megabyte = 1 << 20

// repeatTo repeats text until it has n bytes, cut at a character boundary.
func repeatTo(text string, n int) string {
	return strings.ToValidUTF8(strings.Repeat(text, n/len(text)+1)[:n], "")
}

// hardText is a text that a naive splitter or merge processes slowly.
type hardText struct{ name, text string }

// hardTexts returns hard texts of about n bytes.
func hardTexts(n int) []hardText {
	rng := rand.New(rand.NewPCG(13, 14))
	random := func(alphabet string) string {
		runes := []rune(alphabet)
		var b strings.Builder
		for b.Len() < n {
			b.WriteRune(runes[rng.IntN(len(runes))])
		}
		return b.String()
	}
	var han strings.Builder
	for han.Len() < n {
		han.WriteRune(rune(0x4e00 + rng.IntN(3000)))
	}
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	return []hardText{
		{"one letter", repeatTo("a", n)},
		{"upper case", random(letters[:26])},
		{"one word", random(strings.ToLower(letters[:26]))},
		{"mixed case", random(letters)},
		{"base64", random(letters + "0123456789+/")},
		{"digits", random("0123456789")},
		{"Chinese", han.String()},
		{"Chinese sentence", repeatTo("我们在这里讨论如何计算一个没有标点的长文本", n)},
		{"spaces", repeatTo(" ", n)},
		{"line breaks", repeatTo("\n", n)},
		{"line break, spaces", "\n" + repeatTo(" ", n)},
		{"white space", random(" \t\n\r\v\u00a0\u3000")},
		{"dashes", repeatTo("-", n)},
		{"symbols", random("!#$%&()*+,-./:;<=>?@[]^_{|}~")},
		{"marks", repeatTo("\u0301", n)},
		{"mark, upper case", repeatTo("\u0301", 2) + repeatTo("A", n)},
		{"caseless, upper case", repeatTo("中", 3) + repeatTo("A", n)},
		{"emoji", repeatTo("👩🏽‍💻👨‍👩‍👧‍👦❤️", n)},
		{"apostrophes", repeatTo("'", n)},
		{"contractions", repeatTo("'s't're", n)},
		{"invalid", strings.Repeat("\xff", n)},
		{"nul", strings.Repeat("\x00", n)},
		{"minified", repeatTo(`{"id":"c0ffee","n":[1,2.5e3,null],"t":"aGVsbG8="},`, n)},
	}
}

func BenchmarkAgentText(b *testing.B) {
	text := repeatTo(sample(b), megabyte)
	for _, name := range []string{O200K, CL100K} {
		enc, oracle := mustGet(b, name), oracles()[name]
		enc.Count("x")
		b.Run(name+"/ours", func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				enc.Count(text)
			}
		})
		b.Run(name+"/tiktoken-go", func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				oracle.EncodeOrdinary(text)
			}
		})
	}
}

func BenchmarkHard(b *testing.B) {
	enc := mustGet(b, O200K)
	enc.Count("x")
	for _, tc := range hardTexts(megabyte) {
		b.Run(tc.name, func(b *testing.B) {
			b.SetBytes(int64(len(tc.text)))
			b.ReportAllocs()
			for b.Loop() {
				enc.Count(tc.text)
			}
		})
	}
}

// BenchmarkLoad measures the time and allocations of loading, and the memory that remains in use.
func BenchmarkLoad(b *testing.B) {
	for _, asset := range []string{o200kCore.asset, cl100kCore.asset} {
		b.Run(asset, func(b *testing.B) {
			b.ReportAllocs()
			var v *vocabulary
			for b.Loop() {
				v, _ = loadVocabulary(asset)
			}
			b.ReportMetric(float64(cap(v.text)+4*cap(v.ends)+4*cap(v.slots)), "resident-B")
			runtime.KeepAlive(v)
		})
	}
	b.Run("classes", func(b *testing.B) {
		b.ReportAllocs()
		var t *classTable
		for b.Loop() {
			t = buildClasses()
		}
		b.ReportMetric(float64(len(t.blocks)+2*len(t.index)), "resident-B")
	})
}
