package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// upstream is the provider of the demo. It answers a model's n-th request with
// the model's n-th step; the last step repeats. Safe for concurrent use.
type upstream struct {
	server   http.Server
	listener net.Listener
	steps    map[string][]step // by model; others are well

	mu   sync.Mutex
	sent map[string][]string // the bodies of requests, by model
}

// step answers one request.
type step func(x *exchange)

// serveFaults starts an upstream that goes wrong as the faults want it.
func serveFaults(list []fault) (*upstream, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	u := &upstream{listener: l, steps: map[string][]step{}, sent: map[string][]string{}}
	for i := range list {
		f := &list[i]
		u.steps[f.straightModel()] = f.targets[0].steps
		for k, t := range f.targets {
			u.steps[f.targetModel(k)] = t.steps
		}
	}
	u.server.Handler = http.HandlerFunc(u.serve)
	go func() { _ = u.server.Serve(l) }() // it ends with Close
	return u, nil
}

func (u *upstream) url() string { return "http://" + u.listener.Addr().String() }

func (u *upstream) close() { _ = u.server.Close() }

// requests returns the bodies that a model was sent, the oldest first.
func (u *upstream) requests(model string) []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.sent[model]
}

// forget lets a fault begin anew.
func (u *upstream) forget(f *fault) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for k := range f.targets {
		delete(u.sent, f.targetModel(k))
	}
}

func (u *upstream) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return
	}
	x := &exchange{w: w, r: r, body: string(body), stream: gjson.GetBytes(body, "stream").Bool()}
	x.model, x.items = gjson.GetBytes(body, "model").Str, strings.HasSuffix(r.URL.Path, "/responses")
	u.mu.Lock()
	u.sent[x.model] = append(u.sent[x.model], x.body)
	n, steps := len(u.sent[x.model]), u.steps[x.model]
	u.mu.Unlock()
	if len(steps) == 0 {
		ok(x)
		return
	}
	steps[min(n, len(steps))-1](x)
}

// exchange is one request and its answer.
type exchange struct {
	w      http.ResponseWriter
	r      *http.Request
	body   string
	model  string
	stream bool
	items  bool // of the Responses API
	events int  // sent, of that
}

// The ways to be well.

// ok is the whole answer.
func ok(x *exchange) { x.answer(textOf(x.model, ""), 1, nil) }

// says answers with another text.
func says(variant string) step {
	return func(x *exchange) { x.answer(textOf(x.model, variant), 1, nil) }
}

// calls answers with a call of a tool.
func calls(c toolCall) step { return func(x *exchange) { x.call(c, 1, nil) } }

// continues answers with what follows the beginning that the request gives, after
// the last words of that, which it repeats.
func continues(x *exchange) {
	last := gjson.Get(x.body, "messages.@reverse.0")
	given := ""
	if last.Get("role").Str == "assistant" {
		given = last.Get("content").Str
	}
	words := strings.SplitAfter(given, " ")
	overlap := strings.Join(words[max(0, len(words)-4):], "")
	x.answer(overlap+strings.TrimPrefix(textOf(x.model, ""), given), 1, nil)
}

// The ways to fail.

// fails answers with an error; headers are like "Retry-After: 1".
func fails(status int, kind, code, message string, headers ...string) step {
	return func(x *exchange) {
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			x.w.Header().Set(name, value)
		}
		x.w.Header().Set("Content-Type", "application/json")
		x.w.WriteHeader(status)
		fmt.Fprintf(x.w, `{"error":{"message":%s,"type":%q,"param":null,"code":%q}}`, quote(message), kind, code)
	}
}

// unless answers well where the request does not have what the error is about.
func unless(well func(x *exchange) bool, otherwise step) step {
	return func(x *exchange) {
		if well(x) {
			ok(x)
			return
		}
		otherwise(x)
	}
}

// page is an error of a proxy.
func page(x *exchange) {
	x.w.Header().Set("Content-Type", "text/html")
	x.w.WriteHeader(http.StatusBadGateway)
	_, _ = io.WriteString(x.w, "<html><head><title>502 Bad Gateway</title></head><body><center><h1>502 Bad Gateway</h1></center></body></html>")
}

// reset breaks the connection before the first byte.
func reset(x *exchange) {
	conn, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if c, ok := conn.(*net.TCPConn); ok {
		_ = c.SetLinger(0)
	}
	conn.Close()
}

// hangs never answers.
func hangs(x *exchange) { <-x.r.Context().Done() }

// onlyHeaders sends those and nothing else.
func onlyHeaders(x *exchange) {
	x.begin()
	hangs(x)
}

// late sends its first text after six seconds.
func late(x *exchange) {
	x.begin()
	x.chunk(`{"role":"assistant","content":""}`, "")
	pause(x.r.Context(), 6*time.Second)
	ok(x)
}

// nothing is a stream without a chunk.
func nothing(x *exchange) {
	x.begin()
	x.event("[DONE]")
}

// onlyRole is a stream that says who speaks and nothing else.
func onlyRole(x *exchange) {
	x.begin()
	x.chunk(`{"role":"assistant","content":""}`, "")
	x.event("[DONE]")
}

// withoutDone is a whole answer without the last event.
func withoutDone(x *exchange) {
	x.answer(textOf(x.model, ""), 1, func(x *exchange) { x.chunk(`{}`, "stop") })
}

// halfJSON is a body that stops in its middle, and says that it is whole.
func halfJSON(x *exchange) {
	x.w.Header().Set("Content-Type", "application/json")
	whole := wholeAnswer(textOf(x.model, ""))
	_, _ = io.WriteString(x.w, whole[:len(whole)/2])
}

// until sends a share of the answer, and ends in that way.
func until(share float64, end step) step {
	return func(x *exchange) { x.answer(textOf(x.model, ""), share, end) }
}

// variantUntil is until for another text, callUntil for a call.
func variantUntil(variant string, share float64, end step) step {
	return func(x *exchange) { x.answer(textOf(x.model, variant), share, end) }
}

func callUntil(c toolCall, share float64, end step) step {
	return func(x *exchange) { x.call(c, share, end) }
}

// The ends of an answer that is not whole.

func breaks(*exchange) { panic(http.ErrAbortHandler) }

func endsCleanly(*exchange) {}

func errorEvent(x *exchange) {
	x.event(`{"error":{"message":"The server had an error while processing your request. Sorry about that!","type":"server_error","code":"server_error"}}`)
}

func malformedEvent(x *exchange) {
	x.event(`{"id":"chatcmpl-demo","choices":[{"index":0,"delta":{"content":"\u00zz`)
}

// The pieces of an answer.

const chunks = 20 // of a text

// answer sends a share of a text, then calls end; a nil end is the right one.
func (x *exchange) answer(text string, share float64, end step) {
	if x.items {
		x.respond(text, share, end)
		return
	}
	if !x.stream {
		x.w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(x.w, wholeAnswer(text))
		return
	}
	x.begin()
	x.chunk(`{"role":"assistant","content":""}`, "")
	var deltas []string
	for _, p := range pieces(text, chunks) {
		deltas = append(deltas, `{"content":`+quote(p)+`}`)
	}
	x.deltas(deltas, share, "stop", end)
}

// call sends a share of a tool call.
func (x *exchange) call(c toolCall, share float64, end step) {
	x.begin()
	x.chunk(`{"role":"assistant","content":null}`, "")
	deltas := []string{fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"call_demo","type":"function","function":{"name":%q,"arguments":""}}]}`, c.name)}
	for _, p := range pieces(c.args, max(1, len(c.args)/5)) {
		deltas = append(deltas, `{"tool_calls":[{"index":0,"function":{"arguments":`+quote(p)+`}}]}`)
	}
	x.deltas(deltas, share, "tool_calls", end)
}

func (x *exchange) deltas(list []string, share float64, reason string, end step) {
	for i, d := range list[:int(share*float64(len(list)))] {
		if i > 0 && !pause(x.r.Context(), 10*time.Millisecond) {
			return
		}
		x.chunk(d, "")
	}
	if end != nil {
		end(x)
		return
	}
	x.chunk(`{}`, reason)
	x.event(`{"id":"chatcmpl-demo","object":"chat.completion.chunk","created":1,"model":` + quote(x.model) + `,"choices":[]` + x.usage() + `}`)
	x.event("[DONE]")
}

// usage is what a provider would report, as a field after others; only of short
// requests, where an estimate does no harm.
func (x *exchange) usage() string {
	n := len(x.body) / 4
	if n > 2000 {
		return ""
	}
	return fmt.Sprintf(`,"usage":{"prompt_tokens":%d,"completion_tokens":150,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d}}`, n, n+150, n*3/5)
}

func (x *exchange) begin() {
	x.w.Header().Set("Content-Type", "text/event-stream")
	_ = http.NewResponseController(x.w).Flush() // an agent that has left is noticed later
}

func (x *exchange) event(data string) {
	_, _ = io.WriteString(x.w, "data: "+data+"\n\n")
	_ = http.NewResponseController(x.w).Flush()
}

func (x *exchange) chunk(delta, reason string) {
	finish := "null"
	if reason != "" {
		finish = quote(reason)
	}
	x.event(`{"id":"chatcmpl-demo","object":"chat.completion.chunk","created":1,"model":` + quote(x.model) +
		`,"choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]}`)
}

func wholeAnswer(text string) string {
	return `{"id":"chatcmpl-demo","object":"chat.completion","created":1,"choices":[{"index":0,"message":{"role":"assistant","content":` +
		quote(text) + `},"finish_reason":"stop"}]}`
}

// textOf is what a model answers: another text for each, so that it shows who answered.
func textOf(model, variant string) string {
	begin := "This is " + model + ". "
	if variant != "" {
		begin = "[" + variant + "] " + begin
	}
	return begin + `The build fails since main.go imports a package that go.mod does not name – add it with "go get".
	A second reason hides behind the first: the generator writes to C:\temp, which your shell takes for C:temp.
	Third, the test called naïve café 東京 compares bytes where it means characters 🙂, so it fails for every
name beyond ASCII. Mend these in this order, run "make test" after each, and tell me what remains: what I have
seen so far does not say whether the deployment waits for the same package, or whether it has a copy of its own.
`
}

// pieces cuts a text into n parts, between characters.
func pieces(s string, n int) []string {
	var list []string
	from := 0
	for i := 1; i <= n; i++ {
		to := len(s) * i / n
		for to < len(s) && !utf8.RuneStart(s[to]) {
			to++
		}
		list = append(list, s[from:to])
		from = to
	}
	return list
}

// quote is a JSON string.
func quote(s string) string {
	b, _ := json.Marshal(s) // a string always can be
	return string(b)
}
