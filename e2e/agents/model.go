package agents

import (
	"bytes"
	"hash/fnv"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
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
}

// Model is the scripted model's HTTP server. It is safe for concurrent use.
type Model struct {
	server *http.Server
	listen net.Listener

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
	mux.HandleFunc("POST /v1/chat/completions", m.chat)
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

func (m *Model) chat(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return // the client left
	}
	q, err := ParseRequest(raw)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	play := m.plays[q.Model]
	q.N = m.counts[q.Model]
	m.counts[q.Model]++
	m.mu.Unlock()
	if play == nil {
		http.Error(w, `{"error":{"message":"no such model","type":"invalid_request_error","param":"model","code":"model_not_found"}}`, http.StatusNotFound)
		return
	}
	rec := Record{Time: time.Now(), Request: q, Reply: perform(play, q)}
	rec.Reply.Calls = slices.Clone(rec.Reply.Calls)
	rec.Status = max(rec.Reply.Status, http.StatusOK)
	a := q.render(&rec.Reply)
	rec.Sent = bytes.Join(a.pieces, nil)
	m.mu.Lock()
	m.records[q.Model] = append(m.records[q.Model], rec)
	m.mu.Unlock()
	a.send(r.Context(), w)
	if rec.Reply.Cut > 0 && !rec.Reply.Clean {
		panic(http.ErrAbortHandler)
	}
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
