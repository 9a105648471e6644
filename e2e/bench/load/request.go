package load

import (
	"bytes"
	"fmt"
	"strings"
)

const path = "/v1/chat/completions"

// smallBody is where the conversation still has one tool call and one tool.
const smallBody = 4 << 10

// rendered is a whole request.
type rendered struct {
	raw     []byte
	numbers []int // where its number stands
}

// numbered is the request with another number. It changes the bytes.
func (r *rendered) numbered(n int) []byte {
	for _, at := range r.numbers {
		copy(r.raw[at:], fmt.Sprintf("%0*d", len(numberPlace), n))
	}
	return r.raw
}

// request renders a whole request: the head as OpenAI's Python client sends it,
// and the body.
func request(host string, stream bool, body []byte) (r rendered) {
	helper := "chat.completions"
	if stream {
		helper = "chat.completions.stream"
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: %s\r\n", path, host)
	b.WriteString("Accept-Encoding: gzip, deflate\r\nConnection: keep-alive\r\nAccept: application/json\r\nContent-Type: application/json\r\n" +
		"User-Agent: OpenAI/Python 1.99.9\r\nX-Stainless-Lang: python\r\nX-Stainless-Package-Version: 1.99.9\r\nX-Stainless-OS: Linux\r\n" +
		"X-Stainless-Arch: x64\r\nX-Stainless-Runtime: CPython\r\nX-Stainless-Runtime-Version: 3.12.4\r\nX-Stainless-Async: async:asyncio\r\n" +
		"X-Stainless-Retry-Count: 0\r\nX-Stainless-Read-Timeout: 600\r\nAuthorization: Bearer sk-bench-0123456789abcdef0123456789abcdef\r\n")
	fmt.Fprintf(&b, "X-Stainless-Helper-Method: %s\r\nContent-Length: %d\r\n\r\n", helper, len(body))
	b.Write(body)
	r.raw = b.Bytes()
	for at := 0; ; at += len(numberPlace) {
		i := bytes.Index(r.raw[at:], []byte(numberPlace))
		if i < 0 {
			return r
		}
		at += i
		r.numbers = append(r.numbers, at)
	}
}

const (
	system = `{"role":"system","content":"You are a careful coding agent. Read, edit and test with the tools; answer briefly."}`
	user   = `,{"role":"user","content":"Session %06d: the build says \"undefined: RoundTripper\". Fix it and run the tests."}`
	call   = `,{"role":"assistant","content":null,"tool_calls":[{"id":"call_%06d_%04d","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"internal/proxy/file_%04d.go\"}"}}]}`
	result = `,{"role":"tool","tool_call_id":"call_%06d_%04d","content":"%s"}`

	readTool = `{"type":"function","function":{"name":"read_file","description":"Read a file","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}}`
	moreTool = `,{"type":"function","function":{"name":"edit_file","description":"Replace a passage of a file by another",` +
		`"parameters":{"type":"object","properties":{"path":{"type":"string"},"old":{"type":"string"},"new":{"type":"string"}},"required":["path","old","new"]}}}` +
		`,{"type":"function","function":{"name":"run","description":"Run a command and return its output",` +
		`"parameters":{"type":"object","properties":{"command":{"type":"string"},"timeout":{"type":"integer","minimum":1}},"required":["command"]}}}`
)

// source is the text of the i-th tool result, escaped as it stands in JSON. Files
// differ, as in life: the same content again and again would be an agent that
// makes no progress.
func source(i int) string {
	return strings.ReplaceAll(passage, "NUMBER", fmt.Sprintf("%04d", i))
}

const passages = 40

var passage = strings.Repeat(`package proxy\n\n// Do in the file of number NUMBER forwards a call of upstream NUMBER & counts <tries>.\n`+
	`func (u *Upstream) Do(r *http.Request) (*http.Response, error) {\n\tfor i := 0; i < u.tries; i++ {\n\t\tresp, err := u.rt.RoundTrip(r)\n`+
	`\t\tif err == nil {\n\t\t\treturn resp, nil\n\t\t}\n\t}\n\treturn nil, errors.New(\"exhausted\")\n}\n`, passages)

// conversation is the body of a chat completion of exactly size bytes, or of
// the fewest that a conversation needs (about 900): a coding agent's history of
// tool calls and results. Conversations differ by session, in their first
// message too.
func conversation(model string, size int, stream bool, session int) []byte {
	end := `],"model":"` + model + `"`
	if stream {
		end += `,"stream":true,"stream_options":{"include_usage":true}`
	}
	end += `,"temperature":0.2,"tools":[` + readTool
	if size > smallBody {
		end += moreTool
	}
	end += `]}`

	var b bytes.Buffer
	b.WriteString(`{"messages":[` + system)
	fmt.Fprintf(&b, user, session)
	const turn = 6000 // bytes of a tool's result
	for i := 0; ; i++ {
		fmt.Fprintf(&b, call, session, i, i)
		frame := len(fmt.Sprintf(result, session, i, ""))
		left := size - b.Len() - frame - len(end)
		last := left <= 2*turn
		if !last {
			left = turn
		}
		fmt.Fprintf(&b, result, session, i, excerpt(source(i), max(left, 0)))
		if last {
			break
		}
	}
	b.WriteString(end)
	return b.Bytes()
}

// A connection's long conversations: each request has the one before in it and
// a turn more, until the next conversation begins.
const (
	conversations = 3
	turns         = 12
	turnSize      = 1 << 10
)

// bodies is what a connection sends, again and again: a short conversation as
// it is, of long ones the requests of some turns, of size bytes on average.
func bodies(model string, size int, stream bool, session int) (list [][]byte) {
	if size <= smallBody {
		return [][]byte{conversation(model, size, stream, session)}
	}
	for i := range conversations {
		n := session*conversations + i
		body := conversation(model, size-(turns-1)*turnSize/2, stream, n)
		for k := range turns {
			list = append(list, body)
			body = grown(body, n, 1000+k)
		}
	}
	return list
}

// grown is a conversation with a turn more.
func grown(body []byte, session, turn int) []byte {
	at := bytes.LastIndex(body, []byte(`],"model":`))
	var b bytes.Buffer
	b.Write(body[:at])
	fmt.Fprintf(&b, call, session, turn, turn)
	frame := b.Len() - at + len(fmt.Sprintf(result, session, turn, ""))
	fmt.Fprintf(&b, result, session, turn, excerpt(source(turn), turnSize-frame))
	b.Write(body[at:])
	return b.Bytes()
}

// excerpt is n bytes of source that end between two escapes.
func excerpt(source string, n int) string {
	n = min(n, len(source))
	text := source[:n]
	whole := strings.TrimRight(text, `\`)
	if (len(text)-len(whole))%2 == 1 {
		text = text[:n-1] + " "
	}
	return text
}
