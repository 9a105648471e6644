package trajectory

import (
	"strings"
	"testing"
)

func TestCanonical(t *testing.T) {
	canonical := func(s string) string { return (&Call{Arguments: s}).Canonical() }
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
