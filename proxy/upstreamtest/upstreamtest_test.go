package upstreamtest

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client opens a connection for every request, so that one fault does not affect the
// next request.
func client(t *testing.T) *http.Client {
	t.Helper()
	tr := &http.Transport{DisableKeepAlives: true, DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func start(t *testing.T) *Running {
	t.Helper()
	return New(Options{}).Start(t)
}

// body is a request for a model; extra is put in front of the messages.
func body(model, extra string) string {
	return `{"model":` + quoted(model) + `,` + extra + `"messages":[{"role":"user","content":"hello"}]}`
}

func post(t *testing.T, r *Running, payload string, header ...string) (*http.Response, error) {
	t.Helper()
	return postContext(t, t.Context(), r, payload, header...)
}

func postContext(t *testing.T, ctx context.Context, r *Running, payload string, header ...string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL()+"/v1/chat/completions", strings.NewReader(payload))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return client(t).Do(req)
}

// ask posts a request and returns the status, the body and the read error.
func ask(t *testing.T, r *Running, payload string, header ...string) (int, string, error) {
	t.Helper()
	res, err := post(t, r, payload, header...)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, string(b), err
}

// streamResult is the content of a parsed stream.
type streamResult struct {
	events              []string // data of each event
	role, text, reason  string
	toolID, tool, args  string
	finish              string
	usage               gjson.Result
	done                bool
	malformed, comments int
	failure             gjson.Result
	contentChunks       int
	err                 error
}

func readStream(rd io.Reader) streamResult {
	var s streamResult
	br := bufio.NewReader(rd)
	for {
		line, err := br.ReadString('\n')
		if err != nil {
			if !errors.Is(err, io.EOF) {
				s.err = err
			}
			return s
		}
		line = strings.TrimRight(line, "\r\n")
		if strings.HasPrefix(line, ":") {
			s.comments++
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		s.events = append(s.events, data)
		switch {
		case data == "[DONE]":
			s.done = true
			continue
		case !gjson.Valid(data):
			s.malformed++
			continue
		}
		if e := gjson.Get(data, "error"); e.Exists() {
			s.failure = e
		}
		if u := gjson.Get(data, "usage"); u.IsObject() {
			s.usage = u
		}
		c := gjson.Get(data, "choices.0")
		d := c.Get("delta")
		s.role += d.Get("role").Str
		if text := d.Get("content").Str; text != "" {
			s.text += text
			s.contentChunks++
		}
		s.reason += d.Get("reasoning_content").Str
		s.toolID += d.Get("tool_calls.0.id").Str
		s.tool += d.Get("tool_calls.0.function.name").Str
		s.args += d.Get("tool_calls.0.function.arguments").Str
		s.finish += c.Get("finish_reason").Str
	}
}

func stream(t *testing.T, r *Running, model, extra string) streamResult {
	t.Helper()
	res, err := post(t, r, body(model, `"stream":true,`+extra))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Fatalf("status %d", res.StatusCode)
	}
	return readStream(res.Body)
}

func awaitOne(t *testing.T, r *Running, model string) Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	recs, err := r.Await(ctx, model, 1)
	if err != nil {
		t.Fatalf("no finished request: %v", err)
	}
	return recs[0]
}

func awaitArrival(t *testing.T, r *Running, model string, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := r.AwaitArrival(ctx, model, n); err != nil {
		t.Fatalf("%d requests did not arrive: %v", n, err)
	}
}
