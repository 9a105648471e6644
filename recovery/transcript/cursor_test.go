package transcript

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// rebuild reads everything under c and writes it again without white space.
func rebuild(c *Cursor, out *strings.Builder, brackets string) {
	out.WriteByte(brackets[0])
	for n := 0; c.Next(); n++ {
		if n > 0 {
			out.WriteByte(',')
		}
		if name := c.Name(); name != nil {
			out.Write(String(string(name)))
			out.WriteByte(':')
		}
		if inner, ok := c.Enter(); ok {
			kind := "[]"
			if inner.w.object {
				kind = "{}"
			}
			rebuild(&inner, out, kind)
			c.Leave(inner)
		} else {
			out.Write(c.Value())
		}
	}
	out.WriteByte(brackets[1])
}

func TestCursor(t *testing.T) {
	const in = ` {"a" : [ 1, {"b":[]}, "x\n" ] , "skipped":{"c":[2]},"d\u0065":null, "e":{}} `
	var d Document
	c, ok := d.Open([]byte(in), 8)
	if !ok {
		t.Fatal("not opened")
	}
	var got []string
	for c.Next() {
		switch string(c.Name()) {
		case "a":
			list, _ := c.Enter()
			for list.Next() { // what nobody asks for is passed
			}
			got = append(got, string(c.Leave(list)))
		case "skipped":
		default:
			got = append(got, string(c.Name())+"="+string(c.Value()))
		}
	}
	if s := strings.Join(got, " "); s != `[ 1, {"b":[]}, "x\n" ] de=null e={}` || !d.End(c) || !d.Valid() {
		t.Errorf("%s, valid %v", s, d.Valid())
	}
	for _, in := range []string{``, `7`, `"x"`, `{`, `tru`, "\xef\xbb\xbf{}"} {
		var d Document
		if c, ok := d.Open([]byte(in), 8); ok && (c.Next() || d.End(c)) {
			t.Errorf("%q was read", in)
		} else if d.Valid() != (Valid([]byte(in), 8) == nil) {
			t.Errorf("%q: valid %v", in, d.Valid())
		}
	}
}

func FuzzCursor(f *testing.F) {
	for _, in := range jsonCases {
		f.Add([]byte(in))
		f.Add([]byte(`{"a":` + in + `,"b":[` + in + `]}`))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, deep := range []bool{false, true} {
			var d Document
			var out strings.Builder
			c, ok := d.Open(raw, 100)
			switch {
			case !ok:
			case deep:
				kind := "[]"
				if c.w.object {
					kind = "{}"
				}
				rebuild(&c, &out, kind)
			default:
				for c.Next() {
				}
			}
			valid := Valid(raw, 100) == nil
			if got := ok && d.End(c) || !ok && d.Valid(); got != valid {
				t.Fatalf("%q: valid %v, want %v", raw, got, valid)
			}
			if !valid || !ok || !deep || !utf8.Valid(raw) { // the encoder joins bytes that are no UTF-8
				continue
			}
			var want, got any
			if json.Unmarshal(raw, &want) != nil { // a number out of range
				continue
			}
			err := json.Unmarshal([]byte(out.String()), &got)
			a, _ := json.Marshal(want)
			if b, _ := json.Marshal(got); err != nil || string(a) != string(b) {
				t.Fatalf("%q was read as %q: %v", raw, out.String(), err)
			}
		}
	})
}
