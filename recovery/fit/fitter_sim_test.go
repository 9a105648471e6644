package fit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/fit"
	"github.com/rebound-llm/rebound/recovery/fit/agenttest"
	"github.com/rebound-llm/rebound/recovery/fit/count"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// conversation is a recorded or synthetic session.
type conversation struct {
	name     string
	Tools    json.RawMessage   `json:"tools"`
	Messages []json.RawMessage `json:"messages"`
	roles    []string
	ledger   *upstreamtest.Ledger // of the account that answered a session over Responses; nil for a chat
}

// account is the account of converted sessions.
const account = "account"

// converted returns the session over the Responses API.
func (c *conversation) converted() *conversation {
	d := *c
	d.name, d.ledger = c.name+"/responses", new(upstreamtest.Ledger)
	return &d
}

// simModel is the model of all simulated sessions. Its vocabulary is not built in, so counts
// need anchoring.
const simModel = "claude-sonnet-4-5"

// raw returns the request with the first n messages.
func (c *conversation) raw(n int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"model":"` + simModel + `","stream":true,`)
	if len(c.Tools) > 4 {
		b.WriteString(`"tools":`)
		b.Write(c.Tools)
		b.WriteByte(',')
	}
	b.WriteString(`"messages":[`)
	for i, m := range c.Messages[:n] {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(m)
	}
	b.WriteString("]}")
	return b.Bytes()
}

func (c *conversation) body(t testing.TB, n int) *transcript.Body {
	t.Helper()
	raw, format := c.raw(n), transcript.Chat
	if c.ledger != nil {
		raw, format = c.ledger.Converted(account, "s", string(raw)), transcript.Responses
	}
	return recoverytest.Parse(t, raw, format)
}

// turns returns the lengths of the history at the agent's requests.
func (c *conversation) turns() (list []int) {
	for i, r := range c.roles {
		if r == "assistant" && i > 1 {
			list = append(list, i)
		}
	}
	return append(list, len(c.roles))
}

func newConversation(t testing.TB, name string, raw []byte) *conversation {
	t.Helper()
	c := &conversation{name: name}
	if err := json.Unmarshal(raw, c); err != nil {
		t.Fatal(err)
	}
	for i, m := range c.Messages {
		var head struct {
			Role string `json:"role"`
		}
		if err := json.Unmarshal(m, &head); err != nil {
			t.Fatal(err)
		}
		c.roles = append(c.roles, head.Role)
		var compact bytes.Buffer
		if err := json.Compact(&compact, m); err != nil {
			t.Fatal(err)
		}
		c.Messages[i] = compact.Bytes()
	}
	for n := len(c.roles); n > 0 && c.roles[n-1] == "assistant"; n-- { // requests end with a user message or a result
		c.roles, c.Messages = c.roles[:n-1], c.Messages[:n-1]
	}
	return c
}

// recorded reads all recorded sessions.
func recorded(t testing.TB) (list []*conversation) {
	t.Helper()
	for _, pattern := range []string{"usage/*.json.gz", "sessions/*.json.gz"} {
		files, err := filepath.Glob(filepath.Join("testdata", pattern))
		if err != nil || len(files) == 0 {
			t.Fatal("no recorded sessions", err)
		}
		for _, file := range files {
			list = append(list, newConversation(t, strings.TrimSuffix(filepath.Base(file), ".json.gz"), recoverytest.Gunzip(t, file)))
		}
	}
	return list
}

func synthetic(t testing.TB, seed uint64, size int) *conversation {
	return newConversation(t, fmt.Sprintf("synthetic-%d", seed), agenttest.Synthetic(seed, size))
}

// provider is a simulated upstream with a window, its own counts, and a prompt cache that
// holds the previous request, message by message. Relative to input, a cached token costs
// 0.1 to read and 1.25 to write, as with Anthropic.
type provider struct {
	meter    *count.Meter
	window   int // 0: none
	factor   float64
	billed   float64
	before   []string // messages of the request before
	overflow int
	asked    int
	silent   bool // a refusal states no numbers
}

func (p *provider) facts(tokens int) recovery.Facts {
	if p.silent {
		return recovery.Facts{}
	}
	return recovery.Facts{LimitTokens: p.window, InputTokens: tokens}
}

func newProvider(window int) *provider {
	return &provider{meter: count.NewMeter(), window: window, factor: 1.13}
}

// ask answers or refuses one attempt.
func (p *provider) ask(b *transcript.Body) (recovery.Usage, *recovery.Failure) {
	c := p.meter.Measure(b, simModel)
	tokens := int(p.factor * float64(c.Total))
	if p.window > 0 && tokens > p.window {
		p.overflow++
		return recovery.Usage{}, &recovery.Failure{Diagnosis: recovery.Diagnosis{
			Spec:  &recovery.Spec{Class: recovery.ContextLengthExceeded},
			Facts: p.facts(tokens)}, Response: recovery.Response{Status: 400}}
	}
	p.asked++
	var now []string
	cached, same := float64(c.Fixed), true
	for i, m := range b.Messages() {
		now = append(now, string(m.Raw()))
		if same = same && i < len(p.before) && p.before[i] == now[i]; same {
			cached += float64(c.Messages[i])
		}
	}
	if p.before == nil {
		cached = 0
	}
	p.before = now
	cached *= p.factor
	p.billed += 0.1*cached + 1.25*(float64(tokens)-cached)
	return recovery.Usage{Input: tokens, Output: 300, CacheRead: int(cached)}, nil
}

// fakeSummarizer returns a summary that has the right form and little content.
type fakeSummarizer struct {
	answer  func(p recovery.Prompt) (string, error)
	calls   int
	spent   int
	largest int
	meter   *count.Meter
}

func newFakeSummarizer() *fakeSummarizer { return &fakeSummarizer{meter: count.NewMeter()} }

func (s *fakeSummarizer) Complete(_ context.Context, p recovery.Prompt) (string, recovery.Usage, error) {
	s.calls++
	n := s.meter.Text(simModel, p.System) + s.meter.Text(simModel, p.User)
	s.spent += n
	s.largest = max(s.largest, n)
	if s.answer != nil {
		text, err := s.answer(p)
		return text, recovery.Usage{Input: n}, err
	}
	return goodSummary, recovery.Usage{Input: n, Output: 120}, nil
}

const goodSummary = `Goal: the user wants the work to go on as described in the first message.
Constraints: none beyond the messages that are kept.
Decisions: the approach that was begun is kept.
Files: several files were read and changed, as listed below.
Commands: builds and tests were run in between.
Open errors: see below.
Dead ends: none.
Next step: go on with the task where the history continues.`

// replayer sends a growing session through a fitter.
type replayer struct {
	fitter     *fit.Fitter
	provider   *provider
	summarizer *fakeSummarizer
	session    string
	sent       []*transcript.Body // that were answered
	edits      []int              // requests, by index into sent, for which new edits were made
	failed     int
	ledger     *upstreamtest.Ledger
	log        func(string, ...any)
}

// send does what the engine does with one request.
func (r *replayer) send(t testing.TB, b *transcript.Body) {
	t.Helper()
	x := &recovery.Exchange{Request: recovery.Request{ID: "r", Body: b, Model: simModel, Mode: recovery.ModeAct, Started: time.Now()},
		Caller:       recovery.Caller{Credential: "label"},
		Conversation: recovery.Conversation{Session: r.session},
		Candidates:   []recovery.Choice{{Candidate: recovery.Candidate{Target: recovery.Target{Upstream: "u", Model: simModel}}}}}
	if r.summarizer != nil {
		x.Completer = r.summarizer
	}
	ctx := context.Background()
	x.Fitted = r.fitter.Prepared(ctx, x)
	fresh := x.Fitted != nil && !x.Fitted.Sticky
	for range 3 {
		body := b
		if x.Fitted != nil {
			body = x.Fitted.Body
		}
		usage, failure := r.provider.ask(body)
		if failure == nil {
			if x.Fitted != nil {
				verify(t, b, body)
				if r.ledger != nil {
					if status, why := r.ledger.Refuse(account, string(body.Raw())); status != 0 {
						t.Fatalf("the upstream refuses what was fitted: %s", why)
					}
				}
			}
			if fresh && r.log != nil {
				r.log("request %d: %d messages, %d -> %d, cached %d%%, tiers %v steps %d", len(r.sent), len(b.Messages()), x.Fitted.Before, x.Fitted.After,
					usage.CacheRead*100/usage.Input, x.Fitted.Tiers, x.Fitted.Steps)
			}
			if fresh {
				r.edits = append(r.edits, len(r.sent))
			}
			r.sent = append(r.sent, body)
			r.fitter.Commit(ctx, x)
			r.fitter.Learn(x, &x.Candidates[0], usage)
			r.flush(t)
			return
		}
		if x.Fitted = r.fitter.Fit(ctx, x, &x.Candidates[0], failure); x.Fitted == nil {
			break
		}
		fresh = true
	}
	r.failed++
}

// flush waits until everything learned is stored.
func (r *replayer) flush(t testing.TB) {
	t.Helper()
	if !r.fitter.Flush() {
		t.Fatal("the queue is full")
	}
}

// verify checks a fitted request against its original without the package's own check.
func verify(t testing.TB, before, after *transcript.Body) {
	t.Helper()
	if !json.Valid(after.Raw()) {
		t.Fatal("invalid JSON")
	}
	for _, m := range after.Messages() {
		for _, c := range m.ToolCalls() {
			if !json.Valid([]byte(c.Text())) {
				t.Fatalf("message %d: arguments are no JSON", m.Index)
			}
		}
	}
	var req struct {
		Messages []struct {
			Role      string          `json:"role"`
			Content   json.RawMessage `json:"content"`
			ID        string          `json:"tool_call_id"`
			ToolCalls []struct {
				ID       string                     `json:"id"`
				Function struct{ Arguments string } `json:"function"`
			} `json:"tool_calls"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(after.Raw(), &req); err != nil {
		t.Fatal(err)
	}
	open := map[string]bool{}
	for i, m := range req.Messages {
		if m.Role != "tool" {
			if len(open) > 0 {
				t.Fatalf("message %d: calls without results: %v", i, open)
			}
			open = map[string]bool{}
		}
		for _, c := range m.ToolCalls {
			open[c.ID] = true
			if !json.Valid([]byte(c.Function.Arguments)) {
				t.Fatalf("message %d: arguments are no JSON", i)
			}
		}
		if m.Role == "tool" {
			if !open[m.ID] {
				t.Fatalf("message %d: a result without a call", i)
			}
			delete(open, m.ID)
		}
		if string(m.Content) == `""` && len(m.ToolCalls) == 0 && !bytes.Contains(before.Raw(), []byte(`"content":""`)) {
			t.Fatalf("message %d is empty", i)
		}
	}
	was := before.Messages()
	last := was[len(was)-1]
	now := after.Messages()
	for i := range was {
		if was[i].Role == transcript.RoleAssistant || fit.Compressed(was[i].Text()) {
			break
		}
		if !bytes.Equal(was[i].Raw(), now[i].Raw()) {
			t.Fatalf("message %d before the first answer has changed", i)
		}
	}
	if last.Role == transcript.RoleUser && !bytes.Equal(now[len(now)-1].Raw(), last.Raw()) && !fit.Compressed(now[len(now)-1].Text()) {
		t.Fatal("the last message of the user has changed")
	}
}
