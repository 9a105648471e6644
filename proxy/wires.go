package proxy

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/rebound-llm/rebound/proxy/stream"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// wire is a format of completions: how requests and answers are encoded, and its paths.
type wire struct {
	path     string // below an upstream's base URL
	requests transcript.Format
	answers  stream.Format
	routes   []string // paths of the gateway
	relays   []string // paths below them and below path, of requests in which nothing may change: they compact the history or count its tokens
	refers   bool     // requests may name objects that a server stores
	thoughts bool     // providers may demand reasoning that clients do not send
	relayed  bool     // requests are retried only unchanged, at their first target
}

var wires = [transcript.FormatCount]wire{
	transcript.Chat: {
		path: "/chat/completions", requests: transcript.Chat, answers: stream.Chat{}, thoughts: true,
		routes: []string{"/v1/chat/completions", "/chat/completions", "/openai/v1/chat/completions", "/openai/deployments/:deployment/chat/completions"},
	},
	transcript.Responses: {
		path: "/responses", requests: transcript.Responses, answers: stream.Responses{}, refers: true, relays: []string{"/compact", "/input_tokens"},
		routes: []string{"/v1/responses", "/responses", "/openai/responses", "/openai/v1/responses", "/openai/deployments/:deployment/responses"},
	},
	transcript.Messages: {path: "/messages", requests: transcript.Messages, answers: stream.Messages{}, routes: []string{"/v1/messages"}},
}

// relay returns the wire of requests to a path below w's in which nothing may change.
func (w wire) relay(path string) *wire {
	w.path, w.answers, w.relayed = w.path+path, stream.Object{}, true
	return &w
}

// engine returns the engine that runs requests of the format.
func (w *wire) engine(k *Core) *recovery.Engine {
	if w.relayed {
		return k.Relay
	}
	return k.Engine
}

// dialect is how the gateway itself talks to the clients and upstreams of an API.
type dialect struct {
	format   transcript.Format // of the gateway's own requests
	base     string            // the end of clients' base URLs
	absent   string            // the message of the error if no upstream has the API
	idHeader string            // the header in which clients expect the id of a request that failed; empty for none
	envelope func(e *Error, request string) []byte
	// adapt makes an upstream's failure readable for clients, if begun at the end of a stream; nil leaves it unchanged.
	adapt func(r *reply, f *recovery.Failure, x *recovery.Exchange, begun bool)
	model func(name string) map[string]any // the entry of a model in the list of models
	list  func(models []json.RawMessage) map[string]any
}

var dialects = [transcript.APICount]dialect{
	transcript.OpenAI: {
		format: transcript.Chat, base: "/v1",
		absent:   "No upstream speaks OpenAI's formats: all have 'format: anthropic' under 'upstreams' in the configuration.",
		envelope: func(e *Error, _ string) []byte { return encode(e.Message, "rebound_error", "", e.Code) },
		model: func(name string) map[string]any {
			return map[string]any{"id": name, "object": "model", "created": 0, "owned_by": "rebound"}
		},
		list: func(models []json.RawMessage) map[string]any { return map[string]any{"object": "list", "data": models} },
	},
	transcript.Anthropic: {
		format:   transcript.Messages, // clients add /v1 to the base
		absent:   "No upstream speaks the Messages API. Set ANTHROPIC_UPSTREAM_URL, or add one with 'format: anthropic' under 'upstreams' in the configuration.",
		idHeader: "Request-Id", adapt: asMessages,
		envelope: func(e *Error, request string) []byte {
			return messagesEnvelope(messagesErrorType(e.Status), e.Message, e.Code, request)
		},
		model: func(name string) map[string]any {
			return map[string]any{"type": "model", "id": name, "display_name": name, "created_at": time.Unix(0, 0).UTC().Format(time.RFC3339)}
		},
		list: func(models []json.RawMessage) map[string]any {
			return map[string]any{"data": models, "has_more": false}
		},
	},
}

// apiOf returns the API that a client uses. Anthropic's has a path of its own, and a header that its servers
// require on all paths. The messages of OpenAI's Assistants threads have other paths.
func apiOf(r *http.Request) transcript.API {
	if strings.Contains(strings.TrimRight(r.URL.Path, "/")+"/", "/v1/messages/") || first(r.Header, "Anthropic-Version") != "" {
		return transcript.Anthropic
	}
	return transcript.OpenAI
}

// unserved is the error for a model that no upstream of the API serves.
func (k *Core) unserved(api transcript.API, model string) *Error {
	if k.Defaults[api] == "" {
		return reported(http.StatusNotFound, "no_upstream", "%s", dialects[api].absent)
	}
	return reported(http.StatusNotFound, "model_not_found", "No upstream serves the model %s in this format. Add it to 'models' in the configuration.", printable(model))
}
