package proxy

import (
	"bytes"
	"io"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Windows learn the context windows that lists of models tell.
type Windows interface {
	ListWindow(t recovery.Target, tokens int)
}

// windowFields are the names that servers have for a model's context window:
// OpenRouter and Together, vLLM and SGLang, Groq, LM Studio, Mistral.
var windowFields = [...]string{"context_length", "max_model_len", "context_window", "max_context_length", "loaded_context_length", "max_context_window"}

// Windows that may be true, in tokens.
const (
	leastWindow = 1 << 10
	mostWindow  = 20 << 20
)

// noteWindows reads a list of models for their windows. Most servers tell none.
func (k *Core) noteWindows(upstream string, list []byte) {
	if k.Windows == nil || transcript.Valid(list, 64) != nil {
		return
	}
	gjson.GetBytes(list, "data").ForEach(func(_, m gjson.Result) bool {
		id := strings.Clone(m.Get("id").Str) // it is kept, the list is not
		if id == "" || len(id) > maxModel {
			return true
		}
		for _, name := range windowFields {
			if n := m.Get(name); n.Type == gjson.Number && n.Num >= leastWindow && n.Num <= mostWindow {
				k.Windows.ListWindow(recovery.Target{Upstream: upstream, Model: id}, int(n.Num))
				break
			}
		}
		return true
	})
}

// overheard copies what is read of a body, up to a limit.
type overheard struct {
	io.ReadCloser
	seen bytes.Buffer
}

func (o *overheard) Read(p []byte) (int, error) {
	n, err := o.ReadCloser.Read(p)
	if o.seen.Len()+n <= maxModelList {
		o.seen.Write(p[:n])
	}
	return n, err
}
