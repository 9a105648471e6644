package recovery

import "testing"

func TestWithoutThoughts(t *testing.T) {
	for in, want := range map[string]string{
		"a":                            "a",
		"\n<think>x</think>\n\nb ":     "b",
		"<think>x":                     "<think>x",
		"a <think>x</think>":           "a <think>x</think>",
		"<thinking>x</thinking>":       "",
		"Let me see.\n</think>\n\nb":   "b", // the prompt had the opening tag
		"It ends with </think> there.": "It ends with </think> there.",
		"a\n<think>\nx\n</think>\nb":   "a\n<think>\nx\n</think>\nb",
		"<think>x</think><think>y":     "<think>y",
	} {
		if got := string(WithoutThoughts([]byte(in))); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
