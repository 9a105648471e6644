package count

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// byteCounter counts a byte as a token, and sums up how many bytes it was given.
type byteCounter struct{ counted atomic.Int64 }

func (c *byteCounter) Count(s string) int {
	c.counted.Add(int64(len(s)))
	return len(s)
}

func (c *byteCounter) vocabularies(string) vocabulary {
	return vocabulary{counter: c, Name: "bytes", Exact: true}
}

func TestOnlyNewMessagesAreCounted(t *testing.T) {
	var bytes byteCounter
	m := newMeter(bytes.vocabularies, maxCounts, maxCalibrated)
	long := strings.Repeat("x", 10_000)
	history := fmt.Sprintf(`{"role":"system","content":"%s"},{"role":"user","content":"%s1"}`, long, long)
	tools := `"tools":[{"type":"function","function":{"name":"a","description":"` + long + `"}}]`
	first := m.Measure(parse(t, `{"messages":[`+history+`],`+tools+`}`), "gpt-4o")
	if n := bytes.counted.Load(); n < 30_000 || first.Total < 30_000 {
		t.Fatalf("%d bytes were counted, %d tokens", n, first.Total)
	}
	before := bytes.counted.Load()
	body := parse(t, `{"messages": [`+history+`,{"role":"assistant","content":"abc"}], "temperature": 1, `+tools+`}`)
	second := m.Measure(body, "gpt-4o")
	if n := bytes.counted.Load() - before; n > 200 {
		t.Errorf("%d bytes were counted again", n)
	}
	if second.Total != first.Total+4+3 || !reflect.DeepEqual(second.Messages[:2], first.Messages) {
		t.Errorf("%v after %v", second, first)
	}
	// Cached and fresh counts are equal.
	if fresh := newMeter(bytes.vocabularies, maxCounts, maxCalibrated).Measure(body, "gpt-4o"); !reflect.DeepEqual(fresh, second) {
		t.Errorf("%v, without a memory %v", second, fresh)
	}
}

// The same message counts differently for another model.
func TestModelsDoNotShareCounts(t *testing.T) {
	body := parse(t, `{"messages":[{"role":"user","content":[{"type":"text","text":"`+strings.Repeat("नमस्ते दुनिया ", 50)+`"},
		{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}]},
		{"role":"assistant","tool_calls":[{"id":"toolu_012345678901234567890123","type":"function","function":{"name":"f","arguments":"{}"}}]}],
		"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"string"}}}}}]}`)
	shared := meter()
	seen := map[string]bool{}
	for _, model := range []string{"gpt-4o", "gpt-4o-mini", "gpt-4", "gpt-5-mini", "claude-sonnet-4-5", "claude-next", "llama3", "mistral-large"} {
		got, want := shared.Measure(body, model), meter().Measure(body, model)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, alone %v", model, got, want)
		}
		seen[fmt.Sprint(got.Messages, got.Fixed)] = true
	}
	if len(seen) != 8 {
		t.Errorf("%d different counts of 8: %v", len(seen), seen)
	}
}

func TestCacheIsBounded(t *testing.T) {
	var bytes byteCounter
	m := newMeter(bytes.vocabularies, 64, 4)
	for i := range 2000 {
		m.Text("m", strings.Repeat("y", 300+i))
	}
	if n := m.cache.Len(); n > 64 || n < 32 {
		t.Errorf("%d entries of at most 64", n)
	}
	// The last used entry is still there, the first is not.
	before := bytes.counted.Load()
	m.Text("m", strings.Repeat("y", 300+1999))
	if bytes.counted.Load() != before {
		t.Error("the last text was counted again")
	}
	if m.Text("m", strings.Repeat("y", 300)); bytes.counted.Load() == before {
		t.Error("the first text was not counted again")
	}
}

func TestMeterIsSafeForConcurrentUse(t *testing.T) {
	r := record(t, "pi-large-session-seg0-slice4")
	m := newMeter(vocabularyOf, 200, 4)
	want := make([]int, len(r.Usage))
	for i, u := range r.Usage {
		want[i] = meter().Measure(r.request(t, u.Index), u.Model).Total
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			var a Anchor
			for i, u := range r.Usage {
				b := r.request(t, u.Index)
				if n := m.Measure(b, u.Model).Total; n != want[i] {
					t.Errorf("request %d: %d tokens, alone %d", u.Index, n, want[i])
				}
				a, _ = m.Observe(b, fmt.Sprint(u.Model, g), a, usage(u.Prompt, u.Completion))
				m.Text(u.Model, string(b.Raw()))
			}
		})
	}
	wg.Wait()
}

func TestText(t *testing.T) {
	m := meter()
	for _, text := range []string{"", "hello world", strings.Repeat("hello world ", 100)} {
		want := vocabularyOf("gpt-4o").Count(text)
		for range 2 {
			if got := m.Text("gpt-4o", text); got != want {
				t.Errorf("%.20q: %d tokens, want %d", text, got, want)
			}
		}
	}
}
