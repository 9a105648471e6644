package proxy_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"
)

// failing answers its first requests with statuses, all others with what it was asked.
type failing struct {
	*httptest.Server
	mu       sync.Mutex
	statuses []int
	asked    []string
}

func newFailing(t *testing.T) *failing {
	up := &failing{}
	up.Server = httptest.NewServer(up)
	t.Cleanup(up.Close)
	return up
}

func (u *failing) set(statuses ...int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.statuses, u.asked = statuses, nil
}

func (u *failing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	u.mu.Lock()
	u.asked = append(u.asked, r.Method+" "+r.URL.Path+" "+string(body))
	status := 200
	if len(u.statuses) > 0 {
		status, u.statuses = u.statuses[0], u.statuses[1:]
	}
	u.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if status != 200 {
		_, _ = io.WriteString(w, `{"detail":"no"}`)
		return
	}
	_, _ = io.WriteString(w, `{"data":[{"id":"of-upstream"}], "odd":  1}`)
}

// A client that wants nothing done to a request gets its first answer.
func TestRepeatedOff(t *testing.T) {
	up := newFailing(t)
	g := startYAML(t, strings.ReplaceAll(scaled, "UP/", up.URL+"/"))
	for mode, want := range map[string]int{"off": 503, "observe": 503, "act": 200, "soon": 400} {
		up.set(503)
		if r := g.post(t.Context(), "/v1/embeddings", `{"model":"m","input":"x"}`, http.Header{"X-Rebound-Mode": {mode}}); r.status != want {
			t.Errorf("%s: %d %s", mode, r.status, r.body)
		}
	}
}

// Repeatable requests share the limits of all keys of an upstream.
func TestRepeatedSharesKeys(t *testing.T) {
	t.Parallel()
	up := record(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"data":[]}`)
	})
	g := startYAML(t, strings.ReplaceAll(`upstreams: {default: {url: "UP/v1", profile: hosted, keys: [{name: a, env: KEY_A}, {name: b, env: KEY_B}]}}`, "UP/", up.url+"/"))
	seen := map[string]int{}
	for range 40 {
		if r := g.post(t.Context(), "/v1/embeddings", `{"model":"m","input":"x"}`, nil); r.status != 200 {
			t.Fatalf("%d %s", r.status, r.body)
		}
	}
	for _, asked := range up.take() {
		seen[asked.header.Get("Authorization")]++
	}
	if len(seen) != 2 {
		t.Errorf("of two keys %d are used", len(seen))
	}
}

// Embeddings, rerank, moderations and lists of models are waited for and sent again, and
// all of them pass as they are; what else is forwarded is not sent again.
func TestRepeated(t *testing.T) {
	t.Parallel()
	up := newFailing(t)
	g := startYAML(t, strings.ReplaceAll(scaled, "UP/", up.URL+"/"))
	for path, again := range map[string]bool{"/v1/embeddings": true, "/v1/rerank": true, "/v1/moderations": true, "/v1/images/generations": false,
		"GET /v1/models": true, "GET /v1/models/x": true, "GET /v1/batches": false} {
		method, at, ok := strings.Cut(path, " ")
		if !ok {
			method, at = http.MethodPost, path
		}
		ask := func() (int, string, http.Header) {
			body := ""
			if method == http.MethodPost {
				body = `{"model":"m", "input":["x",  1e2]}`
			}
			resp, raw, _ := g.fetch(method, at, body, nil)
			return resp.StatusCode, string(raw), resp.Header
		}
		up.set(503, 429, 502, 500)
		status, body, _ := ask()
		if (status == 200) != again || (len(up.asked) == 5) != again || again && body != `{"data":[{"id":"of-upstream"}], "odd":  1}` {
			t.Errorf("%s: status %d, %s, asked %v", path, status, body, up.asked)
		}
		for _, one := range up.asked {
			if one != up.asked[0] || method == http.MethodPost && !strings.HasSuffix(one, `{"model":"m", "input":["x",  1e2]}`) {
				t.Errorf("%s: sent %s", path, one)
			}
		}
		up.set(422)
		if status, body, _ := ask(); status != 422 || body != `{"detail":"no"}` || len(up.asked) != 1 {
			t.Errorf("%s: refused with %d, %s after %d", path, status, body, len(up.asked))
		}
		if at != "/v1/embeddings" {
			continue
		}
		forEver := make([]int, 100)
		for i := range forEver {
			forEver[i] = 503
		}
		up.set(forEver...)
		if status, body, h := ask(); status != 503 || body != `{"detail":"no"}` || h.Get("Retry-After") == "" || len(up.asked) < 3 || len(up.asked) > 21 {
			t.Errorf("%s: %d, %s, %v after %d", path, status, body, h, len(up.asked))
		}
		g = startYAML(t, strings.ReplaceAll(scaled, "UP/", up.URL+"/")) // without its breaker
	}
}

// Embeddings move only to a target that serves the same model name.
func TestRepeatedMoves(t *testing.T) {
	t.Parallel()
	down, well := newFailing(t), newFailing(t)
	config := strings.Replace(strings.ReplaceAll(scaled, "UP/", well.URL+"/"), "  dead:", `  down: {url: "`+down.URL+`/v1", profile: hosted}`+"\n  dead:", 1)
	g := startYAML(t, config+models(map[string][]string{"same": {"down e", "default e"}, "other": {"down e", "default f"}}))
	for model, moves := range map[string]bool{"same": true, "other": false} {
		forEver := make([]int, 100)
		for i := range forEver {
			forEver[i] = 503
		}
		down.set(forEver...)
		well.set()
		r := g.post(t.Context(), "/v1/embeddings", `{"model":"`+model+`","input":"x"}`, nil)
		if (r.status == 200) != moves || (len(well.asked) == 1) != moves {
			t.Errorf("%s: %s, asked %v", model, r, well.asked)
		}
	}
}

// A merged list of models is waited for as well.
func TestRepeatedList(t *testing.T) {
	up := newFailing(t)
	g := startYAML(t, strings.ReplaceAll(scaled, "UP/", up.URL+"/")+models(map[string][]string{"mine": {"default m"}}))
	up.set(503, 503)
	_, raw, _ := g.fetch("GET", "/v1/models", "", nil)
	if ids := gjson.GetBytes(raw, "data.#.id").Raw; ids != `["of-upstream","mine"]` || len(up.asked) != 3 {
		t.Errorf("%s, asked %v", raw, up.asked)
	}
}
