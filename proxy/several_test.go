package proxy_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
)

// The deadline bounds the time to the first byte, not a call that is being written.
func TestDeadlineSparesHeldCall(t *testing.T) {
	t.Parallel()
	g, _ := startMending(t, "")
	for _, mode := range []string{"off", "act"} {
		model := mode + "@tool,gap=300ms"
		body := fmt.Sprintf(`{"model":%q,"stream":true,%s"messages":[{"role":"user","content":"x"}]}`, model, offer)
		r := g.post(t.Context(), "/v1/chat/completions", body, http.Header{"X-Rebound-Mode": {mode}, "X-Stainless-Timeout": {"1"}})
		if !r.complete() {
			t.Errorf("%s: %v", mode, r)
		}
	}
}

// What the client gets is of one answer.
func TestAnswersAreNotMixed(t *testing.T) {
	g, _ := startMending(t, "")
	for name, script := range map[string]string{
		"bad, then text and bad": `tool,args={"town":1}/text-tool,text=B,bytes=100,chunks=2,args={"town":2}`,
		"bad, then cut text":     `tool,args={"town":1}/text-tool,text=B,bytes=100,chunks=4,cut=0.3/reset`,
		"bad text... then cut":   `tool,args={"town":1}/text=B,bytes=100,chunks=4,cut=0.5/reset`,
	} {
		t.Run(name, func(t *testing.T) {
			h := g.call(t, "m@"+script, true, "")
			if len(h.ids) > 1 || strings.Contains(h.raw, "[DONE]") && h.text != "" && len(h.text) < 100 {
				t.Errorf("%s, ids %v:\n%s", h, h.ids, h.raw)
			}
		})
	}
}

// guide is a stage that always has a note.
type guide struct{}

func (guide) Prepare(_ context.Context, x *recovery.Exchange) error {
	x.Guidance = "[gateway note] try the other thing"
	return nil
}

// What a note of ours broke is made good, in annotate mode too.
func TestAnnotateRefused(t *testing.T) {
	g, _ := startMending(t, "", guide{})
	for _, mode := range []string{"act", "annotate"} {
		model := mode + "@400,msg=odd+request/ok,text=A,bytes=100"
		body := fmt.Sprintf(`{"model":%q,%s"messages":[{"role":"user","content":"x"}]}`, model, offer)
		r := g.post(t.Context(), "/v1/chat/completions", body, http.Header{"X-Rebound-Mode": {mode}})
		if !r.complete() {
			t.Errorf("%s: %v %s", mode, r, r.body)
		}
	}
}

// A re-ask says what was wrong beside what the guidance says.
func TestGuidanceAndReask(t *testing.T) {
	g, _ := startMending(t, "", guide{})
	model := `m@tool,args={"town":1}/tool`
	g.call(t, model, true, "")
	for i, r := range g.up.Requests(model) {
		if i == 1 && !strings.Contains(string(r.Body), "discarded") {
			t.Errorf("the re-ask says nothing of the flaw")
		}
	}
}
