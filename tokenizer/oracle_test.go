package tokenizer

import (
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"
)

// oracles builds tiktoken-go's encodings once. It sets an offline loader first, because the
// default one uses the network.
var oracles = sync.OnceValue(func() map[string]*tiktoken.Tiktoken {
	tiktoken.SetBpeLoader(loader.NewOfflineLoader())
	all := make(map[string]*tiktoken.Tiktoken)
	for _, name := range []string{O200K, CL100K} {
		enc, err := tiktoken.GetEncoding(name)
		if err != nil {
			panic(err)
		}
		all[name] = enc
	}
	return all
})

func mustGet(tb testing.TB, name string) *Encoding {
	tb.Helper()
	for _, enc := range []*Encoding{&o200k, &cl100k, &o200kHarmony} {
		if enc.Name() == name {
			return enc
		}
	}
	tb.Fatalf("no encoding %q", name)
	return nil
}

// compare compares the counts of both encodings with the oracle's. It also checks that no
// count exceeds the number of bytes, which is not proven for invalid UTF-8.
func compare(tb testing.TB, text string) {
	tb.Helper()
	for _, name := range []string{O200K, CL100K} {
		got := mustGet(tb, name).Count(text)
		if got > len(text) {
			tb.Fatalf("%s: Count(%.300q) = %d, of %d bytes", name, text, got, len(text))
		}
		want := len(oracles()[name].EncodeOrdinary(text))
		if got != want {
			tb.Fatalf("%s: Count(%.300q) = %d, oracle says %d", name, text, got, want)
		}
	}
}

// sample returns agent text: the messages of published sessions, as JSON lines.
func sample(tb testing.TB) string {
	tb.Helper()
	data, err := os.ReadFile("testdata/messages.jsonl")
	if err != nil {
		tb.Fatal(err)
	}
	return string(data)
}

// alphabets are the parts of random texts. Each exercises other rules.
var alphabets = [][]string{
	strings.Split("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ 0123456789.,;:-_/'\"(){}[]\n\t", ""),
	{" ", "  ", "\n", "\r", "\r\n", "\t", "\v", "\f", "\u0085", "\u00a0", "\u2003", "\u3000", "\u2028", "\ufeff", "\u200b", "a", "/", "1", "!"},
	{"'", "’", "s", "S", "t", "T", "r", "re", "RE", "ve", "vE", "m", "ll", "lL", "d", "D", "l", "v", "e", " ", "\n", "x", "É", "K", "İ"},
	{"0", "1", "23", "456", "٣", "９", "²", "Ⅷ", "½", "一", " ", ",", ".", "a", "\n"},
	{"你", "好", "，", "。", "世", "界", "の", "カ", "ー", "한", "국", "字", "𠮷", "々", "〇", "a", " "},
	{"Ж", "ж", "Ѐ", "и", "ё", "Α", "α", "ς", "ǅ", "ǈ", "ª", "ʰ", "א", "ع", "ـ", "ก", "ำ", "क", "्", "ष", "A", "a", "b", "B", "'s", " "},
	{"e", "E", "\u0301", "\u0308", "\u20e3", "\u0903", "\ufe0f", "a", " ", "\n", "1", "!", "'s", "中", "X"},
	{"😀", "👩", "\u200d", "💻", "🏽", "🇩", "🇪", "❤", "\ufe0f", "1", "\u20e3", " ", "a", "\U000e0067"},
	{"!", "?", "/", "//", "\\", "#", "=", "==", "-", "--", "{", "}", "\"", "\n", "\r", " ", "€", "→", "─", "<|endoftext|>", "\x00", "\x7f", "a", "1"},
	{"\xff", "\xc3", "\xe4\xbd", "\xf0\x9f", "\xed\xa0\x80", "\ufffd", "a", " ", "'", "é", "\n", "中"},
	{"the", " and", "ing", "tion", "function", "return", "self", "_", "ID", "Http", "JSON", "err", " ", "\n", "    ", "\t", "(", ")", ".", "2024"},
}

// randomText joins n random parts: mostly from one alphabet, sometimes from all, with
// occasional runs of one part.
func randomText(rng *rand.Rand, n int) string {
	var b strings.Builder
	mixed := rng.IntN(3) == 0
	alphabet := alphabets[rng.IntN(len(alphabets))]
	for range n {
		if mixed && rng.IntN(4) == 0 {
			alphabet = alphabets[rng.IntN(len(alphabets))]
		}
		part := alphabet[rng.IntN(len(alphabet))]
		times := 1
		if rng.IntN(20) == 0 {
			times += rng.IntN(8)
		}
		b.WriteString(strings.Repeat(part, times))
		if rng.IntN(30) == 0 {
			b.WriteRune(randomRune(rng))
		}
	}
	return b.String()
}

// randomRune returns any rune, low ones more often.
func randomRune(rng *rand.Rand) rune {
	return rune(rng.IntN(0x110000) >> rng.IntN(14))
}
