package proxy

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// modelPaths are the paths below /v1 whose JSON body names the model.
var modelPaths = []string{"/chat/completions", "/completions", "/embeddings", "/responses", "/responses/compact", "/responses/input_tokens", "/messages", "/moderations",
	"/rerank", "/images/generations", "/audio/speech"}

// strict checks a request of a client that may use only certain models. It has a list of allowed paths
// and compares the path as received, so another spelling of a path is another path. body is nil if it
// is not read, as for uploads; model is the one in the path, for a body that names none.
func (k *Core) strict(r *http.Request, who client, path, model string, body []byte) error {
	switch {
	case r.Method == http.MethodPost && slices.Contains(modelPaths, path):
		if kind := mediaType(r); kind != "application/json" || len(r.Header["Content-Encoding"]) > 0 {
			return failf(http.StatusUnsupportedMediaType, "content_type", "This gateway key is restricted to models: the body must be sent as 'Content-Type: "+
				"application/json', not compressed.")
		}
		named, err := k.onlyModel(r.Context(), who, body)
		if named != "" {
			model = named
		}
		if err == nil && !who.may(model) {
			err = notAllowed(model)
		}
		return err
	case r.Method == http.MethodGet && path == "/models", r.Method == http.MethodPost && path == "/files":
		return nil
	case r.Method == http.MethodGet && strings.HasPrefix(path, "/models/"):
		if model, err := url.PathUnescape(strings.TrimPrefix(path, "/models/")); err != nil || !slices.Contains(who.models, model) {
			return notAllowed(model)
		}
		return nil
	}
	for _, res := range owned() {
		if id, ok := res.matches(strings.Split(path, "/")[1:]); ok && slices.Contains(res.methods, r.Method) && k.owns(r.Context(), who, id) {
			return nil
		}
	}
	if who.opens(partsOf(path)) {
		return nil
	}
	return failf(http.StatusForbidden, "path_not_allowed", "This gateway key is restricted to models, and may not use %s %s.", r.Method, printable(r.URL.Path))
}

func notAllowed(model string) *Error {
	return failf(http.StatusForbidden, "model_not_allowed", "This gateway key may not use the model %s.", printable(model))
}

// onlyModel returns the model that every JSON parser finds in a body, however it treats duplicates and
// the case of names, or "" without one. It refuses fields by which servers choose other models, and
// responses of other clients.
func (k *Core) onlyModel(ctx context.Context, who client, body []byte) (model string, err error) {
	if bad := transcript.Valid(body, k.Config.Limits.Nesting); bad != nil {
		return "", badBody(bad)
	}
	root, found := gjson.ParseBytes(body), 0
	if !root.IsObject() {
		return "", failf(http.StatusBadRequest, "not_object", "The request body must be a JSON object.")
	}
	root.ForEach(func(key, v gjson.Result) bool {
		switch name := key.String(); {
		case key.Raw == `"model"` && v.Type == gjson.String && found == 0:
			model = v.Str
			found++
		case v.Type == gjson.Null && !strings.EqualFold(name, "model"):
		case strings.EqualFold(name, "previous_response_id"):
			if v.Type != gjson.String || !k.owns(ctx, who, v.Str) {
				err = failf(http.StatusForbidden, "path_not_allowed", "This gateway key may continue only its own responses.")
			}
		case choosesModel(name, v):
			err = failf(http.StatusForbidden, "field_not_allowed", "This gateway key is restricted to models: the model must be named once, as \"model\", and "+
				"the field %s may choose another.", printable(name))
		}
		return err == nil
	})
	return model, err
}

// choosesModel reports whether some server chooses a model by a field of the request, or by something
// stored that the field names.
func choosesModel(name string, v gjson.Result) bool {
	name = strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))
	for _, part := range [...]string{"model", "engine", "deployment", "fallback", "preset", "assistant", "conversation", "extrabody"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	switch name {
	case "prompt": // a stored prompt of the Responses API
		return v.IsObject()
	case "route":
		return true
	case "tools": // a tool that calls another model, as for images
		chooses := false
		v.ForEach(func(_, tool gjson.Result) bool {
			tool.ForEach(func(key, _ gjson.Result) bool {
				chooses = strings.Contains(strings.ToLower(key.String()), "model")
				return !chooses
			})
			return !chooses
		})
		return chooses
	}
	return false
}

func (k *Core) owns(ctx context.Context, who client, id string) bool {
	if k.Owners == nil {
		return false
	}
	return k.Owners.Of(ctx, id)[0].Owner == k.owner(who)
}

// recordOwner makes the response record its id as the client's while it is read.
func (k *Core) recordOwner(ctx context.Context, owner string, t recovery.Target, resp *http.Response) {
	made := Ownership{Owner: owner, Upstream: t.Upstream}
	if k.Upstreams[t.Upstream].OwnKeys() {
		made.Key = t.Key
	}
	resp.Body = &claimReader{ReadCloser: resp.Body, claim: func(id string) { k.Owners.Claim(ctx, made, id) }}
}

// maxClaim is how much of an answer is searched for its id, in bytes.
const maxClaim = 64 << 10

// claimReader is an answer that calls claim with its id as soon as that has been read.
type claimReader struct {
	io.ReadCloser
	claim func(id string) // nil once it is done
	seen  []byte
}

func (r *claimReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if r.claim == nil {
		return n, err
	}
	r.seen = append(r.seen, p[:n]...)
	id := madeID(r.seen)
	if id != "" {
		r.claim(id)
	}
	if id != "" || len(r.seen) > maxClaim {
		r.claim, r.seen = nil, nil
	}
	return n, err
}

// madeID returns the id at the beginning of an answer, or in the first event of a streamed one.
func madeID(begin []byte) string {
	if i := bytes.Index(begin, []byte("data:")); i >= 0 && !bytes.HasPrefix(bytes.TrimSpace(begin), []byte("{")) {
		return wholeString(gjson.GetBytes(begin[i+len("data:"):], "response.id"))
	}
	return wholeString(gjson.GetBytes(begin, "id"))
}

// wholeString returns a string, or "" if only its beginning has arrived.
func wholeString(v gjson.Result) string {
	if v.Type != gjson.String || len(v.Raw) < 2 || !strings.HasSuffix(v.Raw, `"`) {
		return ""
	}
	return v.Str
}
