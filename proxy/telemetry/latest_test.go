package telemetry

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// The last thousand requests to which nothing happened are found by id, the upstream's too, by key, status and duration;
// none of them is in the log or in the history without being asked for.
func TestLatest(t *testing.T) {
	var out buffer
	h := newHub(t, Defaults(), &out)
	for i := range maxHealthy + 500 {
		ev := healthy()
		ev.Request, ev.Upstream, ev.Key, ev.Duration = fmt.Sprint("req_", i), fmt.Sprint("up_", i), []string{"alice", "bob"}[i%2], time.Duration(i)*time.Millisecond
		ev.Time = at.Add(time.Duration(i) * time.Millisecond)
		h.Observe(ev)
	}
	ask := func(query string) []gjson.Result {
		w := httptest.NewRecorder()
		h.History().ServeHTTP(w, httptest.NewRequest("GET", "/rebound/events/history?"+query, nil))
		return gjson.Get(w.Body.String(), "events").Array()
	}
	for query, want := range map[string]int{
		"last=1000": 0, "last=1000&requests=1": 1000, "requests=1&request=req_1499": 1, "requests=1&request=up_700": 1, "requests=1&request=req_499": 0,
		"requests=1&last=1000&key=alice": 500, "requests=1&slower=1490": 10, "requests=1&status=200&last=7": 7, "requests=1&status=500": 0,
	} {
		list := ask(query)
		if len(list) != want {
			t.Errorf("%s: %d requests, want %d", query, len(list), want)
		}
		for i := range list[min(len(list), 1):] {
			if list[i].Get("id").Str >= list[i+1].Get("id").Str {
				t.Fatalf("%s: not in order", query)
			}
		}
	}
	if list := ask("requests=1&last=1"); len(list) != 1 || list[0].Get("request").Str != "req_1499" || list[0].Get("upstream_request").Str != "up_1499" {
		t.Errorf("the newest: %v", list)
	}
	closeHub(t, h)
	if strings.Contains(out.String(), "request_done") {
		t.Error("healthy requests are logged")
	}
}
