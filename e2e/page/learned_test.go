package page_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// What was learned of notes is shown as the gateway tells it.
func TestLearned(t *testing.T) {
	g, b := start(t, ""), open(t)
	b.do(chromedp.Navigate(g.url + "/rebound/#learned"))
	b.await("that nothing is known", "document.body.textContent.includes('No outcome of a note is known yet.')")
	chain := `"chain":"file_not_found","kind":"shell","model":"m"`
	var corpus strings.Builder
	for i := range 40 {
		strategy, outcome := "", "failure"
		if i%2 == 0 && i%8 != 0 {
			outcome = "success"
		}
		if i%2 == 0 {
			strategy = "verify_path"
		}
		fmt.Fprintf(&corpus, `{"v":1,"id":"i%d","session":"s%d","time":%d,%s,"strategy":%q,"outcome":%q}`+"\n", i, i, time.Now().Unix()-60, chain, strategy, outcome)
	}
	resp, err := http.Post(g.url+"/rebound/learn/corpus", "application/x-ndjson", strings.NewReader(corpus.String()))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	b.await("what is known", "document.querySelector('[data-figure=observations]')?.textContent === '40'")
	cell := g.told("learn").Get("cells.0")
	for _, arm := range cell.Get("arms").Array() {
		if got, want := b.figure("seen-"+cell.Get("chain").Str+"-"+arm.Get("strategy").Str), arm.Get("observations").Raw; got != want {
			t.Errorf("%q was seen %s times, want %s", arm.Get("strategy").Str, got, want)
		}
	}
	if got, want := b.figure("net-"+cell.Get("chain").Str), fmt.Sprintf("%+.0f", 100*cell.Get("net").Float()); got != want {
		t.Errorf("a note changes %s, want %s", got, want)
	}
	b.nothingRan()
}
