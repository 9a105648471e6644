package upstream_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/proxy/upstream"
)

// printing is a program that prints the n-th key at its n-th run, and says how often it ran.
func printing(t *testing.T, then string) (args []string, runs func() int) {
	t.Helper()
	dir := t.TempDir()
	script := filepath.Join(dir, "token")
	text := "#!/bin/sh\necho x >> " + filepath.Join(dir, "runs") + "\n" + then + "\nprintf 'token-%d\\n' $(wc -l < " + filepath.Join(dir, "runs") + ")\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return []string{script}, func() int {
		b, _ := os.ReadFile(filepath.Join(dir, "runs")) // there is none before the first run
		return strings.Count(string(b), "x")
	}
}

func printed(t *testing.T, url string, args []string, ttl time.Duration) *upstream.Upstream {
	t.Helper()
	cfg := upstream.Defaults()
	cfg.URL, cfg.Keys = url, []upstream.Key{{Name: "cloud", Command: args, TTL: ttl, Weight: 1}}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	u, err := upstream.New("up", cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(u.Close)
	return u
}

// A command is run once for all requests that wait, and once more when its key is refused; then the request is sent again.
func TestCommand(t *testing.T) {
	var good atomic.Value
	good.Store("Bearer token-1")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != good.Load() {
			w.WriteHeader(http.StatusUnauthorized)
		}
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	}))
	defer server.Close()
	args, runs := printing(t, "sleep 0.2")
	u := printed(t, server.URL, args, 0)
	ask := func() (int, string) {
		resp, err := u.Do(t.Context(), upstream.Request{Method: http.MethodPost, Path: "/chat", Key: "cloud", Body: []byte("hello"), Header: http.Header{}})
		if err != nil {
			t.Error(err)
			return 0, ""
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(body)
	}
	many := func() {
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if status, body := ask(); status != 200 || body != "hello" {
					t.Errorf("%d %q", status, body)
				}
			})
		}
		all.Wait()
	}
	many()
	if n := runs(); n != 1 {
		t.Errorf("the command ran %d times", n)
	}
	good.Store("Bearer token-2") // the first has expired
	many()
	if n := runs(); n != 2 {
		t.Errorf("the command ran %d times", n)
	}
	if got := strings.Join(u.Secrets(), " "); got != "token-2" {
		t.Errorf("secrets: %s", got)
	}
	good.Store("nobody's")
	if status, _ := ask(); status != http.StatusUnauthorized || runs() != 3 {
		t.Errorf("refused again: %d after %d runs", status, runs())
	}
}

// What is wrong with a command is told, without running it again and again.
func TestCommandFails(t *testing.T) {
	for name, c := range map[string]struct{ then, want string }{
		"fails":  {"echo 'no account' >&2; exit 3", "exit status 3: no account"},
		"words":  {"echo two words; exit 0", "more than one word"},
		"silent": {"exit 0", "prints nothing"},
	} {
		args, runs := printing(t, c.then)
		u := printed(t, "http://127.0.0.1:1", args, time.Minute)
		for range 3 {
			_, err := u.Do(t.Context(), upstream.Request{Method: http.MethodPost, Path: "/chat", Key: "cloud", Header: http.Header{}})
			var refused *upstream.CredentialError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) || refused.Key != "cloud" {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n := runs(); n != 1 {
			t.Errorf("%s: it ran %d times at once", name, n)
		}
	}
	u := printed(t, "http://127.0.0.1:1", []string{"/no/such/program"}, 0)
	if _, err := u.Do(t.Context(), upstream.Request{Method: http.MethodPost, Path: "/chat", Key: "cloud", Header: http.Header{}}); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("no program: %v", err)
	}
}

// A reload keeps what a command has printed, and a command that has changed runs again.
func TestCommandAfterReload(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("Authorization"))
	}))
	defer server.Close()
	args, runs := printing(t, "")
	var last *upstream.Upstream
	for i, c := range []struct {
		args []string
		key  string
		runs int
	}{{args, "token-1", 1}, {args, "token-1", 1}, {append(slices.Clone(args), "--other"), "token-2", 2}} {
		u := printed(t, server.URL, c.args, time.Hour)
		if u.Succeed(last); i == 1 && !slices.Contains(u.Secrets(), c.key) {
			t.Errorf("the key that is in use counts as no secret: %v", u.Secrets())
		}
		last = u
		resp, err := u.Do(t.Context(), upstream.Request{Method: http.MethodGet, Path: "/models", Key: "cloud"})
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if string(got) != "Bearer "+c.key || runs() != c.runs {
			t.Errorf("configuration %d: %s after %d runs, want %s after %d", i+1, got, runs(), c.key, c.runs)
		}
	}
}
