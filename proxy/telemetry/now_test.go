package telemetry

import (
	"io"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"
)

// What Now tells is what was observed, and its samples are what it was then.
func TestNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Defaults(), io.Discard)
		ask := func(query string) (int, gjson.Result) {
			w := httptest.NewRecorder()
			h.Now().ServeHTTP(w, httptest.NewRequest("GET", "/rebound/now"+query, nil))
			return w.Code, gjson.ParseBytes(w.Body.Bytes())
		}
		h.Observe(healthy())
		time.Sleep(sampleEvery + time.Second)
		h.Begin()
		h.Observe(recovered())
		_, now := ask("?series=2")
		for path, want := range map[string]string{
			"version": "1.2.3", "series.#": "1", "series.0.requests.ok": "1", "series.0.requests.recovered": "", "now.requests.recovered": "1", "now.in_flight": "1",
			"now.attempts.openai.ok": "1", "now.attempts.openai.timeout": "1", "now.attempts.azure.ok": "1", "now.tokens.input": "2400", "now.tokens.cache_read": "2048",
			"now.extra.input": "1200", "now.ttfb.3": "2", "now.ttfb.14": "2", "now.ttfb.2": "0", "ttfb_bounds.3": "0.5",
		} {
			if got := now.Get(path).String(); got != want {
				t.Errorf("%s is %q, want %q", path, got, want)
			}
		}
		time.Sleep(2 * maxSamples * sampleEvery)
		if _, now := ask("?series=180"); now.Get("series.#").Int() != maxSamples {
			t.Errorf("%d samples are kept", now.Get("series.#").Int())
		}
		for _, bad := range []string{"?series=-1", "?series=181", "?series=x"} {
			if code, _ := ask(bad); code != 400 {
				t.Errorf("%s: %d", bad, code)
			}
		}
	})
}
