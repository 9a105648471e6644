package proxy_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

// mixed is a scripted upstream each of whose answers may fail in four ways, one after the
// other with the same chance. The faults of a user's requests do not depend on other users.
type mixed struct {
	inner  http.Handler
	mu     sync.Mutex
	random map[string]*rand.Rand // by user
	drawn  map[string]int
}

func (m *mixed) draw(user string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.random[user] == nil {
		n, _ := strconv.ParseUint(user, 10, 64)
		m.random[user] = rand.New(rand.NewPCG(1, n))
	}
	fault := "ok"
	for _, f := range []string{"429", "500", "cut=0.5", "malformed=0.5"} {
		if m.random[user].Float64() < 0.2 {
			fault = f
			break
		}
	}
	m.drawn[fault]++
	return fault
}

func (m *mixed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	fault := m.draw(gjson.GetBytes(body, "user").Str)
	if fault == "malformed=0.5" && !bytes.Contains(body, []byte(`"stream":true`)) {
		fault = "half-json"
	}
	body = bytes.Replace(body, []byte(`"model":"m"`), []byte(fmt.Sprintf(`"model":"m@%s"`, fault)), 1)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	m.inner.ServeHTTP(w, r)
}

// At an upstream with 429, 500, cut and malformed answers at 20 % each, which leaves two
// healthy ones of five, 196 of 200 requests are complete.
func TestMixedFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("200 requests")
	}
	m := &mixed{inner: upstreamtest.New(upstreamtest.Options{}), random: map[string]*rand.Rand{}, drawn: map[string]int{}}
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	g := startYAML(t, strings.ReplaceAll(strings.Replace(scaled, "patience: 2s", "patience: 6s", 1), "UP/", server.URL+"/"))
	const all, least = 200, 196
	var wg sync.WaitGroup
	places := make(chan struct{}, 8)
	failed := make([]string, all)
	for n := range all {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			if r := g.ask(t.Context(), "m", n%2 == 0, fmt.Sprintf(`"temperature":0,"user":"%d",`, n)); !r.complete() {
				failed[n] = fmt.Sprintf("request %d: %s attempts %s, %s, %s", n, r.header.Get("X-Rebound-Attempts"), r, r.event, r.body)
			}
		})
	}
	wg.Wait()
	lost := 0
	for _, f := range failed {
		if f != "" {
			lost++
			t.Logf("%.600s", f)
		}
	}
	t.Logf("drawn %v, %d of %d complete", m.drawn, all-lost, all)
	if all-lost < least {
		t.Errorf("%d of %d complete", all-lost, all)
	}
}
