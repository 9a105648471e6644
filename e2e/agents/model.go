package agents

import (
	"bytes"
	"encoding/json"
	"hash/fnv"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

// Play decides what a model answers. It is a pure function of the request.
type Play func(r *Request) Reply

// Record is one request that reached the model, and what it answered.
type Record struct {
	Time    time.Time
	Request *Request
	Status  int
	Reply   Reply
	Sent    []byte // the answer's body
	Broken  bool   // the request breaks the rules of its format, and was refused for it
}

// Model is the scripted model's HTTP server. It is safe for concurrent use.
type Model struct {
	server *http.Server
	listen net.Listener

	ledger  upstreamtest.Ledger // of responses
	mu      sync.Mutex
	plays   map[string]Play
	records map[string][]Record
	counts  map[string]int
}

// maxBody bounds a request, in bytes.
const maxBody = 32 << 20

// NewModel starts a model on a free port of this machine.
func NewModel() (*Model, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	m := &Model{listen: l, plays: map[string]Play{}, records: map[string][]Record{}, counts: map[string]int{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", m.answer)
	mux.HandleFunc("POST /v1/responses", m.answer)
	mux.HandleFunc("POST /v1/messages", m.answer)
	m.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = m.server.Serve(l) }()
	return m, nil
}

// URL is the base URL for clients.
func (m *Model) URL() string { return "http://" + m.listen.Addr().String() + "/v1" }

// Close stops the server.
func (m *Model) Close() error { return m.server.Close() }

// Add makes a name a model that plays p.
func (m *Model) Add(name string, p Play) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.plays[name] = p
}

// Records are the requests for a model, in order of arrival.
func (m *Model) Records(name string) []Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Record(nil), m.records[name]...)
}

// parse reads a request, and says with which status and body it is refused for what
// is wrong with it; status 0: it is not.
func (m *Model) parse(r *http.Request, raw []byte) (q *Request, status int, body []byte) {
	var err error
	if account := r.Header.Get("Authorization"); strings.HasSuffix(r.URL.Path, "/responses") {
		if status, body = m.ledger.Refuse(account, string(raw)); status != 0 {
			q = &Request{Raw: raw, Model: modelOf(raw), Responses: true}
			return q, status, body
		}
		if q, err = ParseResponses(raw, m.ledger.Input(account, string(raw))); err == nil {
			q.Stored = upstreamtest.Stored(string(raw))
		}
	} else if strings.HasSuffix(r.URL.Path, "/messages") {
		if problem := upstreamtest.MessagesProblem(string(raw)); problem != "" {
			refusal := marshal(object{"type": "error", "error": object{"type": "invalid_request_error", "message": problem}})
			return &Request{Raw: raw, Model: modelOf(raw), Blocks: true}, http.StatusBadRequest, refusal
		}
		q, err = ParseMessages(raw)
	} else {
		q, err = ParseRequest(raw)
	}
	if err != nil {
		return &Request{Raw: raw}, http.StatusBadRequest, []byte(err.Error())
	}
	return q, 0, nil
}

func (m *Model) answer(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return // the client left
	}
	q, status, refusal := m.parse(r, raw)
	m.mu.Lock()
	play := m.plays[q.Model]
	q.N = m.counts[q.Model]
	m.counts[q.Model]++
	m.mu.Unlock()
	if play == nil && status == 0 {
		http.Error(w, `{"error":{"message":"no such model","type":"invalid_request_error","param":"model","code":"model_not_found"}}`, http.StatusNotFound)
		return
	}
	rec := Record{Time: time.Now(), Request: q, Reply: Reply{Status: status, Error: string(refusal)}, Broken: status != 0}
	if status == 0 {
		rec.Reply = perform(play, q)
	}
	rec.Reply.Calls = slices.Clone(rec.Reply.Calls)
	rec.Status = max(rec.Reply.Status, http.StatusOK)
	a := m.render(r.Header.Get("Authorization")+r.Header.Get("X-Api-Key"), q, &rec.Reply)
	rec.Sent = bytes.Join(a.pieces, nil)
	m.mu.Lock()
	m.records[q.Model] = append(m.records[q.Model], rec)
	m.mu.Unlock()
	a.send(r.Context(), w)
	if rec.Reply.Cut > 0 && !rec.Reply.Clean {
		panic(http.ErrAbortHandler)
	}
}

// render writes a reply in the format of its request.
func (m *Model) render(account string, q *Request, r *Reply) answer {
	q.name(r)
	if q.Blocks && r.Status != 0 {
		r.Error = inAnthropicsWords(r.Status, r.Error)
	} else if q.Blocks {
		return q.renderMessage(account, r)
	}
	if !q.Responses || r.Status != 0 {
		return q.render(r)
	}
	out := q.response(account, r)
	if r.Cut == 0 { // else it is lost with its connection
		m.ledger.Keep(account, string(q.Raw), out)
	}
	return q.renderResponse(out, r)
}

func modelOf(raw []byte) string {
	var of struct {
		Model string `json:"model"`
	}
	_ = json.Unmarshal(raw, &of) // what is no JSON has no model
	return of.Model
}

// lastWords is how a gateway asks for the rest of an answer that was cut: the words
// to begin with follow.
const lastWords = "The last words are:\n\n"

// perform is what a model answers. Asked for the rest of a cut answer it writes
// what it would have written, from the words on that it is to repeat.
func perform(play Play, q *Request) Reply {
	n := len(q.Messages)
	if n < 2 || q.Messages[n-1].Role != "user" || q.Messages[n-2].Role != "assistant" {
		return play(q)
	}
	_, words, asked := strings.Cut(q.Messages[n-1].Text, lastWords)
	if !asked {
		return play(q)
	}
	before := *q
	before.Messages = q.Messages[:n-2]
	reply := play(&before)
	if i := strings.Index(reply.Text, words); i >= 0 {
		reply.Text = reply.Text[i:]
	}
	return reply
}

func hash(s string) uint32 {
	h := fnv.New32a()
	_, _ = io.Copy(h, strings.NewReader(s))
	return h.Sum32()
}
