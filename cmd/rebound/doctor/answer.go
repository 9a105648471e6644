package doctor

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
)

const (
	// maxAnswer is the limit of one answer in bytes. Lists of models are the largest.
	maxAnswer = 8 << 20
	// maxPieces is the number of text deltas after which read leaves an answer that may be endless.
	maxPieces = 40
)

// toolCall is a tool call in an answer.
type toolCall struct{ id, name, args string }

// answer is the outcome of a request.
type answer struct {
	status int
	header http.Header
	body   []byte        // nil for a stream
	skew   time.Duration // how far the server's clock is ahead; only if dated
	dated  bool

	text, finish   string
	opening        string // the first piece of a streamed text
	reasoned       bool
	calls          []toolCall
	merged         bool          // several calls share an index
	prompt, output int           // tokens, as the server reports
	pieces         int           // number of text deltas in a stream
	first, took    time.Duration // until the first text, and until the end
	ended          bool          // the stream is complete

	failure *recovery.Diagnosis // nil for a complete answer
	skipped bool                // not sent, because the target got its maximum of requests
}

// class is the class of the failure, "" without one.
func (a *answer) class() recovery.Class {
	if a.failure == nil {
		return ""
	}
	return a.failure.Spec.Class
}

// read reads a stream to its end, or to limit text deltas if limit is not 0. It passes the events to add, except an
// error event, which is returned in failed.
func (a *answer) read(body io.Reader, add func(*answer, gjson.Result), started time.Time, limit int) (failed []byte, err error) {
	lines := bufio.NewScanner(io.LimitReader(body, maxAnswer))
	lines.Buffer(nil, maxAnswer)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(bytes.TrimRight(lines.Bytes(), "\r"), []byte("data:"))
		if data = bytes.TrimSpace(data); !ok || len(data) == 0 {
			continue
		}
		if string(data) == "[DONE]" {
			a.ended = true
			break
		}
		event := gjson.ParseBytes(bytes.Clone(data))
		if event.Get("error").IsObject() {
			return []byte(event.Raw), nil
		}
		before := len(a.text)
		add(a, event)
		if len(a.text) > before {
			if a.pieces++; a.pieces == 1 {
				a.first, a.opening = time.Since(started), a.text
			}
			if limit > 0 && a.pieces >= limit {
				a.ended = true
				break
			}
		}
	}
	a.ended = a.ended || a.finish != ""
	a.took = time.Since(started)
	return nil, lines.Err()
}

// usable reports whether a call has a name and arguments with a city.
func (c toolCall) usable() bool {
	return c.name == toolName && gjson.Valid(c.args) && strings.TrimSpace(gjson.Get(c.args, "city").Str) != ""
}
