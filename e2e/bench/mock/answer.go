package mock

import (
	"strconv"
	"strings"
	"time"
)

var prose = strings.Repeat("The build failed because the interface is declared in another package; importing it and running the tests again is enough. ", 1000)

const (
	jsonHead = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" +
		"x-request-id: req_0123456789abcdef\r\nopenai-processing-ms: 12\r\nx-ratelimit-remaining-requests: 9999\r\nContent-Length: "
	streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-cache\r\n" +
		"x-request-id: req_0123456789abcdef\r\nopenai-processing-ms: 12\r\nTransfer-Encoding: chunked\r\n\r\n"
	notFound = "HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: 35\r\n\r\n" +
		`{"error":{"message":"no such URL"}}`
)

// writeJSON answers with one completion, in one write.
func (c *conn) writeJSON(o order, promptTokens int) error {
	b := c.event[:0]
	b = append(b, `{"id":"chatcmpl-bench","object":"chat.completion","created":`...)
	b = strconv.AppendInt(b, time.Now().Unix(), 10)
	b = append(b, `,"model":"`...)
	b = append(b, o.model...)
	b = append(b, `","choices":[{"index":0,"message":{"role":"assistant","content":"`...)
	b = append(b, prose[:o.content]...)
	b = append(b, `","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],"usage":`...)
	b = appendUsage(b, promptTokens, o.content/4)
	b = append(b, `,"service_tier":"default","system_fingerprint":"fp_bench"}`...)
	c.event = b

	c.out = append(c.out[:0], jsonHead...)
	c.out = strconv.AppendInt(c.out, int64(len(b)), 10)
	c.out = append(c.out, "\r\n\r\n"...)
	c.out = append(c.out, b...)
	_, err := c.socket.Write(c.out)
	return err
}

// writeStream answers with server-sent events, one write each; the head
// travels with the first, as servers of this kind do it.
func (c *conn) writeStream(o order, promptTokens int) error {
	head := append([]byte(`data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":`), strconv.FormatInt(time.Now().Unix(), 10)...)
	head = append(head, `,"model":"`...)
	head = append(head, o.model...)
	head = append(head, `","service_tier":"default","system_fingerprint":"fp_bench","choices":[`...)

	c.out = append(c.out[:0], streamHead...)
	c.event = append(append(c.event[:0], head...), `{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}]}`+"\n\n"...)
	if err := c.writeChunk(""); err != nil {
		return err
	}
	for range o.chunks {
		if o.delay > 0 {
			time.Sleep(o.delay)
		}
		c.event = append(append(c.event[:0], head...), `{"index":0,"delta":{"content":"`...)
		if o.stamped {
			c.event = append(c.event, '~')
			c.event = strconv.AppendInt(c.event, time.Now().UnixNano(), 10)
			c.event = append(c.event, '~')
		}
		c.event = append(c.event, ` token"},"logprobs":null,"finish_reason":null}]}`+"\n\n"...)
		if err := c.writeChunk(""); err != nil {
			return err
		}
	}
	c.event = append(append(c.event[:0], head...), `{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}`+"\n\n"...)
	if o.usage {
		c.event = append(append(c.event, head...), `],"usage":`...)
		c.event = appendUsage(c.event, promptTokens, o.chunks)
		c.event = append(c.event, "}\n\n"...)
	}
	c.event = append(c.event, "data: [DONE]\n\n"...)
	return c.writeChunk("0\r\n\r\n")
}

// writeChunk sends what out holds already, the event as one HTTP chunk, and end.
func (c *conn) writeChunk(end string) error {
	c.out = strconv.AppendInt(c.out, int64(len(c.event)), 16)
	c.out = append(c.out, "\r\n"...)
	c.out = append(c.out, c.event...)
	c.out = append(c.out, "\r\n"...)
	c.out = append(c.out, end...)
	_, err := c.socket.Write(c.out)
	c.out = c.out[:0]
	return err
}

func appendUsage(b []byte, prompt, completion int) []byte {
	b = append(b, `{"prompt_tokens":`...)
	b = strconv.AppendInt(b, int64(prompt), 10)
	b = append(b, `,"completion_tokens":`...)
	b = strconv.AppendInt(b, int64(completion), 10)
	b = append(b, `,"total_tokens":`...)
	b = strconv.AppendInt(b, int64(prompt+completion), 10)
	return append(b, `,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}`...)
}
