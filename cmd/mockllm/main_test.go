package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "script.json")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestRunUntilTheContextEnds(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := run(ctx, []string{"-addr", "127.0.0.1:0", "-script", write(t, `{"plain":"429/ok"}`)}); err != nil {
		t.Error(err)
	}
}

func TestRunRefuses(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"-addr", "127.0.0.1:0", "stray"}, "unexpected argument"},
		{[]string{"-addr", "127.0.0.1:0", "-script", "missing.json"}, "missing.json"},
		{[]string{"-addr", "127.0.0.1:0", "-script", write(t, `[]`)}, "cannot unmarshal"},
		{[]string{"-addr", "127.0.0.1:0", "-script", write(t, `{"m":"banana"}`)}, `unknown directive "banana"`},
		{[]string{"-addr", "nowhere:x"}, "listening"},
	} {
		if err := run(t.Context(), tc.args); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: %v", tc.args, err)
		}
	}
}

func TestLoad(t *testing.T) {
	s := upstreamtest.New(upstreamtest.Options{})
	if err := load(s, write(t, `{"a":"418x2/ok","b":"502"}`)); err != nil {
		t.Fatal(err)
	}
	up := s.Start(t)
	for _, want := range []struct {
		model  string
		status int
	}{{"a", 418}, {"b", 502}, {"a", 418}, {"a", 200}} {
		res, err := http.Post(up.URL()+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"`+want.model+`","messages":[]}`))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want.status {
			t.Errorf("%s: status %d, want %d", want.model, res.StatusCode, want.status)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}
