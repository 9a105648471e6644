package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// A broken stream is resumed after its last event, and skipped events are shown.
func TestFollowEvents(t *testing.T) {
	var asked []string
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RawQuery+" after "+r.Header.Get("Last-Event-ID"))
		n := len(asked)
		_, _ = fmt.Fprintf(w, ": keep-alive\nid: 000%d\nevent: x\ndata: {\"event\":\"x\",\"attempt\":%d}\n\n", n, n)
		if n == 2 {
			_, _ = fmt.Fprint(w, "event: dropped\ndata: {\"dropped\":7}\n\n")
		}
	}))
	defer gateway.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var shown []string
	none := func(string) (string, bool) { return "", false }
	err := followEvents(ctx, adminClient{gateway.URL, none}, url.Values{"class": {"timeout"}}, func(event []byte) error {
		if shown = append(shown, string(event)); len(shown) == 3 {
			cancel()
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if len(shown) != 3 || shown[0] != `{"event":"x","attempt":1}` || shown[1] != `{"event":"x","attempt":2}` ||
		!strings.Contains(shown[2], `"cause":"7 events were skipped`) {
		t.Errorf("shown: %q", shown)
	}
	if len(asked) != 2 || asked[0] != "class=timeout after " || asked[1] != "class=timeout after 0001" {
		t.Errorf("asked: %q", asked)
	}
	gateway.Close()
	if err := followEvents(t.Context(), adminClient{gateway.URL, none}, nil, nil); err == nil || !strings.Contains(err.Error(), "no gateway answers") {
		t.Errorf("of nobody: %v", err)
	}
}
