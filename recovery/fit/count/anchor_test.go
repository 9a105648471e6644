package count

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

func usage(input, output int) recovery.Usage { return recovery.Usage{Input: input, Output: output} }

const anchorTools = `"tools":[{"type":"function","function":{"name":"run","parameters":{"type":"object","properties":{"a":{"type":"string"}}}}}]`

// conversation returns a request with a system prompt, a task and steps of 50 to 450 tokens.
func conversation(t testing.TB, steps int, more string) *transcript.Body {
	t.Helper()
	var s strings.Builder
	s.WriteString(`{"model":"local","messages":[{"role":"system","content":"You are an agent."},{"role":"user","content":"Do it."}`)
	for i := range steps {
		fmt.Fprintf(&s, `,{"role":"assistant","content":null,"tool_calls":[{"id":"call_%d","type":"function","function":{"name":"run","arguments":"{\"a\":\"%d\"}"}}]}`, i, i)
		fmt.Fprintf(&s, `,{"role":"tool","tool_call_id":"call_%d","content":%q}`, i, words(i, 50+i*97%400))
	}
	s.WriteString(more + `],` + anchorTools + `}`)
	return parse(t, s.String())
}

func words(seed, n int) string {
	r := rand.New(rand.NewPCG(uint64(seed), 1))
	list := strings.Fields("error file open line value return main test build path result token index server client request number write read check")
	var s strings.Builder
	for range n {
		s.WriteString(list[r.IntN(len(list))] + " ")
	}
	return s.String()
}

// provider returns the report of a provider with another vocabulary, hidden instructions and
// costlier calls.
func provider(m *Meter, b *transcript.Body) int {
	w := m.Measure(b, "local").whole()
	return 700 + int(1.3*float64(w.text)) + 30*w.calls
}

func TestAnchored(t *testing.T) {
	m := meter()
	var a Anchor
	for steps := range 20 {
		b := conversation(t, steps, "")
		want := provider(m, b)
		if got, ok := m.Anchored(b, "local", a); ok != (steps > 0) {
			t.Fatalf("%d steps: anchored is %v", steps, ok)
		} else if d := got - want; steps > 8 && max(d, -d)*250 > want {
			t.Errorf("%d steps: %d tokens, reported %d", steps, got, want)
		}
		var truncated bool
		if a, truncated = m.Observe(b, "local", a, usage(want, 0)); truncated || a.Reported != want || a.Messages != len(b.Messages()) {
			t.Fatalf("%d steps: %+v, truncated %v", steps, a, truncated)
		}
	}
	if k := m.calibration.factor("local"); k.Scale < 1.26 || k.Scale > 1.45 {
		t.Errorf("learned %+v of 1.3 and 30", k)
	}
	b := conversation(t, 20, "")
	raw := string(b.Raw())
	for name, tt := range map[string]struct {
		body, model string
		ok          bool
	}{
		"the same":                {raw, "local", true},
		"another temperature":     {strings.Replace(raw, `"model"`, `"temperature":0,"model"`, 1), "local", true},
		"another tool":            {strings.Replace(raw, `"name":"run","parameters"`, `"name":"exec","parameters"`, 1), "local", false},
		"no tools":                {strings.Replace(raw, anchorTools, `"tools":[]`, 1), "local", false},
		"another model":           {raw, "other", false},
		"another system prompt":   {strings.Replace(raw, "an agent", "my agent", 1), "local", false},
		"other white space":       {strings.Replace(raw, `{"role":"user"`, `{ "role":"user"`, 1), "local", false},
		"an answer's schema":      {strings.TrimSuffix(raw, "}") + `,"response_format":{"type":"json_schema","json_schema":{}}}`, "local", false},
		"another first tool call": {strings.Replace(raw, `\"0\"`, `\"9\"`, 1), "local", false},
	} {
		if _, ok := m.Anchored(parse(t, tt.body), tt.model, a); ok != tt.ok {
			t.Errorf("%s: anchored is %v", name, ok)
		}
	}
	if _, ok := m.Anchored(conversation(t, 5, ""), "local", a); ok {
		t.Error("a shorter history is anchored")
	}
}

// If the upstream got a fitted copy, the anchor covers the next request fitted the same way.
func TestAnchorsHoldForFittedCopies(t *testing.T) {
	m := meter()
	fitted := func(b *transcript.Body) *transcript.Body {
		e := b.Edit()
		at, _ := b.Messages()[3].Content()
		e.Replace(at, []byte(`"{\"_compressed\": true, \"summary\": \"4,000 characters\"}"`))
		out, err := e.Body()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	first := conversation(t, 10, "")
	a, _ := m.Observe(fitted(first), "local", Anchor{}, usage(3000, 0))
	next := conversation(t, 11, "")
	added := m.Measure(next, "local").from(22).total()
	if n, ok := m.Anchored(fitted(next), "local", a); !ok || n < 3000+added || n > 3000+added*3/2 {
		t.Errorf("%d tokens, %v; %d were added to 3,000", n, ok, added)
	}
	if _, ok := m.Anchored(next, "local", a); ok {
		t.Error("the original is anchored on the copy")
	}
	// For the original, the session's offset is known.
	if n, basis := m.Estimate(next, "local", a); basis != BasisSession || n <= 3000 {
		t.Errorf("%d tokens, basis %d", n, basis)
	}
}

// An anchor holds if its last message, or an addition to that, was a note for one request only.
func TestAnchorsHoldAfterANote(t *testing.T) {
	m := meter()
	noted := strings.Replace(string(conversation(t, 10, "").Raw()), `],"tools"`, `,{"role":"user","content":"`+words(99, 100)+`"}],"tools"`, 1)
	last := conversation(t, 10, "")
	at, _ := last.Messages()[21].Content()
	inside, err := last.Edit().Replace(at, transcript.String(last.Messages()[21].Text()+words(99, 100))).Body()
	if err != nil {
		t.Fatal(err)
	}
	next := conversation(t, 12, "")
	for name, sent := range map[string]*transcript.Body{"as a message": parse(t, noted), "in the last message": inside} {
		counted := m.Measure(sent, "local").Total
		a, _ := m.Observe(sent, "local", Anchor{}, usage(counted+500, 0))
		want := m.Measure(next, "local").Total + 500
		if n, ok := m.Anchored(next, "local", a); !ok || n < want || n > want*105/100 {
			t.Errorf("%s: %d tokens, %v, want %d", name, n, ok, want)
		}
	}
}

// The answer's reported tokens are used instead of a count, unless they cannot be those of
// the message.
func TestAnchoredUsesTheAnswersTokens(t *testing.T) {
	m := meter()
	b, next := conversation(t, 3, ""), conversation(t, 3, `,{"role":"assistant","content":"`+words(1, 100)+`"}`)
	count := m.Measure(next, "local").from(8).total()
	for answer, want := range map[int]int{0: count, count + 30: count + 30 + messageTokens, 5: count, 20 * count: count} {
		a, _ := m.Observe(b, "local", Anchor{}, usage(5000, answer))
		if n, ok := m.Anchored(next, "local", a); !ok || n != 5000+want {
			t.Errorf("answer of %d: %d tokens, %v, want %d", answer, n, ok, 5000+want)
		}
	}
	a, _ := m.Observe(b, "local", Anchor{}, recovery.Usage{Input: 5000, Output: count + 630, Reasoning: 600})
	if n, _ := m.Anchored(next, "local", a); n != 5000+count+30+messageTokens {
		t.Errorf("with reasoning: %d tokens", n)
	}
}

func TestAnchorAsJSON(t *testing.T) {
	m := meter()
	sent := conversation(t, 5, "")
	a, _ := m.Observe(sent, "local", Anchor{}, usage(m.Measure(sent, "local").Total, 50))
	a.Doubt = &Anchor{Messages: 1, Hash: 1 << 63}
	raw, err := json.Marshal(a)
	if err != nil || len(raw) > 600 {
		t.Fatalf("%s: %v", raw, err)
	}
	var back Anchor
	if err := json.Unmarshal(raw, &back); err != nil || *back.Doubt != *a.Doubt {
		t.Fatalf("%s became %+v: %v", raw, back, err)
	}
	b := conversation(t, 6, "")
	want, _ := m.Anchored(b, "local", a)
	// Another process computes the same hashes; its calibration lacks one report.
	if n, ok := meter().Anchored(b, "local", back); !ok || n < want-want/200 || n > want+want/200 {
		t.Errorf("%d tokens, %v, want %d", n, ok, want)
	}
	for _, bad := range []Anchor{{}, {Messages: -1, Reported: 5}, {Messages: 1 << 40, Reported: 5}, {Reported: 5}} {
		if n, ok := m.Anchored(b, "local", bad); ok {
			t.Errorf("%+v: %d", bad, n)
		}
	}
}

func TestPrompt(t *testing.T) {
	for want, u := range map[int]recovery.Usage{
		1000: {Input: 1000, CacheRead: 900}, 1005: {Input: 5, CacheRead: 900, CacheWrite: 100}, 7: {Input: 7}, 0: {Output: 5},
	} {
		if got := Prompt(u); got != want {
			t.Errorf("%+v: %d, want %d", u, got, want)
		}
	}
}

// The reports of a server that silently drops the oldest messages beyond 4,096 tokens are
// never used as the size of the prompt.
func TestSilentTruncation(t *testing.T) {
	for name, vocabulary := range map[string]float64{"dense": 0.9, "the same": 1, "sparse": 1.3} {
		m := meter()
		var a Anchor
		caught := 0
		for steps := range 60 {
			b := conversation(t, steps, "")
			messages := m.Measure(b, "local")
			real := vocabulary * float64(messages.Total)
			report := real
			for i := 1; report > 4096; i++ { // whole messages, from the oldest on
				report -= vocabulary * float64(messages.Messages[i])
			}
			var truncated bool
			a, truncated = m.Observe(b, "local", a, usage(int(report), 0))
			n, _ := m.Estimate(b, "local", a)
			if real > 7500 && !truncated && float64(n) < 0.75*real {
				t.Fatalf("%s: %.0f tokens are taken for %d; reported %.0f", name, real, n, report)
			}
			if truncated {
				caught++
				if real < 4096 {
					t.Errorf("%s: %.0f tokens were not truncated", name, real)
				}
			}
		}
		if caught < 30 {
			t.Errorf("%s: truncated %d times", name, caught)
		}
		if k := m.calibration.factor("local"); k.Scale < vocabulary-0.12 || k.Scale > vocabulary+0.12 {
			t.Errorf("%s: learned %+v of %v", name, k, vocabulary)
		}
	}
}

// A prompt that really became smaller, such as without old reasoning, is believed at the
// second report.
func TestRewrittenPromptsAreBelieved(t *testing.T) {
	m := meter()
	var a Anchor
	for steps := range 14 {
		b := conversation(t, steps, "")
		report := provider(m, b)
		if steps >= 10 {
			report -= 900
		}
		var truncated bool
		a, truncated = m.Observe(b, "local", a, usage(report, 0))
		if truncated || steps == 10 && a.Doubt == nil || steps != 10 && (a.Doubt != nil || a.Reported != report) {
			t.Fatalf("%d steps: %+v, reported %d, truncated %v", steps, a, report, truncated)
		}
	}
}

func TestObserveWithoutUsage(t *testing.T) {
	m := meter()
	b := conversation(t, 3, "")
	a, _ := m.Observe(b, "local", Anchor{}, usage(2000, 0))
	if next, truncated := m.Observe(b, "local", a, recovery.Usage{}); truncated || next != a {
		t.Errorf("%+v, truncated %v", next, truncated)
	}
}

func TestTruncated(t *testing.T) {
	for _, tt := range []struct {
		count, reported  int
		calibrated, want bool
	}{
		{10_000, 5999, true, true}, {10_000, 6001, true, false}, {10_000, 3999, false, true}, {10_000, 4001, false, false},
		{2000, 100, true, false}, {2001, 100, true, true}, {10_000, 0, true, false}, {10_000, 50_000, true, false}, {30_000, 4096, false, true},
	} {
		if got := truncated(tt.count, tt.reported, tt.calibrated); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}
