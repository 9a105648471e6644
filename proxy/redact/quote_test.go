package redact

import "testing"

func TestValue(t *testing.T) {
	for in, want := range map[string]string{
		"redis://u:p@h:1/0":      "redis://[redacted]@h:1/0",
		"redis://:p@h":           "redis://[redacted]@h",
		"redis://h:1":            "redis://h:1",
		"redis://u:p/q@h":        "redis://[redacted]@h",
		"redis://u:p@q@h/0":      "redis://[redacted]@h/0",
		"redis://u:p@h?a=b@c":    "redis://[redacted]@h?a=b@c",
		"redis://h1:1,u:p@h2:2/": "redis://[redacted]@h2:2/",
		"https://h/@cf/model":    "https://h/@cf/model",
		"a@b":                    "a@b",
		"redis://:p?q@h":         "redis://[redacted]@h", // no URL, as it is
		"x ghu_0123456789":       "[redacted]",
	} {
		if got := Value(in); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}
