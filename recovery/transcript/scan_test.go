package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// samples are the bodies in testdata, by name.
func samples(t testing.TB) map[string][]byte {
	t.Helper()
	files, _ := filepath.Glob("testdata/*.json")
	if len(files) == 0 {
		t.Fatal("no samples")
	}
	out := make(map[string][]byte)
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(f)] = raw
	}
	return out
}

// jsonCases are inputs at the edges of the grammar; they also seed the fuzzers.
var jsonCases = []string{
	``, ` `, "\n\t\r ", `{}`, `[]`, ` { } `, `{"a":1}`, `{"a":1,}`, `{,}`, `[,]`, `[1,]`, `[1 2]`, `{"a" 1}`, `{"a":}`, `{a:1}`, `{"a":1 "b":2}`,
	`{"a":[{"b":[]},{}]}`, `[[[]]]`, `[`, `]`, `{`, `}`, `{"a"`, `{"a":`, `{"a":1`, `[}`, `{]`, `[1}`, `{"a":1]`, `{}{}`, `{} x`, `{}]`, `1 2`,
	`0`, `-0`, `00`, `01`, `-`, `-a`, `1.`, `.5`, `1.5`, `1e5`, `1E+5`, `1e-5`, `1e`, `1e+`, `1.e5`, `+1`, `0x1`, `1_000`, `NaN`, `Infinity`, `-12.50e+10`,
	`true`, `false`, `null`, `tru`, `truex`, `True`, `nul`, `nulll`, `t`, `f`, `n`,
	`""`, `"`, `"a`, `"abcdefgh"`, `"abcdefghi`, `"\"`, `"\""`, `"\\"`, `"\x"`, `"\`, `"\u"`, `"\u12"`, `"\u12g4"`, `"\u00e9"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\uDEAD x"`,
	`"\/\b\f\n\r\t"`, "\"a\nb\"", "\"a\x00b\"", "\"a\x1fb\"", "\"a\x7fb\"", "\"\xff\xfe\"", "\"0123456\x1f\"", "\"01234567\x01\"", "\"é日本語😀\"", "\"\xe9\xe9\xe9\xe9\xe9\xe9\xe9\xa2\xdc\"",
	"\xef\xbb\xbf{}", "\x00", "{}\x00", "\v{}", "{\"a\":\u00a01}", `'a'`, `{'a':1}`, `// c`, `{"a":1/**/}`, `"` + strings.Repeat("x", 100) + `"`,
	`{"a":"\u0000"}`, `[1,2,3,true,false,null,"x",{"y":-1.5e3}]`, "[\"a\"\n,\t\"b\"\r]",
}

func TestValidAgreesWithEncodingJSON(t *testing.T) {
	for _, in := range jsonCases {
		if got, want := Valid([]byte(in), 10000) == nil, json.Valid([]byte(in)); got != want {
			t.Errorf("%q: valid %v, encoding/json says %v", in, got, want)
		}
	}
	for name, raw := range samples(t) {
		if err := Valid(raw, 0); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		// Every cut and every flipped byte must be judged alike.
		for i := 0; i < len(raw); i += 97 {
			if got, want := Valid(raw[:i], 0) == nil, json.Valid(raw[:i]); got != want {
				t.Errorf("%s cut at %d: valid %v, want %v", name, i, got, want)
			}
			mutated := append([]byte(nil), raw...)
			mutated[i] ^= byte(1 << (i % 8))
			if got, want := Valid(mutated, 0) == nil, json.Valid(mutated); got != want {
				t.Errorf("%s flipped at %d: valid %v, want %v", name, i, got, want)
			}
		}
	}
}

// Every byte value at every place of an eight-byte word, before and after the
// bytes whose marks could borrow.
func TestStringScanSeesEveryByte(t *testing.T) {
	for _, neighbour := range []byte{'a', '!', ' ', '#', 0x80, 0xff, '[', ']', 0x7f} {
		for at := range 17 {
			for c := range 256 {
				in := []byte(`"` + strings.Repeat(string([]byte{neighbour}), 17) + `"`)
				in[1+at] = byte(c)
				if got, want := Valid(in, 1) == nil, json.Valid(in); got != want {
					t.Fatalf("%q: valid %v, want %v", in, got, want)
				}
			}
		}
	}
}

func TestDepth(t *testing.T) {
	nest := func(n int, open, shut string) []byte {
		return []byte(strings.Repeat(open, n) + strings.Repeat(shut, n))
	}
	for _, depth := range []int{1, 2, 63, 64, 65, 512, 513, 2000} {
		if err := Valid(nest(depth, "[", "]"), depth); err != nil {
			t.Errorf("depth %d at its limit: %v", depth, err)
		}
		var e *Error
		if err := Valid(nest(depth+1, "[", "]"), depth); !errors.As(err, &e) || e.Code != CodeTooDeep {
			t.Errorf("depth %d above its limit: %v", depth, err)
		}
	}
	// Alternating kinds, so that the remembered kind of each level matters.
	mixed := append(append([]byte(strings.Repeat(`[{"a":`, 700)), '1'), strings.Repeat(`}]`, 700)...)
	if err := Valid(mixed, 5000); err != nil {
		t.Error(err)
	}
	mixed[len(mixed)-4] = ']'
	if Valid(mixed, 5000) == nil {
		t.Error("a wrong bracket deep inside passed")
	}
	// What kills recursive readers: no memory is spent on it.
	hostile := []byte(strings.Repeat("[", 6<<20))
	if n := testing.AllocsPerRun(1, func() { _ = Valid(hostile, 0) }); n > 10 {
		t.Errorf("%v allocations on hostile nesting", n)
	}
	if _, err := Parse([]byte(`{"messages":`+string(hostile)), Chat, Limits{}); err == nil || err.(*Error).Code != CodeTooDeep {
		t.Errorf("hostile nesting in the history: %v", err)
	}
	for depth := 1; depth < 6; depth++ {
		for _, in := range []string{`{}`, `{"messages":[]}`, `{"messages":[{}]}`, `{"messages":[{"content":[]}]}`, `{"messages":[[]]}`, `{"x":[{}]}`} {
			_, err := Parse([]byte(in), Chat, Limits{Depth: depth})
			deep := strings.Count(in, "[")+strings.Count(in, "{") > depth
			if deep != (err != nil && err.(*Error).Code == CodeTooDeep) {
				t.Errorf("%s at depth %d: %v", in, depth, err)
			}
		}
	}
	// The history, whose elements are indexed on the way, counts the same depth.
	for _, pre := range []string{`{"messages":`, `{"messages":[`, `{"messages":[{"content":`, `{"x":`} {
		for depth := 3; depth < 12; depth++ {
			in := pre + strings.Repeat("[", depth)
			_, err := Parse([]byte(in), Chat, Limits{Depth: 8})
			deep := strings.Count(in, "[")+strings.Count(in, "{") > 8
			if got := err.(*Error).Code == CodeTooDeep; got != deep {
				t.Errorf("%s: %v", in, err)
			}
		}
	}
}

func TestValidAllocatesNothing(t *testing.T) {
	raw := samples(t)["pi.json"]
	if n := testing.AllocsPerRun(10, func() { _ = Valid(raw, 0) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestErrorsNameTheByte(t *testing.T) {
	for _, c := range []struct {
		in     string
		code   Code
		offset int
		say    string
	}{
		{"", CodeInvalidJSON, 0, "the body is empty"},
		{"\xef\xbb\xbf\xef\xbb\xbf{}", CodeInvalidJSON, 3, "where a value is expected"},
		{`{"model":"m",}`, CodeInvalidJSON, 13, `'}' at byte 13, where a quoted name is expected`},
		{`{"model":"m"`, CodeInvalidJSON, 12, "ends too early"},
		{`{"model":"m`, CodeInvalidJSON, 11, "inside a string"},
		{"{\"model\":\"a\nb\"}", CodeInvalidJSON, 11, "control character 0x0a"},
		{`{"model":'m'}`, CodeInvalidJSON, 9, "a value is expected"},
		{`{"model":"\d"}`, CodeInvalidJSON, 11, "a backslash before 'd'"},
		{`{"model":tru}`, CodeInvalidJSON, 12, "where true is expected"},
		{`{"a":1} {`, CodeInvalidJSON, 8, "after the end"},
		{`[1]`, CodeNotObject, 0, "must be a JSON object"},
		{`"x"`, CodeNotObject, 0, "must be a JSON object"},
		{`[1`, CodeInvalidJSON, 2, "ends too early"},
		{`{"model":"a","x":1,"model":"b"}`, CodeDuplicateKey, 19, `"model" occurs twice`},
		{`{"model":"a","mod\u0065l":"b"}`, CodeDuplicateKey, 13, `"model" occurs twice`},
		{`{"` + strings.Repeat("k", 99) + `":1,"` + strings.Repeat("k", 99) + `":1}`, CodeDuplicateKey, 105, "kkk…\" occurs twice"},
		{`{"model":3}`, CodeWrongType, 9, "'model' must be a string"},
		{`{"stream":"true"}`, CodeWrongType, 10, "'stream' must be true or false"},
		{`{"messages":{}}`, CodeWrongType, 12, "'messages' must be an array"},
		{`{"messages":"hi"}`, CodeWrongType, 12, "'messages' must be an array"},
		{`{"n":"2"}`, CodeWrongType, 5, "'n' must be an integer"},
		{`{"n":1.5}`, CodeWrongType, 5, "'n' must be an integer"},
		{`{"stream_options":[]}`, CodeWrongType, 18, "'stream_options' must be an object"},
	} {
		_, err := Parse([]byte(c.in), Chat, Limits{})
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%q: %v", c.in, err)
			continue
		}
		if e.Code != c.code || e.Offset != c.offset || !strings.Contains(e.Message, c.say) || e.Error() != e.Message {
			t.Errorf("%q: %+v", c.in, *e)
		}
	}
}

func TestManyFields(t *testing.T) {
	var in strings.Builder
	in.WriteString(`{`)
	for i := range 900 {
		in.WriteString(`"k` + strings.Repeat("a", i%7) + string(rune('a'+i%26)) + string(appendInt(nil, i)) + `":` + string(appendInt(nil, i)) + `,`)
	}
	in.WriteString(`"model":"m"}`)
	b, err := Parse([]byte(in.String()), Chat, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if b.Model() != "m" {
		t.Error(b.Model())
	}
	if raw, ok := b.Field("kaaab27"); ok || raw != nil {
		t.Error("a field that does not exist")
	}
	n := 0
	b.Fields(func(name string, raw []byte) bool {
		got, ok := b.Field(name)
		if !ok || string(got) != string(raw) {
			t.Errorf("%s: %q", name, got)
		}
		n++
		return n < 800
	})
	if n != 800 {
		t.Errorf("%d fields visited", n)
	}
	dup := strings.Replace(in.String(), `"model":"m"`, `"model":"m","`+`kb1":0,"ka`+`b1":1}`, 1)
	if _, err := Parse([]byte(dup[:len(dup)-1]), Chat, Limits{}); err == nil || err.(*Error).Code != CodeDuplicateKey {
		t.Errorf("duplicate among many: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, in := range jsonCases {
		f.Add([]byte(in))
		f.Add([]byte(`{"messages":[{"role":"user","content":` + in + `}],"tools":` + in + `}`))
	}
	for _, raw := range samples(f) {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		before := string(raw)
		valid := json.Valid(raw)
		if got := Valid(raw, 10000) == nil; got != valid {
			t.Fatalf("valid %v, encoding/json says %v", got, valid)
		}
		b, err := Parse(raw, Chat, Limits{Depth: 10000})
		if string(raw) != before {
			t.Fatal("the input was changed")
		}
		if err != nil {
			e := err.(*Error)
			if valid && e.Code == CodeInvalidJSON || e.Offset < 0 || e.Offset > len(raw) || e.Message == "" {
				t.Fatalf("valid %v: %+v", valid, *e)
			}
			return
		}
		if !json.Valid(bytes.TrimPrefix(raw, []byte(byteOrderMark))) {
			t.Fatal("an invalid body was parsed")
		}
		exercise(t, b)
	})
}

// exercise reads everything there is to read and compares it with encoding/json.
func exercise(t *testing.T, b *Body) {
	t.Helper()
	var want map[string]json.RawMessage
	if err := json.Unmarshal(bytes.TrimPrefix(b.Raw(), []byte(byteOrderMark)), &want); err != nil {
		t.Fatal(err)
	}
	b.Fields(func(name string, raw []byte) bool {
		if utf8.ValidString(name) && string(want[name]) != string(raw) {
			t.Fatalf("field %q: %q, want %q", name, raw, want[name])
		}
		return true
	})
	var list []json.RawMessage
	if raw, ok := b.Field("messages"); ok {
		if err := json.Unmarshal(raw, &list); err != nil {
			t.Fatal(err)
		}
	}
	if len(list) != len(b.Messages()) {
		t.Fatalf("%d messages, want %d", len(b.Messages()), len(list))
	}
	for i, m := range b.Messages() {
		if string(m.Raw()) != string(list[i]) {
			t.Fatalf("message %d: %q, want %q", i, m.Raw(), list[i])
		}
		if m.Text() != string(m.AppendText(nil)) {
			t.Fatal("two texts")
		}
		if at, ok := m.Content(); ok {
			if raw, _ := m.Field("content"); string(raw) != string(b.Raw()[at.Start:at.End]) {
				t.Fatalf("content span %v", at)
			}
		}
		for _, c := range m.ToolCalls() {
			c.Text()
			if string(c.Arguments) != string(b.Raw()[c.Span.Start:c.Span.End]) {
				t.Fatalf("arguments span %v", c.Span)
			}
		}
		m.ToolCallID()
		m.AppendMedia(nil)
	}
	b.Tools()
	b.System()
	b.UserTurns()
	b.OutputLimit()
	b.ResponseFormat()
	b.Logprobs()
	b.Audio()
	b.Reasoning()
	b.ServiceTier()
	b.CacheKey()
	b.EstimateTokens()
}

func TestDecode(t *testing.T) {
	for in, want := range map[string]string{
		`"a\n\u00e9\ud83d\ude00"`: "a\né😀", `""`: "", `"\ud83d"`: "\ufffd", `"\ud83dx"`: "\ufffdx", `"\ude00\ud83d"`: "\ufffd\ufffd",
		`"\ud83d\u0041"`: "\ufffdA", `"a" `: "a", `"\b\f\r\t\/\\\""`: "\b\f\r\t/\\\"",
	} {
		if got, ok := Decode([]byte(in)); !ok || got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
	for _, in := range []string{``, `"`, `a`, `1`, `"a`, `"a"b"`, `["a"]`, ` "a"`, `"\x"`} {
		if got, ok := Decode([]byte(in)); ok {
			t.Errorf("%s: %q", in, got)
		}
	}
	if got := string(String("<&>\u2028é\x00\x1f\x7f\b\f\n\r\t\"\\/\xff")); got != `"<&>`+"\u2028é"+`\u0000\u001f`+"\x7f"+`\b\f\n\r\t\"\\/`+"\ufffd"+`"` {
		t.Error(got)
	}
}

func FuzzStrings(f *testing.F) {
	for _, in := range jsonCases {
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in string) {
		raw := String(in)
		var want string
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatalf("%q: %v", raw, err)
		}
		got, ok := Decode(raw)
		if !ok || got != want || utf8.ValidString(in) && got != in {
			t.Fatalf("%q became %q", in, got)
		}
		// Anything that is a string for encoding/json decodes the same.
		if utf8.ValidString(in) && json.Unmarshal([]byte(in), &want) == nil && in != "null" {
			if got, ok := Decode([]byte(in)); in[0] == '"' && (!ok || got != want) {
				t.Fatalf("%q decoded to %q, want %q", in, got, want)
			}
		}
	})
}
