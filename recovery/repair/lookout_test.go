package repair

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rebound-llm/rebound/recovery"
)

// feedAll feeds a text to a Lookout character by character. It returns the number of free
// bytes at the end, and the maximum number of held bytes.
func feedAll(t testing.TB, l recovery.Lookout, text string) (free, held int) {
	t.Helper()
	for i := range text + " " {
		if i == 0 || i < len(text) && !utf8.RuneStart(text[i]) {
			continue
		}
		next := l.Free(text[:i])
		if next < free || next > i {
			t.Fatalf("%q: %d free, then %d", text[:i], free, next)
		}
		free, held = next, max(held, i-next)
	}
	return free, held
}

// TestLookout: in every dialect a call behind a sentence is held, and the held rest of the
// answer becomes the call.
func TestLookout(t *testing.T) {
	req, m := withTools(t, ""), mender()
	for name, c := range callsInText() {
		for _, before := range []string{"", "I look.\n", "Is 1 < 2, or `<tool_call>` a tag? [See](x).\n\n"} {
			text := before + strings.TrimPrefix(c.text, c.before)
			if before != "" && m.Mend(req, recovery.Draft{Text: text, Finish: recovery.FinishStop}).Judgement != recovery.JudgeReplace {
				if name == "hermes" || name == "kimi" || name == "deepseek v3" || name == "bare" {
					t.Errorf("%s after %q is not recognised", name, before)
				}
				continue // this form counts only as the whole answer
			}
			free, _ := feedAll(t, m.Lookout(req), text)
			v := m.Mend(req, recovery.Draft{Text: text, Shown: free, Finish: recovery.FinishStop})
			if name == "llama, only the end" { // its beginning is ordinary text
				continue
			}
			tool, args := c.want()
			if v.Judgement != recovery.JudgeReplace || len(v.Calls) != 1 || v.Calls[0].Name != tool || !same(t, v.Calls[0].Arguments,
				args) || strings.TrimSpace(*v.Text) != "" && !strings.HasPrefix(*v.Text, "<think>") {
				t.Errorf("%s after %q, of which %d bytes are free: %+v %+v", name, before, free, v, v.Flaw)
			}
			if name != "kimi headless" && free > len(before)+len(c.before)+1 {
				t.Errorf("%s after %q: %d bytes are free", name, before, free)
			}
		}
	}
}

// TestLookoutLetsTextGo: text that is no call is held only while it may become one.
func TestLookoutLetsTextGo(t *testing.T) {
	req, m := withTools(t, ""), mender()
	more := strings.Repeat(" And so the text goes on, with a < b and <td>x</td> [1].\n", 8)
	for _, text := range append(noCalls(),
		"Write <tool in a template, or <tool_calling>.", "```json\n{\"name\": \"Paris\", \"size\": 2}\n```\nThat is all.", "```python\nprint(\"hello\")\n```",
		"{\"name\": \"x\", \"version\": \"1.0\"}", "[\n  {\"id\": 1, \"city\": \"Paris\"}\n]", "print(\"get_weather\")", "```\n<tool_call>\n```", "- [ ] task\n- [x] done\n",
		"[get_weather](docs.md) tells it.", "{\"name\": \"get_weather\", \"temperature\": 3}", "use <function=...> there", "{{template}}", "[[1, 2], [3, 4]]", "#include <invoke.h>",
	) {
		free, held := feedAll(t, m.Lookout(req), text+more)
		if free != len(text+more) {
			t.Errorf("%q: %d of %d bytes are free", text, free, len(text+more))
		}
		if held > 2*len(text)+maxMark+24 {
			t.Errorf("%q: %d bytes were held", text, held)
		}
		if v := m.Mend(req, recovery.Draft{Text: text + more, Shown: free, Finish: recovery.FinishStop}); v.Judgement != recovery.JudgePass {
			t.Errorf("%q: %+v", text, v)
		}
	}
	if m.Lookout(withTools(t, `,"tool_choice":"none"`)) != nil || m.Lookout(request(t, "")) != nil {
		t.Error("a Lookout although no call is possible")
	}
}

// TestLookoutFirstWords: a first word that could begin a call is held until the next one tells, and
// not for longer.
func TestLookoutFirstWords(t *testing.T) {
	req, m := withTools(t, ""), mender()
	for _, text := range []string{"A small fox", "All done.", "Actions are", "print it", "> quoted", "function calls", "[1] says so"} {
		if free, _ := feedAll(t, m.Lookout(req), text); free != len(text) {
			t.Errorf("%q: only %d bytes are free", text, free)
		}
	}
}

// TestLookoutMissesNothing: a call that is found in a complete text was never freed, however
// the text arrived, except for calls that only their end reveals.
func TestLookoutMissesNothing(t *testing.T) {
	req, m := withTools(t, ""), mender()
	parts := append([]string{"get_weather", `(city='Paris')`, "\n", " ", "{", "}", "[", "]", "`", "```", `{"name": "get_weather", "arguments": {"city": "Paris"}}`,
		"\n{\"name\": \"bash\"", `, "arguments": {}}`, "</tool_call>", "I look.", "a < b", "<think>", "</think>", `{"city": "Paris"}`, "</function>", "<parameter=city>Paris</parameter>"}, openers...)
	rnd, found := rand.New(rand.NewPCG(3, 4)), 0
	for range 60_000 {
		var b strings.Builder
		for range 1 + rnd.IntN(7) {
			b.WriteString(parts[rnd.IntN(len(parts))])
		}
		text := b.String()
		l, free := m.Lookout(req), 0
		for i := 0; i < len(text); {
			i = min(len(text), i+1+rnd.IntN(40))
			free = l.Free(text[:i])
		}
		f := m.callFinder(req).find(text)
		if len(f.calls) == 0 {
			continue // a broken call need not be held
		}
		v := m.Mend(req, recovery.Draft{Text: text, Finish: recovery.FinishStop})
		if v.Judgement == recovery.JudgePass || strings.HasSuffix(strings.TrimSpace(text), "</function>") {
			continue
		}
		if found++; f.at < free {
			t.Fatalf("%q: %d bytes are free, but a call is at %d: %+v", text, free, f.at, v)
		}
	}
	if found < 500 {
		t.Fatalf("only %d texts had calls", found)
	}
}

// TestLookoutOfLines: lines that begin like calls cost about as much in a long text as in short ones.
func TestLookoutOfLines(t *testing.T) {
	req, m := withTools(t, ""), mender()
	text := strings.Repeat("{\"name\":\"x\"\n", 100_000)
	began := time.Now()
	l, free := m.Lookout(req), 0
	for i := 0; i <= len(text); i += 26 {
		free = l.Free(text[:i])
	}
	if took := time.Since(began); took > timeLimit || free < len(text)-maxMark {
		t.Errorf("it takes %v and frees %d of %d bytes", took, free, len(text))
	}
}

// FuzzLookout: no text crashes it, and the result never shrinks.
func FuzzLookout(f *testing.F) {
	for _, c := range callsInText() {
		f.Add("I look.\n" + c.text)
	}
	req, m := request(f, `,"tools":`+toolsJSON), mender()
	f.Fuzz(func(t *testing.T, text string) { feedAll(t, m.Lookout(req), text[:min(len(text), 2000)]) })
}
