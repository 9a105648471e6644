package upstream

import (
	"iter"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// windowFields are the names of the context window field in servers' lists of models: OpenRouter and
// Together, vLLM and SGLang, Groq, LM Studio, Mistral, llama.cpp (of one slot).
var windowFields = [...]string{"context_length", "max_model_len", "context_window", "max_context_length", "loaded_context_length", "max_context_window", "meta.n_ctx"}

// The range of plausible context windows, in tokens.
const (
	leastWindow = 1 << 10
	mostWindow  = 20 << 20
)

// ListedModels yields the models of a list with their context windows in tokens, 0 if the list has
// none, as on most servers. It yields nothing if the list is not JSON.
func ListedModels(list []byte) iter.Seq2[string, int] {
	return func(yield func(id string, window int) bool) {
		if transcript.Valid(list, 64) != nil {
			return
		}
		gjson.GetBytes(list, "data").ForEach(func(_, m gjson.Result) bool {
			id, window := strings.Clone(m.Get("id").Str), 0 // the caller keeps the id, but not the list
			if id == "" {
				return true
			}
			for _, name := range windowFields {
				if n := m.Get(name); n.Type == gjson.Number && n.Num >= leastWindow && n.Num <= mostWindow {
					window = int(n.Num)
					break
				}
			}
			return yield(id, window)
		})
	}
}
