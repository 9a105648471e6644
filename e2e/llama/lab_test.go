package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestCutter: the first connection breaks, the second is whole.
func TestCutter(t *testing.T) {
	body := bytes.Repeat([]byte("x"), 3*cutAfter)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) }))
	defer server.Close()
	l, err := cutter(strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for i, whole := range []bool{false, true, false} {
		res, err := client.Get("http://" + l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(res.Body)
		res.Body.Close()
		if (err == nil && bytes.Equal(got, body)) != whole || len(got) == 0 {
			t.Errorf("connection %d: %d bytes, %v", i+1, len(got), err)
		}
	}
}
