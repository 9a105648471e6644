package inspect_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery/inspect"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// What is ruled out in a text is so whatever stands on the lines around it, and it
// is found again.
func FuzzPreferences(f *testing.F) {
	p := inspect.NewPreferences(configs.PreferenceRules)
	f.Add("never use sudo", "Hello.")
	f.Add("Nicht löschen!", "ни в коем случае\nне удаляй")
	f.Add("不要使用 sudo。", "without\u2028asking; \xff\xfe")
	f.Add(strings.Repeat("do not ", 100), "no, install it")
	f.Fuzz(func(t *testing.T, one, two string) {
		read := func(text string) (out string) {
			raw, err := json.Marshal(text)
			if err != nil {
				t.Fatal(err)
			}
			b := recoverytest.Parse(t, `{"model":"m","messages":[{"role":"user","content":`+string(raw)+`}]}`, transcript.Chat)
			a := p.Barred(b)
			if again := p.Barred(b); again != a {
				t.Fatalf("%q: %v, and then %v", text, a, again)
			}
			return a.String()
		}
		if len(one)+len(two) > 8<<10 {
			return
		}
		all := read(one + "\n" + two)
		for _, part := range []string{one, two} {
			for _, deed := range strings.Split(read(part), ",") {
				if !strings.Contains(all, deed) {
					t.Fatalf("%q: %q is ruled out by %q alone, by both %q", part, deed, part, all)
				}
			}
		}
	})
}
