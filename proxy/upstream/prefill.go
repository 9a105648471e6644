package upstream

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
)

// prefillHosts are hosted services that are known to go on from the beginning of
// an answer, with the path that it takes.
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

// Prefills is what prefill: auto comes to by the host; PrefillAuto where it takes
// a look at the server.
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

// ServerPrefill is how the server that gave this list of models continues an
// answer. llama.cpp's goes on from a last message of the assistant by itself;
// vLLM and SGLang have a switch for it. Each of them owns the models it lists.
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
