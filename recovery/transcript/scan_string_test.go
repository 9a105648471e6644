package transcript

import (
	"encoding/json"
	"strings"
	"testing"
)

// Every sequence of up to four of the bytes that matter, at every place in a
// block of 32 bytes and with an end of the string near and far.
func TestStringsAtEveryPlace(t *testing.T) {
	const alphabet = "\\\"nu0\x01\xff"
	check := func(raw []byte) {
		if got, want := Valid(raw, 1) == nil, json.Valid(raw); got != want {
			t.Fatalf("%q: valid %v, encoding/json says %v", raw, got, want)
		}
	}
	var sequences []string
	level := []string{""}
	for range 4 {
		var next []string
		for _, s := range level {
			for i := range len(alphabet) {
				next = append(next, s+alphabet[i:i+1])
			}
		}
		sequences, level = append(sequences, next...), next
	}
	for at := range 34 {
		for _, end := range []string{"", `"`, strings.Repeat("y", 40) + `"`, `\\u00e9\u00E9` + strings.Repeat("y", 32) + `\""`} {
			prefix := `"` + strings.Repeat("x", at)
			for _, s := range sequences {
				check([]byte(prefix + s + end))
			}
		}
	}
}

// What is wrong first is what the error tells, wherever words and blocks begin.
func TestStringErrorsAtEveryPlace(t *testing.T) {
	for at := range 70 {
		for in, want := range map[string]string{
			"\n\\d":     "control character 0x0a",
			"\\\n":      "a backslash before byte 0x0a",
			"\\\\\n":    "control character 0x0a",
			`\d` + "\n": "a backslash before 'd'",
			`\\\d`:      "a backslash before 'd'",
			`\u12x4`:    "'x'",
		} {
			raw := `"` + strings.Repeat("x", at) + in + strings.Repeat("y", 40) + `"`
			err := Valid([]byte(raw), 1)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Fatalf("%q: %v, want %s", raw, err, want)
			}
		}
	}
}
