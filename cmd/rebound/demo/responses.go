package demo

import (
	"bufio"
	"io"
	"strings"

	"github.com/tidwall/gjson"
)

// readResponse reads the events of a response as SDKs do.
func readResponse(body io.Reader) (r reply) {
	var text strings.Builder
	s := bufio.NewScanner(body)
	s.Buffer(nil, maxEvent)
	for s.Scan() && r.err == nil && !r.done {
		data, ok := strings.CutPrefix(s.Text(), "data: ")
		if !ok {
			continue
		}
		switch e := gjson.Parse(data); e.Get("type").Str {
		case "response.created":
			r.id = e.Get("response.id").Str
		case "response.output_text.delta":
			text.WriteString(e.Get("delta").Str)
		case "response.completed":
			r.done = true
		case "response.failed", "error":
			r.err = errEvent
		}
	}
	if r.text = text.String(); r.err == nil && !r.done {
		r.err = s.Err()
	}
	return r
}
