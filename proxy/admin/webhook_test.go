package admin_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/proxy/admin"
	"github.com/rebound-llm/rebound/recovery"
)

// A webhook that nobody takes is tried three times, blocks nobody, and its loss is told.
func TestWebhookLoses(t *testing.T) {
	var mu sync.Mutex
	tries, redirected := 0, 0
	release := make(chan struct{})
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { redirected++ }))
	defer other.Close()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		tries++
		mu.Unlock()
		<-release
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}))
	defer srv.Close()
	lost := make(chan string, 1000)
	w := admin.NewWebhook(admin.Hook{URL: srv.URL, Secret: "s"}, func(cause string) { lost <- cause })
	defer w.Close()
	for range 100 {
		w.Tell(recovery.Approval{ID: "a", Plan: &recovery.Plan{}})
	}
	if n := len(lost); n < 30 || n > 36 { // 64 wait, and one is on its way
		t.Errorf("%d are lost for want of room", n)
	}
	for len(lost) > 0 {
		if cause := <-lost; cause != "too many webhooks wait" {
			t.Error(cause)
		}
	}
	close(release)
	select {
	case cause := <-lost:
		if cause != "the webhook was refused: 307" || redirected != 0 {
			t.Errorf("%s, %d redirected", cause, redirected)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("its loss is not told")
	}
	mu.Lock()
	defer mu.Unlock()
	if tries < 3 {
		t.Errorf("tried %d times", tries)
	}
}

// One without an address sends nothing.
func TestNoWebhook(t *testing.T) {
	w := admin.NewWebhook(admin.Hook{}, func(cause string) { t.Error(cause) })
	for range 1000 {
		w.Tell(recovery.Approval{})
	}
	w.Close()
}
