// Command recording makes docs/recording.svg: one answer whose connection breaks half-way,
// asked for straight and through the gateway, at the pace at which it really came.
//
//	go run ./e2e/recording
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

const (
	answer = "The parser is copied into three handlers, so move it into a package of its own first, with the tests that exist. " +
		"Then give it a fuzz test, since it reads what strangers send. Last, delete the copies: after that each format has one reader, " +
		"and a fourth is one file."
	pause = 70 * time.Millisecond
	broke = 0.55 // of the first answer's words
)

// piece is some text, or the end, and when it came.
type piece struct {
	at   time.Duration
	text string
}

func main() {
	log.SetFlags(0)
	if err := record("docs/recording.svg"); err != nil {
		log.Fatal(err)
	}
}

// record asks both ways and draws what came.
func record(file string) error {
	dir, err := os.MkdirTemp("", "rebound-recording-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "rebound")
	if out, err := exec.Command("go", "build", "-o", program, "./cmd/rebound").CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	straight := provider()
	defer straight.Close()
	behind := provider()
	defer behind.Close()
	addr, err := upstreamtest.FreeAddr()
	if err != nil {
		return err
	}
	gateway := exec.Command(program, "serve", "--listen", addr, "--upstream", behind.URL+"/v1")
	if err := gateway.Start(); err != nil {
		return err
	}
	defer func() {
		_ = gateway.Process.Kill()
		_ = gateway.Wait()
	}()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if res, err := http.Get("http://" + addr + "/readyz"); err == nil {
			res.Body.Close()
			break
		} else if time.Now().After(deadline) {
			return err
		}
	}
	lost, err := ask(straight.URL)
	if err != nil {
		return err
	}
	kept, err := ask("http://" + addr)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(draw(lost, kept)), 0o644)
}

// provider streams the answer; the first connection breaks.
func provider() *httptest.Server {
	var count atomic.Int64
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			http.NotFound(w, r)
			return
		}
		n := count.Add(1)
		w.Header().Set("Content-Type", "text/event-stream")
		words := strings.SplitAfter(answer, " ")
		for i, word := range words {
			if n == 1 && float64(i) > broke*float64(len(words)) {
				panic(http.ErrAbortHandler)
			}
			fmt.Fprintf(w, `data: {"id":"c%d","object":"chat.completion.chunk","created":1,"model":"m",`+
				`"choices":[{"index":0,"delta":{"content":%q},"finish_reason":null}]}`+"\n\n", n, word)
			_ = http.NewResponseController(w).Flush()
			time.Sleep(pause)
		}
		fmt.Fprintf(w, "data: {\"id\":\"c%d\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", n)
	}))
}

// ask reads an answer as it comes. The last piece is how it ended.
func ask(base string) (pieces []piece, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v1/chat/completions",
		strings.NewReader(`{"model":"m","stream":true,"temperature":0,"messages":[{"role":"user","content":"How do I clean up the parser?"}]}`))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	began := time.Now()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	ended := "connection broke"
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			ended = "complete"
			continue
		}
		var chunk struct {
			Choices []struct{ Delta struct{ Content string } }
		}
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			return nil, err
		}
		for _, c := range chunk.Choices {
			if c.Delta.Content != "" {
				pieces = append(pieces, piece{time.Since(began), c.Delta.Content})
			}
		}
	}
	return append(pieces, piece{time.Since(began), ended}), nil
}

// The picture's measures, in pixels.
const (
	width, paneHeight, margin = 840, 168, 18
	advance, lineHeight       = 8.43, 22.0 // of the font at 14 pixels
)

// draw is the picture: one pane each way.
func draw(straight, through []piece) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="14">
<title>A stream whose connection breaks: straight it ends in the middle of a sentence, through Rebound it goes on.</title>
<style>.w{opacity:0;animation:come .01s linear forwards}@keyframes come{to{opacity:1}}@media (prefers-reduced-motion:reduce){.w{opacity:1;animation:none}}</style>
`, width, 2*paneHeight+margin)
	for i, pane := range []struct {
		head   string
		pieces []piece
	}{{"agent → provider", straight}, {"agent → Rebound → the same provider", through}} {
		drawPane(&b, float64(i)*(paneHeight+margin), pane.head, pane.pieces)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func drawPane(b *strings.Builder, top float64, head string, pieces []piece) {
	fmt.Fprintf(b, `<rect x="0.5" y="%.1f" width="%d" height="%d" rx="8" fill="#0d1117" stroke="#30363d"/><text x="%d" y="%.1f" fill="#8b949e">%s</text>`+"\n",
		top+0.5, width-1, paneHeight-1, margin, top+26, html.EscapeString(head))
	x, y := float64(margin), top+56
	for _, p := range pieces[:len(pieces)-1] {
		if wide := advance * float64(len(p.text)); x+wide > width-margin {
			x, y = margin, y+lineHeight
		}
		fmt.Fprintf(b, `<text class="w" x="%.1f" y="%.1f" fill="#e6edf3" style="animation-delay:%.2fs">%s</text>`+"\n", x, y, p.at.Seconds(), html.EscapeString(strings.TrimSpace(p.text)))
		x += advance * float64(len(p.text))
	}
	end, colour := pieces[len(pieces)-1], "#3fb950"
	mark := "✓ "
	if end.text != "complete" {
		mark, colour = "✗ ", "#f85149"
	}
	fmt.Fprintf(b, `<text class="w" x="%d" y="%.1f" fill="%s" style="animation-delay:%.2fs">%s%s</text>`+"\n", margin, y+1.5*lineHeight, colour, end.at.Seconds(), mark, html.EscapeString(end.text))
}
