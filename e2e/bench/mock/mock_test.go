package mock

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestParseOrder(t *testing.T) {
	long := `{"messages":[{"role":"user","content":"say \"model\":\"m-n9\" ` + strings.Repeat("x", 2*tail) + `"}],`
	tests := map[string]struct {
		body string
		want order
	}{
		"defaults": {`{"model":"gpt"}`, order{chunks: 20, content: 600}},
		"every part": {
			`{"messages":[],"model":"m-lat50-n100-d20-b4000-ts","stream":true}`,
			order{stream: true, stamped: true, latency: 50 * time.Millisecond, delay: 20 * time.Millisecond, chunks: 100, content: 4000},
		},
		"unknown parts": {`{"model":"m-x7-n-nine-n3"}`, order{chunks: 3, content: 600}},
		"model behind the history": {long + `"model":"m-n5","stream":true,"stream_options":{"include_usage":true}}`,
			order{stream: true, usage: true, chunks: 5, content: 600}},
		"model before the history": {`{"model":"m-n5",` + long[1:] + `"stop":null}`, order{chunks: 5, content: 600}},
		"no model":                 {`{}`, order{chunks: 20, content: 600}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := parseOrder([]byte(test.body))
			got.model = nil
			if got.stream != test.want.stream || got.usage != test.want.usage || got.stamped != test.want.stamped ||
				got.latency != test.want.latency || got.delay != test.want.delay || got.chunks != test.want.chunks || got.content != test.want.content {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// The mock is hand-written, so an independent client judges what it writes.
func TestServe(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); Serve(l) }()
	defer func() { l.Close(); <-done }()
	client := &http.Client{Transport: &http.Transport{}, Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()

	post := func(path, body string) (int, []byte) {
		t.Helper()
		resp, err := client.Post("http://"+l.Addr().String()+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, answer
	}

	t.Run("json", func(t *testing.T) {
		status, answer := post("/v1/chat/completions", `{"messages":[],"model":"m-b100"}`)
		var got struct {
			Model   string
			Choices []struct{ Message struct{ Content string } }
		}
		if err := json.Unmarshal(answer, &got); err != nil || status != http.StatusOK {
			t.Fatalf("status %d, %v in %s", status, err, answer)
		}
		if got.Model != "m-b100" || len(got.Choices) != 1 || len(got.Choices[0].Message.Content) != 100 {
			t.Errorf("unexpected answer: %s", answer)
		}
	})
	t.Run("stream", func(t *testing.T) {
		before := time.Now().UnixNano()
		_, answer := post("/v1/chat/completions", `{"messages":[],"model":"m-n3-d1-ts","stream":true,"stream_options":{"include_usage":true}}`)
		var events []string
		for lines := bufio.NewScanner(bytes.NewReader(answer)); lines.Scan(); {
			if data, found := strings.CutPrefix(lines.Text(), "data: "); found {
				events = append(events, data)
			}
		}
		if len(events) != 1+3+1+1+1 || events[len(events)-1] != "[DONE]" {
			t.Fatalf("role, 3 chunks, finish, usage and end expected: %q", events)
		}
		for _, event := range events[:len(events)-1] {
			if !json.Valid([]byte(event)) {
				t.Errorf("not JSON: %s", event)
			}
		}
		_, stamp, _ := strings.Cut(events[1], "~")
		stamp, _, _ = strings.Cut(stamp, "~")
		if sent, err := strconv.ParseInt(stamp, 10, 64); err != nil || sent < before {
			t.Errorf("first chunk's time %q: %v", stamp, err)
		}
		if !strings.Contains(events[5], `"completion_tokens":3`) {
			t.Errorf("usage: %s", events[5])
		}
	})
	t.Run("other URL", func(t *testing.T) {
		if status, answer := post("/v1/models", "{}"); status != http.StatusNotFound || !json.Valid(answer) {
			t.Errorf("status %d, %s", status, answer)
		}
	})
}
