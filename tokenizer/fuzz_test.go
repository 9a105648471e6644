package tokenizer

import "testing"

// FuzzCount compares counts with the oracle. Inputs are short because the oracle
// merges in quadratic time.
func FuzzCount(f *testing.F) {
	for _, text := range []string{
		"", "hello world", "it's IT'LL we'Ve", "\n  a\r\n\t b  ", "\u0301A\u0301b中A", "1234567 ²³", "!/\n/ //",
		"你好，世界！", "👩🏽‍💻❤️", "\xff\xc3a\xe4\xbd", "{\"a\":[1,2.5e3]}", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4000 {
			return
		}
		compare(t, text)
	})
}

// FuzzWindows compares windows of any size with encoding the piece at once.
func FuzzWindows(f *testing.F) {
	f.Add("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabaaaaaaaaaaaaaaaaaaaaaaaa", uint8(8), uint8(3))
	f.Add("你好世界你好世界你好世界", uint8(5), uint8(5))
	f.Add("0000000000", uint8(8), uint8(97)) // slack wider than the window
	f.Fuzz(func(t *testing.T, piece string, window, slack uint8) {
		if piece == "" || len(piece) > 4000 {
			return
		}
		var sc scratch
		for _, name := range []string{O200K, CL100K} {
			v := loaded(t, name)
			want := v.mergeLong(piece, &sc.long)
			if got := v.countLong(piece, int(window)+1, int(slack), &sc); got != want {
				t.Fatalf("%s: %d tokens in windows of %d, %d at once", name, got, window, want)
			}
		}
	})
}

func FuzzForModel(f *testing.F) {
	f.Add("openai/ft:gpt-4o:org::id")
	f.Add("us.openai.gpt-oss-20b-1:0")
	f.Fuzz(func(t *testing.T, model string) {
		enc, exact := ForModel(model)
		if enc == nil {
			t.Fatal("no encoding")
		}
		if _, again := ForModel("provider/" + model); exact && !again {
			t.Errorf("%q is known, but not behind a provider", model)
		}
	})
}
