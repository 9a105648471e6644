package upstream

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
)

// prefillHosts are hosted services with known support for continuing the beginning of an answer, by
// path prefix.
//
//   - OpenRouter: a last message of the assistant ("assistant prefill")
//   - Mistral: the same with "prefix": true, without which it is refused
//   - DeepSeek: likewise, but only below /beta
var prefillHosts = []struct {
	host, path string
	prefill    recovery.Prefill
}{
	{"openrouter.ai", "/", recovery.PrefillAssistant},
	{"api.mistral.ai", "/", recovery.PrefillPrefix},
	{"codestral.mistral.ai", "/", recovery.PrefillPrefix},
	{"api.deepseek.com", "/beta", recovery.PrefillPrefix},
	{"api.deepseek.com", "/", recovery.PrefillNone},
	{"api.openai.com", "/", recovery.PrefillNone},
	{"api.anthropic.com", "/", recovery.PrefillNone}, // its newest models refuse it
}

// Prefills returns the prefill method that the configuration or the host determines, or PrefillAuto if
// the server must be asked.
func (c Config) Prefills() recovery.Prefill {
	if c.Prefill != recovery.PrefillAuto {
		return c.Prefill
	}
	u, err := url.Parse(strings.ReplaceAll(c.URL, "{model}", "model"))
	if err != nil {
		return recovery.PrefillNone
	}
	for _, h := range prefillHosts {
		if strings.EqualFold(u.Hostname(), h.host) && strings.HasPrefix(u.Path+"/", strings.TrimSuffix(h.path, "/")+"/") {
			return h.prefill
		}
	}
	return recovery.PrefillAuto
}

// ServerPrefill returns how the server with this list of models continues an answer. llama.cpp
// continues a last assistant message by itself; vLLM and SGLang have a field for it. Each of them is
// the owner of its models in the list.
func ServerPrefill(header http.Header, models []byte) recovery.Prefill {
	if strings.HasPrefix(header.Get("Server"), "llama.cpp") {
		return recovery.PrefillAssistant
	}
	if !gjson.ValidBytes(models) {
		return recovery.PrefillNone
	}
	switch gjson.GetBytes(models, "data.0.owned_by").Str {
	case "llamacpp":
		return recovery.PrefillAssistant
	case "vllm", "sglang":
		return recovery.PrefillContinue
	}
	return recovery.PrefillNone
}
