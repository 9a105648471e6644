package upstream_test

import (
	"net/http"
	"testing"

	"github.com/rebound-llm/rebound/proxy/upstream"
	"github.com/rebound-llm/rebound/recovery"
)

// TestPrefills: what auto comes to by the host. A look-alike is no such host.
func TestPrefills(t *testing.T) {
	for url, want := range map[string]recovery.Prefill{
		"https://openrouter.ai/api/v1":                   recovery.PrefillAssistant,
		"https://OpenRouter.ai/api/v1":                   recovery.PrefillAssistant,
		"https://api.mistral.ai/v1":                      recovery.PrefillPrefix,
		"https://api.deepseek.com/beta":                  recovery.PrefillPrefix,
		"https://api.deepseek.com/beta/v1":               recovery.PrefillPrefix,
		"https://api.deepseek.com/betamax":               recovery.PrefillNone,
		"https://api.deepseek.com/v1":                    recovery.PrefillNone,
		"https://api.deepseek.com":                       recovery.PrefillNone,
		"https://api.openai.com/v1":                      recovery.PrefillNone,
		"https://openrouter.ai.example.com/v1":           recovery.PrefillAuto,
		"http://127.0.0.1:8000/v1":                       recovery.PrefillAuto,
		"https://x.openai.azure.com/deployments/{model}": recovery.PrefillAuto,
	} {
		c := upstream.Defaults()
		if c.URL = url; c.Prefills() != want {
			t.Errorf("%s: %s, want %s", url, c.Prefills(), want)
		}
		if c.Prefill = recovery.PrefillNone; c.Prefills() != recovery.PrefillNone {
			t.Errorf("%s: %s though it is configured", url, c.Prefills())
		}
	}
}

// TestServerPrefill: what servers say of themselves.
func TestServerPrefill(t *testing.T) {
	for _, c := range []struct {
		server, list string
		want         recovery.Prefill
	}{
		{"llama.cpp", ``, recovery.PrefillAssistant},
		{"", `{"object":"list","data":[{"id":"m","object":"model","owned_by":"llamacpp"}]}`, recovery.PrefillAssistant},
		{"uvicorn", `{"object":"list","data":[{"id":"m","object":"model","owned_by":"vllm","max_model_len":8192}]}`, recovery.PrefillContinue},
		{"uvicorn", `{"object":"list","data":[{"id":"m","object":"model","owned_by":"sglang"}]}`, recovery.PrefillContinue},
		{"", `{"object":"list","data":[{"id":"m","object":"model","owned_by":"library"}]}`, recovery.PrefillNone},
		{"", `{"object":"list","data":[]}`, recovery.PrefillNone},
		{"", `<html>vllm`, recovery.PrefillNone},
		{"", ``, recovery.PrefillNone},
	} {
		if got := upstream.ServerPrefill(http.Header{"Server": {c.server}}, []byte(c.list)); got != c.want {
			t.Errorf("%q, %s: %s, want %s", c.server, c.list, got, c.want)
		}
	}
}
