package app_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"
)

// verdict is a strict upstream's answer to one request.
type verdict struct {
	status int    // 0: it answers; else it refuses
	header string // more headers of a refusal, as "Name: value"
	body   string // of the refusal
	event  bool   // the refusal is the event of a stream that began with 200

	text  string   // of the answer
	calls []string // of the answer, as in a history
	usage string   // of the answer, a JSON object; empty: none
}

// strict is an upstream that decides by the request alone.
type strict struct {
	t      testing.TB
	url    string
	decide func(body []byte) verdict

	mu   sync.Mutex
	seen [][]byte
}

// startStrict starts one. It calls decide for one request at a time.
func startStrict(t testing.TB, decide func(body []byte) verdict) *strict {
	t.Helper()
	s := &strict{t: t, decide: decide}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	s.url = srv.URL
	return s
}

// config returns the quick configuration for this upstream with more lines. A line replaces the one with the same key.
func (s *strict) config(more ...string) string {
	text := quick + "planner: {upstream: \"\"}\n"                // it would ask this upstream, too: a test that wants it names it
	for _, m := range append([]string{patientLimits}, more...) { // on a busy machine this upstream may be slow
		key, _, _ := strings.Cut(m, ":")
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, key+":") {
				text = strings.Replace(text, line, "", 1)
			}
		}
		text += m + "\n"
	}
	return strings.ReplaceAll(text, "UP/", s.url+"/")
}

func (s *strict) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	s.seen = append(s.seen, body)
	v := s.decide(body)
	s.mu.Unlock()
	if name, value, ok := strings.Cut(v.header, ": "); ok {
		w.Header().Set(name, value)
	}
	stream := gjson.GetBytes(body, "stream").Bool()
	switch {
	case v.event:
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, v.body) // the gateway may have left
	case v.status != 0:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(v.status)
		_, _ = io.WriteString(w, v.body)
	case stream:
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, v.stream())
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, v.whole())
	}
}

func (v verdict) reason() string {
	if len(v.calls) > 0 {
		return "tool_calls"
	}
	return "stop"
}

func (v verdict) whole() string {
	usage := ""
	if v.usage != "" {
		usage = `,"usage":` + v.usage
	}
	calls := ""
	if len(v.calls) > 0 {
		calls = `,"tool_calls":[` + strings.Join(v.calls, ",") + `]`
	}
	return fmt.Sprintf(`{"id":"chatcmpl-up","object":"chat.completion","created":1,"model":"up","choices":[{"index":0,"message":{"role":"assistant","content":%s%s},"finish_reason":%q}]%s}`,
		quote(v.text), calls, v.reason(), usage)
}

func (v verdict) stream() string {
	var b strings.Builder
	chunk := func(delta, reason string) {
		fmt.Fprintf(&b, `data: {"id":"chatcmpl-up","object":"chat.completion.chunk","created":1,"model":"up","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`+"\n\n", delta, reason)
	}
	chunk(`{"role":"assistant","content":""}`, "null")
	if v.text != "" {
		chunk(`{"content":`+quote(v.text)+`}`, "null")
	}
	for i, c := range v.calls {
		chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,%s]}`, i, c[1:]), "null")
	}
	chunk("{}", strconv.Quote(v.reason()))
	if v.usage != "" {
		b.WriteString(`data: {"id":"chatcmpl-up","object":"chat.completion.chunk","created":1,"model":"up","choices":[],"usage":` + v.usage + "}\n\n")
	}
	b.WriteString("data: [DONE]\n\n")
	return b.String()
}

// bodies returns the requests so far.
func (s *strict) bodies() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([][]byte(nil), s.seen...)
}

// forget releases the requests so far, for tests that send large ones.
func (s *strict) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = nil
}

// since returns the requests after the first n.
func (s *strict) since(n int) [][]byte { return s.bodies()[n:] }

// refusal is a row of testdata/refusals.jsonl.
type refusal struct {
	ID      string            `json:"id"`
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    json.RawMessage   `json:"body"`
	Stream  bool              `json:"stream"`
	Class   string            `json:"class"`
}

// refusals reads the rows, by id.
func refusals(t testing.TB) map[string]refusal {
	t.Helper()
	data, err := os.ReadFile("testdata/refusals.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]refusal{}
	for line := range strings.Lines(string(data)) {
		var r refusal
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		rows[r.ID] = r
	}
	return rows
}

// verdict returns the refusal as it was on the wire.
func (r refusal) verdict() verdict {
	body := string(r.Body)
	if gjson.Valid(body) && body[0] == '"' {
		body = gjson.Parse(body).Str
	}
	v := verdict{status: r.Status, body: body, event: r.Stream}
	for name, value := range r.Headers {
		v.header = name + ": " + value
	}
	if r.Stream && !strings.Contains(body, "data:") { // told in an SDK's words: as the event that it was made of
		v.body = "data: {\"error\":{\"message\":" + quote(body) + "}}\n\n"
	}
	return v
}

// conversation builds requests. Its parts are JSON.
type conversation struct {
	model    string
	stream   bool
	fields   string // more fields, like `"n":2,`
	tools    []string
	messages []string
}

func (k conversation) body() string {
	tools := ""
	if len(k.tools) > 0 {
		tools = `"tools":[` + strings.Join(k.tools, ",") + `],`
	}
	model := k.model
	if model == "" {
		model = "m"
	}
	return fmt.Sprintf(`{"model":%q,"stream":%v,%s%s"messages":[%s]}`, model, k.stream, k.fields, tools, strings.Join(k.messages, ","))
}

// with returns the conversation with more messages.
func (k conversation) with(messages ...string) conversation {
	k.messages = append(append([]string(nil), k.messages...), messages...)
	return k
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // text always marshals
	}
	return string(b)
}

func message(role, text string) string {
	return fmt.Sprintf(`{"role":%q,"content":%s}`, role, quote(text))
}

func user(text string) string { return message("user", text) }
func says(text string) string { return message("assistant", text) }

// call is a tool call in a history.
func call(id, tool, args string) string {
	return fmt.Sprintf(`{"id":%s,"type":"function","function":{"name":%q,"arguments":%s}}`, quote(id), tool, quote(args))
}

func calls(list ...string) string {
	return `{"role":"assistant","content":null,"tool_calls":[` + strings.Join(list, ",") + `]}`
}

func result(id, text string) string {
	return fmt.Sprintf(`{"role":"tool","tool_call_id":%s,"content":%s}`, quote(id), quote(text))
}

// function is a tool definition with this parameter schema.
func function(name, about, parameters string) string {
	return fmt.Sprintf(`{"type":"function","function":{"name":%q,"description":%q,"parameters":%s}}`, name, about, parameters)
}

// Tools that many requests offer.
var (
	shell = function("bash", "Run a shell command.", `{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}`)
	files = function("read", "Read a file.", `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)
)

// gatewayNote returns the text of the gateway's note in a request, or "".
func gatewayNote(body []byte) string {
	list := gjson.GetBytes(body, "messages").Array()
	if len(list) == 0 {
		return ""
	}
	text := list[len(list)-1].Get("content").String()
	if i := strings.Index(text, "[gateway note"); i >= 0 {
		return text[i:]
	}
	return ""
}

// answerText returns the text of an answer, streamed or not.
func (r reply) answerText() string {
	if gjson.ValidBytes(r.body) {
		return gjson.GetBytes(r.body, "choices.0.message.content").Str
	}
	var b strings.Builder
	for line := range strings.Lines(string(r.body)) {
		if data, ok := strings.CutPrefix(line, "data: {"); ok {
			b.WriteString(gjson.Get("{"+data, "choices.0.delta.content").Str)
		}
	}
	return b.String()
}

// recovery returns X-Rebound-Recovery, and attempts X-Rebound-Attempts.
func (r reply) recovery() string { return r.header.Get("X-Rebound-Recovery") }
func (r reply) attempts() string { return r.header.Get("X-Rebound-Attempts") }
func (r reply) session() string {
	return r.header.Get("X-Rebound-Session")
}

// isEvent matches the log lines of an event.
func isEvent(event string) func(map[string]any) bool {
	return func(line map[string]any) bool { return line["event"] == event }
}
