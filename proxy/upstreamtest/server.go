package upstreamtest

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// Options tune a Server. The zero value is ready to use.
type Options struct {
	// Latency is the time before every answer; default none.
	Latency time.Duration
	// Gap is the time between the content chunks of a stream; default none.
	Gap time.Duration
	// Chunks is how many content chunks a stream has; default 20.
	Chunks int
	// Bytes is the size of an answer's text; default 600.
	Bytes int
	// KeepRequests is how many records are kept; default 1024, negative none.
	KeepRequests int
	// KeepBytes bounds the bodies in those records; default 64 MiB.
	KeepBytes int64
	// MaxBody is the largest request body that is read; default 64 MiB.
	MaxBody int64
	// Lenient accepts request bodies that are not valid JSON, which saves a pass
	// over each of them.
	Lenient bool
	// Models are listed by GET /v1/models; default gpt-4o and gpt-4o-mini.
	Models []string
	// Rename tells by which model's name, with its script, a request for a
	// completion is answered, where the name that came says too little: targets of a
	// gateway have names of their own. Default: as it came.
	Rename func(model, credential, body string) string
	// As names a known server whose model list, refusals and answers this one imitates for
	// models without a script: one of Disguises. Default: OpenAI's.
	As string
	// TLS, with a certificate, makes Listen and Start speak TLS.
	TLS *tls.Config
}

// Server is the scripted upstream, an http.Handler. It is safe for concurrent
// use.
type Server struct {
	opts    Options
	scripts scripts
	answers answers
	ledger  Ledger
	rec     recorder
	conns   atomic.Int64
}

var _ http.Handler = (*Server)(nil)

// New returns a Server. Use it as a handler, or start it with Listen or Start.
func New(opts Options) *Server {
	if opts.Chunks <= 0 {
		opts.Chunks = defaultChunks
	}
	if opts.Bytes <= 0 {
		opts.Bytes = defaultBytes
	}
	if opts.KeepRequests == 0 {
		opts.KeepRequests = 1024
	}
	if opts.KeepBytes <= 0 {
		opts.KeepBytes = 64 << 20
	}
	if opts.MaxBody <= 0 {
		opts.MaxBody = 64 << 20
	}
	if opts.Models == nil {
		opts.Models = []string{"gpt-4o", "gpt-4o-mini"}
	}
	return &Server{opts: opts, rec: recorder{keep: opts.KeepRequests, keepBytes: opts.KeepBytes}}
}

// Script gives a model the script that follows the @ in other models' names,
// from its first step on. An empty script takes it away. An error says which
// directive is wrong and leaves the script as it was.
func (s *Server) Script(model, steps string) error { return s.scripts.assign(model, steps) }

// Requests returns copies of the kept records in order of arrival. model is
// a whole model string or the part before its @; empty means all.
func (s *Server) Requests(model string) []Record { return s.rec.list(model) }

// Await returns the records of a model, as Requests does, once n of its
// requests have finished; a client may have its answer a little earlier. If ctx
// ends before, it returns the records as they are with the context's error. It
// needs the records that Options.KeepRequests keeps.
func (s *Server) Await(ctx context.Context, model string, n int) ([]Record, error) {
	return s.rec.await(ctx, model, func(recs []Record) bool {
		finished := 0
		for i := range recs {
			if !recs[i].Finished.IsZero() {
				finished++
			}
		}
		return finished >= n
	})
}

// AwaitArrival is Await for requests that have arrived, answered or not.
func (s *Server) AwaitArrival(ctx context.Context, model string, n int) ([]Record, error) {
	return s.rec.await(ctx, model, func(recs []Record) bool { return len(recs) >= n })
}

// Stats returns the totals.
func (s *Server) Stats() Stats {
	st := s.rec.snapshot()
	st.Connections = s.conns.Load()
	return st
}

// Reset forgets records and totals and sets every script back to its first
// step. Scripts that Script gave stay.
func (s *Server) Reset() {
	s.scripts.restart()
	s.rec.reset()
	s.conns.Store(0)
}

// ServeHTTP answers one request. Where a script breaks the connection it panics
// with http.ErrAbortHandler, which net/http expects of a handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.control(w, r) {
		return
	}
	if err := s.serve(w, r); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// serve answers a request of the API and records it.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) error {
	model, endpoint := locate(r.URL.Path)
	q := &request{
		model:      model,
		credential: credentialOf(r.Header),
		mockKey:    r.Header.Get("X-Mock-Key"),
	}
	x := &exchange{s: s, w: w, ctx: r.Context(), q: q, st: okStep, begun: time.Now()}
	var bad *apiError
	var err error
	if q.body, err = readBody(r, s.opts.MaxBody); err != nil {
		if !errors.Is(err, errTooLarge) {
			return errGone
		}
		bad = &apiError{status: http.StatusRequestEntityTooLarge, message: err.Error(), typ: "invalid_request_error"}
	}
	plain, wrong := s.route(r, endpoint, q)
	switch {
	case wrong != nil:
		bad = wrong
	case q.of != "":
		bad = s.pick(x)
	case r.Method == http.MethodPost && bad == nil:
		bad = s.prepare(x)
	}
	if bad != nil {
		x.st = noStep
	}
	e := s.rec.begin(&Record{
		Time: x.begun, Method: r.Method, Path: r.URL.Path, Model: q.model, Key: KeyLabel(q.credential),
		Header: r.Header, Body: q.body, Stream: q.stream, Step: x.st.src,
	})
	q.n = e.rec.N
	defer func() {
		// Closing the server is not the client's doing.
		gone := errors.Is(err, errGone) && !errors.Is(context.Cause(r.Context()), http.ErrServerClosed)
		s.rec.end(e, x.status, x.chunks, gone)
	}()
	if bad != nil {
		err = x.sendError(bad)
	} else {
		err = x.run(plain)
	}
	return err
}

// prepare reads the request's body and picks its step.
func (s *Server) prepare(x *exchange) *apiError {
	q := x.q
	if err := q.inspect(!s.opts.Lenient); err != nil {
		return &apiError{status: http.StatusBadRequest, message: "We could not parse the JSON body of your request.", typ: "invalid_request_error"}
	}
	if s.opts.Rename != nil {
		q.model = s.opts.Rename(q.model, q.credential, q.body)
		q.name = nameOf(q.model)
	}
	if q.responses {
		if q.model == "" {
			return wrong("missing_required_parameter", "model", "Missing required parameter: 'model'.")
		}
		if bad := s.ledger.refuse(q.credential, q.body); bad != nil {
			return bad
		}
		if k := s.ledger.find(q.credential, q.field("previous_response_id").Str); k != nil {
			q.thread = k.tokens
		}
	}
	return s.pick(x)
}

// pick takes the next step of the model's script.
func (s *Server) pick(x *exchange) *apiError {
	q := x.q
	st, err := s.scripts.next(q.model, q.mockKey, q.credential, x.begun)
	if err != nil {
		return &apiError{
			status: http.StatusBadRequest, message: "mock script: " + err.Error(),
			typ: "invalid_request_error", param: "model", code: "mock_bad_script",
		}
	}
	if d, ok := disguises[s.opts.As]; ok && st == okStep && q.of == "" && !q.responses && !q.anthropic {
		if d.silent {
			q.reads = d.window
		}
		made, err := parseStep(d.script(q))
		if err != nil {
			return &apiError{status: http.StatusInternalServerError, message: "mock disguise: " + err.Error(), typ: "server_error"}
		}
		st = &made
	}
	x.st = st
	x.t = tune(q.model, tuning{latency: s.opts.Latency, gap: s.opts.Gap, chunks: s.opts.Chunks, bytes: s.opts.Bytes})
	if st.hasGap {
		x.t.gap = st.gap
	}
	if st.chunks > 0 {
		x.t.chunks = st.chunks
	}
	if st.hasLen {
		x.t.bytes = st.bytes
	}
	return nil
}

// locate takes the model of an Azure deployment and the version from a path.
func locate(path string) (model, endpoint string) {
	if rest, ok := strings.CutPrefix(path, "/openai/deployments/"); ok {
		for _, end := range [...]string{"/chat/completions", "/embeddings"} {
			if model, ok := strings.CutSuffix(rest, end); ok {
				return model, end
			}
		}
	}
	return "", strings.TrimPrefix(path, "/v1")
}

// route finds what answers an endpoint: a chat completion (nil, nil), a body,
// or an error.
func (s *Server) route(r *http.Request, endpoint string, q *request) (plain func() []byte, bad *apiError) {
	want := http.MethodPost
	if rest, ok := strings.CutPrefix(endpoint, "/responses"); ok {
		q.responses = true
		return s.routeResponses(r, rest, q)
	}
	if rest, ok := strings.CutPrefix(endpoint, "/messages"); ok && (rest == "" || rest == "/count_tokens") {
		q.anthropic = true
		return routeMessages(r, rest, q)
	}
	switch endpoint {
	case "/chat/completions":
	case "/embeddings":
		plain = func() []byte { return embeddings(q) }
	case "/models":
		want, plain = http.MethodGet, s.models
	default:
		return nil, &apiError{
			status: http.StatusNotFound, message: "Invalid URL (" + r.Method + " " + r.URL.Path + ")",
			typ: "invalid_request_error",
		}
	}
	if r.Method != want {
		return nil, notAllowed(r)
	}
	return plain, nil
}

func notAllowed(r *http.Request) *apiError {
	return &apiError{
		status: http.StatusMethodNotAllowed, message: "Not allowed to " + r.Method + " on " + r.URL.Path + ".",
		typ: "invalid_request_error", code: "method_not_supported",
	}
}
