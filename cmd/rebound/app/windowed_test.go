package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/tokenizer"
)

// fitModel is a model whose tokens the gateway counts exactly.
const fitModel = "gpt-4o"

// windowed is an upstream with a context window and a prompt cache:
//
//   - a prompt is the tokens of its tools and messages and four for each message;
//   - one above the window is refused in OpenAI's words, and is not billed;
//   - of an accepted prompt, the longest beginning that any earlier accepted request
//     has, rounded down to 128 tokens, is read from the cache; the rest, rounded in the
//     same way, is written to it;
//   - the bill is input + 1.25 × written + 0.1 × read.
type windowed struct {
	window  int  // 0: unlimited
	useless bool // it writes no summaries in the form that was asked for

	mu        sync.Mutex
	enc       *tokenizer.Encoding
	counts    map[string]int    // tokens of a piece of a prompt
	next      map[uint64]string // the piece that followed a prefix the last time
	seed      maphash.Seed
	accepted  []byte // the agent's last request
	overflows int
	summaries int
	billed    float64
	extra     float64 // what of the bill is for summaries
}

func newWindowed(window int) *windowed {
	enc, _ := tokenizer.ForModel(fitModel)
	return &windowed{window: window, enc: enc, counts: map[string]int{}, next: map[uint64]string{}, seed: maphash.MakeSeed()}
}

// tokens counts all text of a piece, and a picture as 765.
func (w *windowed) tokens(piece string) int {
	n, ok := w.counts[piece]
	if !ok {
		var texts strings.Builder
		collect(&texts, gjson.Parse(piece))
		n = w.enc.Count(texts.String()) + 765*strings.Count(piece, "data:image/")
		w.counts[strings.Clone(piece)] = n // piece is part of a whole request
	}
	return n
}

func collect(b *strings.Builder, v gjson.Result) {
	switch {
	case v.IsObject() || v.IsArray():
		v.ForEach(func(_, v gjson.Result) bool {
			collect(b, v)
			return true
		})
	case v.Type == gjson.String && !strings.HasPrefix(v.Str, "data:image/"):
		b.WriteString(v.Str)
		b.WriteByte('\n')
	}
}

// pieces splits a prompt into its parts, in order.
func pieces(body []byte) (list []string) {
	list = append(list, gjson.GetBytes(body, "tools").Raw)
	gjson.GetBytes(body, "messages").ForEach(func(_, m gjson.Result) bool {
		list = append(list, m.Raw)
		return true
	})
	return list
}

// ask answers one request. It is called for one at a time.
func (w *windowed) ask(body []byte) verdict {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := pieces(body)
	total := 0
	for _, p := range list {
		total += 4 + w.tokens(p)
	}
	if w.window > 0 && total > w.window {
		w.overflows++
		return verdict{status: 400, body: fmt.Sprintf(overflow, w.window, total)}
	}
	read, same := 0, true
	var prefix uint64
	for _, p := range list {
		before, ok := w.next[prefix]
		if same && ok && before == p {
			read += 4 + w.tokens(p)
		} else if same {
			same = false
			n := 0
			for n < len(p) && n < len(before) && p[n] == before[n] {
				n++
			}
			read += w.enc.Count(strings.ToValidUTF8(p[:n], ""))
		}
		w.next[prefix] = strings.Clone(p)
		prefix = prefix*0x9e3779b97f4a7c15 + maphash.String(w.seed, p)
	}
	read = read / 128 * 128
	written := max(0, total/128*128-read)
	w.billed += float64(total-read-written) + 1.25*float64(written) + 0.1*float64(read)
	usage := fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":20,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d}}`, total, total+20, read)
	if !gjson.GetBytes(body, "tools").Exists() {
		w.summaries++
		w.extra += float64(total-read-written) + 1.25*float64(written) + 0.1*float64(read)
		if w.useless {
			return verdict{text: "I went through all of it. Several files were read and edited; the tests ran.", usage: usage}
		}
		return verdict{text: scriptedSummary(), usage: usage}
	}
	w.accepted = body
	return verdict{text: "Noted.", usage: usage}
}

// scriptedSummary is a summary in the requested form, of about 1,500 tokens.
func scriptedSummary() string {
	return `Goal: finish the task.
Constraints: none beyond the messages that are kept.
Decisions: the approach is kept.
Files: several were read and changed.
` + strings.Repeat("pkg/store/journal.go: replay keeps the order of the boards now; read again before the next change.\n", 60) + `Commands: builds and tests were run.
Open errors: none.
Dead ends: none.
Next step: go on where the history continues.`
}

// recording is a session of an agent.
type recording struct {
	tools    string
	messages []string
	ends     []int // lengths of the history at which the agent asked
}

func record(t testing.TB, raw []byte) *recording {
	t.Helper()
	v := gjson.ParseBytes(raw)
	r := &recording{tools: v.Get("tools").Raw}
	for i, m := range v.Get("messages").Array() {
		if m.Get("role").Str == "assistant" && i > 1 {
			r.ends = append(r.ends, i)
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, []byte(m.Raw)); err != nil {
			t.Fatal(err)
		}
		r.messages = append(r.messages, compact.String())
	}
	if len(r.ends) == 0 {
		t.Fatal("no session")
	}
	return r
}

// recorded loads a session of package fit's tests.
func recorded(t testing.TB, name string) *recording {
	t.Helper()
	return record(t, recoverytest.Gunzip(t, "../../../recovery/fit/testdata/usage/"+name+".json.gz"))
}

// body returns the request with the first n messages.
func (r *recording) body(n int) string {
	return `{"model":"` + fitModel + `","stream":false,"tools":` + r.tools + `,"messages":[` + strings.Join(r.messages[:n], ",") + `]}`
}

// requests yields all requests of the session, each with the full history. They are made one by one, since together
// they are large.
func (r *recording) requests(yield func(i int, body string) bool) {
	for i, end := range r.ends {
		if !yield(i, r.body(end)) {
			return
		}
	}
}

// fits reports whether a request fits unchanged.
func (w *windowed) fits(body string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	total := 0
	for _, p := range pieces([]byte(body)) {
		total += 4 + w.tokens(p)
	}
	return total <= w.window
}

func (w *windowed) last() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.accepted
}

const overflow = `{"error":{"message":"This model's maximum context length is %d tokens. However, your messages resulted in %d tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`
