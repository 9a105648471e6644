package app_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery/hostiletest"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// TestMemoryOfARequest checks that all allocations for a request, including garbage, are at most eight times what
// limits.memory counts for it. Without the limits of messages and calls they are not.
func TestMemoryOfARequest(t *testing.T) {
	const (
		size  = 2 << 20
		part  = 256      // bytes that a message, a call or a tool counts at least
		slack = 16 << 20 // bytes that are read before a limit is reached
	)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, `{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"yes"},"finish_reason":"stop"}]}`)
	}))
	defer up.Close()
	families := slices.Concat(hostiletest.Bodies(), slices.DeleteFunc(hostiletest.Requests(), func(f hostiletest.Family) bool {
		return !slices.Contains([]string{"result: errors", "result: compilers", "said: fences", "typed: one letter", "arguments: escaped quotes"}, f.Name)
	}))
	for name, limits := range map[string]string{"limits": "", "none": "\nlimits: {messages: 1000000000, calls: 1000000000, tools: 1000000000}\n"} {
		g := launch(t, strings.ReplaceAll(quick, "UP/", up.URL+"/")+limits)
		g.must(chat("m", false, ""))
		g.ask(t.Context(), families[slices.IndexFunc(families, func(f hostiletest.Family) bool { return f.Name == "turns" })].Make(64<<10)) // reads the rules, which is done once
		var over []string
		for _, f := range families {
			if limits != "" && len(over) > 0 {
				break // that is enough to show that this test can fail
			}
			body := f.Make(size)
			counts := len(body)
			if b, err := transcript.Parse([]byte(body), transcript.Chat, transcript.Limits{}); err == nil {
				counts = max(counts, part*b.Parts())
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			g.ask(t.Context(), body)
			runtime.ReadMemStats(&after)
			if took := int(after.TotalAlloc - before.TotalAlloc); took > 8*counts+slack {
				over = append(over, f.Name)
				if limits == "" {
					t.Errorf("%s: %d bytes are allocated for %d", f.Name, took, len(body))
				}
			}
		}
		if limits != "" && len(over) == 0 {
			t.Error("nothing takes too much without limits either: this test cannot fail")
		}
		t.Logf("%s: %q", name, over)
	}
}
