package page_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/rebound-llm/rebound/cmd/rebound/demo"
	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

var (
	shots    = flag.String("shots", "", "folder into which TestShots writes pictures of the page")
	shotsOf  = flag.String("shots-of", "", "gateway of which they are; one of its own with the demo's faults if empty")
	shotsFor = flag.Duration("shots-for", 3*time.Minute, "how long that one is used before")
)

// TestShots writes pictures of the page, for the documentation and for who looks at
// how it looks: go test ./e2e/page -run TestShots -args -shots DIR.
func TestShots(t *testing.T) {
	if *shots == "" {
		t.Skip("-shots names no folder")
	}
	gateway := *shotsOf
	if gateway == "" {
		gateway = demonstrate(t)
		time.Sleep(*shotsFor)
	}
	learnSome(t, gateway)
	b := open(t)
	b.do(chromedp.Navigate(gateway + "/rebound/"))
	b.await("the page", "document.getElementById('state').textContent === 'live'")
	find := func(what, selector string) string {
		b.await(what, selector)
		return eval[string](b, selector)
	}
	rows := "[...document.querySelectorAll('.rows tbody tr')]"
	b.await("requests", rows+".length > 0")
	request := find("a request with a note", "(r => r ? 'request/' + r.dataset.key : '')("+rows+".find((r) => /tool-failed/.test(r.textContent)) || "+rows+"[0])")
	waited := find("a request with several attempts", "(r => r ? 'request/' + r.dataset.key : '')("+rows+".find((r) => /parallel|wait/.test(r.textContent)) || "+rows+"[0])")
	for _, s := range []struct {
		name, view, theme string
		width, height     int64
		whole             bool // not only what is seen without scrolling
	}{
		{"now", "now", "light", 1280, 900, false},
		{"phone", "now", "light", 390, 844, false},
		{"request", request, "dark", 1280, 900, true},
		{"targets", "targets", "light", 1280, 900, true},
		{"now-dark", "now", "dark", 1280, 1600, false},
		{"attempts", waited, "light", 1280, 900, true},
		{"sessions", "sessions", "light", 1280, 900, true},
		{"targets-dark", "targets", "dark", 1280, 900, true},
		{"learned", "learned", "light", 1280, 900, true},
		{"phone-request", waited, "dark", 390, 844, true},
		{"phone-sessions", "sessions", "light", 390, 844, true},
		{"phone-targets", "targets", "light", 390, 844, true},
		{"phone-learned", "learned", "light", 390, 844, true},
	} {
		b.do(chromedp.EmulateViewport(s.width, s.height))
		_ = eval[any](b, fmt.Sprintf("localStorage.theme = %q", s.theme))
		b.do(chromedp.Navigate("about:blank"), chromedp.Navigate(gateway+"/rebound/#"+s.view))
		b.await("the page", "document.getElementById('state')?.textContent === 'live'")
		time.Sleep(3 * time.Second) // what a view asks for comes every two seconds
		take := chromedp.CaptureScreenshot()
		if s.whole {
			take = chromedp.FullScreenshot(100)
		}
		ctx, cancel := context.WithTimeout(b.ctx, patience)
		picture, err := chromedp.Run(ctx, take)
		cancel()
		if err == nil {
			err = os.WriteFile(filepath.Join(*shots, "page-"+s.name+".png"), picture, 0o644)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// demonstrate runs the demo, which goes on with faults until the test ends.
func demonstrate(t *testing.T) (url string) {
	addr, err := upstreamtest.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		_, err := demo.Run(ctx, io.Discard, demo.Options{Version: "test", Listen: addr})
		ended <- err
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return "http://" + addr
}

// learnSome tells a gateway outcomes of notes, of which the demo has too few to show.
func learnSome(t *testing.T, gateway string) {
	var corpus strings.Builder
	for i := range 300 {
		chain, arms := "file_not_found", []string{"", "verify_path", "create_if_appropriate"}
		if i%3 == 0 {
			chain, arms = "command_not_found", []string{"", "alternative_command", "manual_installation"}
		}
		arm, outcome := i/3%3, "failure"
		if i*7%10 < 3+2*arm {
			outcome = "success"
		}
		fmt.Fprintf(&corpus, `{"v":1,"id":"i%d","session":"s%d","time":%d,"chain":%q,"kind":"shell","model":"coder","strategy":%q,"outcome":%q}`+"\n",
			i, i, time.Now().Unix()-60, chain, arms[arm], outcome)
	}
	resp, err := http.Post(gateway+"/rebound/learn/corpus", "application/x-ndjson", strings.NewReader(corpus.String()))
	if err != nil {
		t.Fatal(err)
	}
	told, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	t.Logf("learned: %s", told)
}
