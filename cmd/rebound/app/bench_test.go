package app_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/cmd/rebound/app"
	"github.com/rebound-llm/rebound/configs"
)

// BenchmarkHealthy measures a healthy request through the whole gateway on loopback, with a client and
// an upstream that are as cheap as possible. Most of the time is the system's; the profile and the
// allocations show the gateway's part.
func BenchmarkHealthy(b *testing.B) {
	const (
		call = `{"role":"assistant","content":null,"tool_calls":[{"id":"call_9","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"internal/proxy/file_0007.go\"}"}}]}`
		text = `{"role":"assistant","content":"The import of net/http was missing in internal/proxy/file_0001.go; I added it and all tests pass now."}`
	)
	answer := func(message, finish string) string {
		return `{"id":"chatcmpl-1","object":"chat.completion","created":1760000000,"model":"m","choices":[{"index":0,"message":` + message +
			`,"finish_reason":"` + finish + `"}],"usage":{"prompt_tokens":260,"completion_tokens":24,"total_tokens":284}}`
	}
	for _, c := range []struct {
		name   string
		answer string
		size   int
		stream bool
	}{
		{"text/1KB", answer(text, "stop"), 1 << 10, false},
		{"call/1KB", answer(call, "tool_calls"), 1 << 10, false},
		{"stream/1KB", streamed(20), 1 << 10, true},
		{"call/100KB", answer(call, "tool_calls"), 100 << 10, false},
	} {
		b.Run(c.name, func(b *testing.B) {
			healthy(b, "/v1/chat/completions", c.answer, agentBody(c.size, c.stream), c.stream)
		})
	}
	// The same conversation in the other format.
	for _, c := range []struct {
		name   string
		answer string
		stream bool
	}{
		{"responses/100KB", calledResponse, false},
		{"responses/stream/100KB", streamedResponse(20), true},
		{"stream/100KB", streamed(20), true},
	} {
		b.Run(c.name, func(b *testing.B) {
			path, body := "/v1/chat/completions", agentBody(100<<10, c.stream)
			if strings.HasPrefix(c.name, "responses") {
				path, body = "/v1/responses", asItems(b, body)
			}
			healthy(b, path, c.answer, body, c.stream)
		})
	}
}

const calledResponse = `{"id":"resp_1","object":"response","created_at":1760000000,"status":"completed","error":null,"incomplete_details":null,"model":"m","output":[` +
	`{"id":"fc_1","type":"function_call","call_id":"call_9","name":"read_file","arguments":"{\"path\":\"internal/proxy/file_0007.go\"}","status":"completed"}],` +
	`"usage":{"input_tokens":260,"output_tokens":24,"total_tokens":284}}`

// streamedResponse is streamed for the Responses API.
func streamedResponse(n int) string {
	var s strings.Builder
	seq := 0
	event := func(kind, fields string) {
		fmt.Fprintf(&s, "event: response.%s\ndata: {\"type\":\"response.%s\",\"sequence_number\":%d,%s}\n\n", kind, kind, seq, fields)
		seq++
	}
	const at = `"item_id":"msg_1","output_index":0,"content_index":0`
	response := func(status, output string) string {
		return `"response":{"id":"resp_1","object":"response","created_at":1760000000,"status":"` + status + `","model":"m","output":[` + output + `]}`
	}
	event("created", response("in_progress", ""))
	event("in_progress", response("in_progress", ""))
	event("output_item.added", `"output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}`)
	event("content_part.added", at+`,"part":{"type":"output_text","annotations":[],"logprobs":[],"text":""}`)
	text := ""
	for i := range n {
		word := fmt.Sprintf("word %d of it ", i)
		text += word
		event("output_text.delta", at+`,"delta":"`+word+`","logprobs":[],"obfuscation":"q8Zt3"`)
	}
	part := `{"type":"output_text","annotations":[],"logprobs":[],"text":"` + text + `"}`
	item := `{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[` + part + `]}`
	event("output_text.done", at+`,"text":"`+text+`","logprobs":[]`)
	event("content_part.done", at+`,"part":`+part)
	event("output_item.done", `"output_index":0,"item":`+item)
	event("completed", response("completed", item))
	return s.String()
}

// asItems converts a body of agentBody to a request of the Responses API.
func asItems(b *testing.B, chat []byte) []byte {
	b.Helper()
	out := []byte(`{"model":"m","store":false,"stream":` + strconv.FormatBool(gjson.GetBytes(chat, "stream").Bool()) + `,"temperature":0.2,"input":[`)
	add := func(format string, args ...any) {
		if out[len(out)-1] != '[' {
			out = append(out, ',')
		}
		out = fmt.Appendf(out, format, args...)
	}
	for _, m := range gjson.GetBytes(chat, "messages").Array() {
		switch call := m.Get("tool_calls.0"); {
		case call.Exists():
			add(`{"type":"function_call","id":"fc_%s","call_id":%s,"name":%s,"arguments":%s}`, call.Get("id").Str, call.Get("id").Raw, call.Get("function.name").Raw, call.Get("function.arguments").Raw)
		case m.Get("role").Str == "tool":
			add(`{"type":"function_call_output","call_id":%s,"output":%s}`, m.Get("tool_call_id").Raw, m.Get("content").Raw)
		default:
			add(`{"role":%s,"content":%s}`, m.Get("role").Raw, m.Get("content").Raw)
		}
	}
	out = append(out, `],"tools":[{"type":"function","name":"read_file","description":"Read a file","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}]}`...)
	if !json.Valid(out) {
		b.Fatal("the request is no JSON")
	}
	return out
}

// streamed returns a stream with n pieces of text.
func streamed(n int) string {
	var s strings.Builder
	chunk := func(delta, finish string) {
		fmt.Fprintf(&s, "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1760000000,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n", delta, finish)
	}
	chunk(`{"role":"assistant","content":""}`, "null")
	for i := range n {
		chunk(fmt.Sprintf(`{"content":"word %d of it "}`, i), "null")
	}
	chunk(`{}`, `"stop"`)
	s.WriteString("data: [DONE]\n\n")
	return s.String()
}

// agentBody returns a coding agent's request of about size bytes.
func agentBody(size int, stream bool) []byte {
	var s bytes.Buffer
	fmt.Fprintf(&s, `{"model":"m","stream":%v,"messages":[{"role":"system","content":"You are a careful coding agent. Read, edit and test with the tools; answer briefly."},`+
		`{"role":"user","content":"Session 000001: the build says \"undefined: RoundTripper\". Fix it and run the tests."}`, stream)
	for i := 0; i == 0 || s.Len() < size-200; i++ {
		fmt.Fprintf(&s, `,{"role":"assistant","content":null,"tool_calls":[{"id":"call_%d","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"internal/proxy/file_%d.go\"}"}}]}`, i, i)
		source := strings.Repeat(fmt.Sprintf(`package proxy\n\n// Do number %d forwards a call.\nfunc Do(r *http.Request) error {\n\treturn nil\n}\n`, i), 60)
		fmt.Fprintf(&s, `,{"role":"tool","tool_call_id":"call_%d","content":"%s"}`, i, strings.TrimRight(source[:min(len(source), max(40, size-s.Len()-350))], `\`))
	}
	s.WriteString(`],"temperature":0.2,"tools":[{"type":"function","function":{"name":"read_file","description":"Read a file","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}}]}`)
	return s.Bytes()
}

// healthy sends body to path through a gateway for each iteration of b.
func healthy(b *testing.B, path, answer string, body []byte, stream bool) {
	kind := "application/json"
	if stream {
		kind = "text/event-stream"
	}
	up := fixedUpstream(b, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", kind, len(answer), answer))
	cfg, err := configs.Parse("bench.yaml", []byte("listen: 127.0.0.1:0\nupstreams:\n  default: {url: \"http://"+up+"/v1\", passthrough: true, profile: hosted}\n"), environ)
	if err != nil {
		b.Fatal(err)
	}
	a, err := app.New(cfg, io.Discard, "test")
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	conn, err := net.Dial("tcp", a.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		conn.Close()
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	}()
	request := append([]byte("POST "+path+" HTTP/1.1\r\nHost: gateway\r\nAccept: application/json\r\nContent-Type: application/json\r\nUser-Agent: OpenAI/Python 1.99.9\r\n"+
		"X-Stainless-Lang: python\r\nX-Stainless-Retry-Count: 0\r\nX-Stainless-Read-Timeout: 600\r\nAuthorization: Bearer sk-bench-0123456789abcdef\r\nContent-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"), body...)
	in := bufio.NewReaderSize(conn, 64<<10)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := conn.Write(request); err != nil {
			b.Fatal(err)
		}
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			b.Fatal(err)
		}
		n, err := io.Copy(io.Discard, resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK || n != int64(len(answer)) {
			b.Fatalf("status %d, %d of %d bytes, %v", resp.StatusCode, n, len(answer), err)
		}
	}
}

// fixedUpstream answers every request with the same bytes. It returns its address.
func fixedUpstream(b *testing.B, answer string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	sent := []byte(answer)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				in := bufio.NewReaderSize(c, 64<<10)
				for {
					n, err := bodyLength(in)
					if err != nil {
						return
					}
					if _, err := in.Discard(n); err != nil {
						return
					}
					if _, err := c.Write(sent); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// bodyLength reads the head of a request and returns its Content-Length.
func bodyLength(in *bufio.Reader) (n int, err error) {
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
			return n, nil
		}
		if name, value, _ := bytes.Cut(line, []byte(": ")); bytes.EqualFold(name, []byte("content-length")) {
			if n, err = strconv.Atoi(string(value)); err != nil {
				return 0, err
			}
		}
	}
}
