package admin_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/proxy/admin"
)

func TestPage(t *testing.T) {
	mux := http.NewServeMux()
	admin.HandlePage(mux)
	ask := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w
	}
	page := ask("/rebound/")
	if page.Code != 200 || !strings.HasPrefix(page.Header().Get("Content-Type"), "text/html") {
		t.Fatalf("%d %v", page.Code, page.Header())
	}
	loaded := regexp.MustCompile(`(?:src|href)="([^"#]+)"`).FindAllStringSubmatch(page.Body.String(), -1)
	for _, m := range loaded {
		if w := ask("/rebound/" + m[1]); w.Code != 200 || w.Header().Get("Content-Security-Policy") == "" || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v", m[1], w.Code, w.Header())
		}
	}
	if len(loaded) < 5 {
		t.Errorf("the page loads %v", loaded)
	}
	for _, path := range []string{"/rebound/nothing.js", "/rebound/index.html", "/rebound/login.html", "/rebound/.."} {
		if w := ask(path); w.Code == 200 {
			t.Errorf("%s is served", path)
		}
	}
}

// The page has no script or style in its HTML, asks no other host, and parses no
// HTML: text of others cannot become any.
func TestPageParsesNothing(t *testing.T) {
	names, err := filepath.Glob("page/*")
	if err != nil || len(names) < 10 {
		t.Fatal(names, err)
	}
	forbidden := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacent|document\.write|DOMParser|\beval\(|new Function|srcdoc|javascript:|https?://(?:[^w]|w[^w])| on[a-z]+="|style="|<style|<script>`)
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains([]string{"uplot.js", "uplot.css", "uplot.LICENSE"}, filepath.Base(name)) {
			continue // a library, in which nothing was changed
		}
		if found := forbidden.Find(text); found != nil {
			t.Errorf("%s has %q", name, found)
		}
	}
}

// EventSource has to be told the name of each event: the page knows all of them.
func TestPageKnowsTheEvents(t *testing.T) {
	source, err := os.ReadFile("../../recovery/event.go")
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("page/data.js")
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`Event\w+ +EventName = "(\w+)"`).FindAllSubmatch(source, -1)
	for _, m := range list {
		if !strings.Contains(string(script), "'"+string(m[1])+"'") {
			t.Errorf("the page does not know %s", m[1])
		}
	}
	if len(list) < 15 {
		t.Errorf("%d events are found", len(list))
	}
}
