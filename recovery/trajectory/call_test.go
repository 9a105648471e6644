package trajectory

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestCanonical(t *testing.T) {
	for _, c := range [][2]string{
		{`{"b":1,"a":"x"}`, `{ "a" : "\u0078", "b" : 1.0 }`}, {`{"a":{"d":null,"c":[]}}`, `{"a":{"c":[ ],"d":null}}`}, {" ls -l\n", "ls -l"},
		{`{"a":1,"a":2}`, `{"a":2}`},
	} {
		if x, y := canonical(c[0]), canonical(c[1]); x != y {
			t.Errorf("%s is not %s: %s, %s", c[0], c[1], x, y)
		}
	}
	for _, c := range [][2]string{
		{`{"a":1}`, `{"a":"1"}`}, {`{"a":12345678901234567}`, `{"a":12345678901234568}`}, {`{"a":{"b":1}}`, `{"a":{},"b":1}`}, {`{"a":`, `{"a":1`},
	} {
		if canonical(c[0]) == canonical(c[1]) {
			t.Errorf("%s is %s", c[0], c[1])
		}
	}
	deep := strings.Repeat("[", 100_000)
	if canonical(deep) != deep {
		t.Error("a deep value was read")
	}
}

// What is known at sight to be canonical is so when it is read.
func TestSortedTexts(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	sorted := 0
	for range 20000 {
		s := `{`
		for i := range 1 + rnd.IntN(3) {
			s += []string{"", ",", ","}[min(i, 2)] + []string{`"a"`, `"b"`, `"c d"`, `"b/é"`, `""`, `"x\\ty"`, `1`}[rnd.IntN(7)] +
				[]string{":", ":", ":", " :", ","}[rnd.IntN(5)] + []string{`"a"`, `"a<b>&'\x7f"`, `"é"`, `""`, `"\\u0041"`, `2`, `{"a":"b"}`, `"a`}[rnd.IntN(8)]
		}
		if s += []string{"}", "}", "}", "", "}}", ",}"}[rnd.IntN(6)]; !sortedTexts(s) {
			continue
		}
		sorted++
		if got, want := canonical(s), canonicalJSON(s); got != want || want == s {
			t.Fatalf("%s: %s, want %s", s, got, want)
		}
	}
	if sorted < 200 {
		t.Errorf("only %d are known at sight", sorted)
	}
}
