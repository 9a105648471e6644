//go:build linux

package soak_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// patience is how long a client waits for the whole of an answer.
const patience = 90 * time.Second

type message struct {
	Role      string     `json:"role"`
	Content   string     `json:"content"`
	ToolCalls []sentCall `json:"tool_calls,omitempty"`
	ToolID    string     `json:"tool_call_id,omitempty"`
}

type sentCall struct {
	ID       string   `json:"id"`
	Type     string   `json:"type"`
	Function toolCall `json:"function"`
}

type toolCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// client is an agent with one conversation after the other. All that it sends
// carries its nonce, and so must all that it gets.
type client struct {
	*soak
	leg   *leg
	nonce string
	rand  *rand.Rand
	http  *http.Client

	asked   int
	model   string
	history []message
}

// newNonce tells a client from all others.
func newNonce(r *rand.Rand) string { return fmt.Sprintf("nonce-%010x", r.Uint64()&(1<<40-1)) }

// run asks whenever it may, until there are no more turns.
func (c *client) run(turns <-chan struct{}) {
	defer c.http.CloseIdleConnections()
	for range turns {
		c.turn()
	}
}

// turn asks once, and goes on with what came of it.
func (c *client) turn() {
	if len(c.history) == 0 || len(c.history) > 24 {
		c.begin()
	}
	c.asked++
	id := c.nonce + "." + strconv.Itoa(c.asked)
	c.say(id)
	wantsCall, streamed := c.rand.IntN(2) == 0, c.rand.IntN(2) == 0
	has := map[bool]need{true: call, false: text}[wantsCall] | map[bool]need{true: stream, false: whole}[streamed]
	size, tool := 100+c.rand.IntN(1500), ""
	if c.rand.IntN(40) == 0 && c.model != "long" {
		size = 60_000
	}
	if wantsCall {
		tool = "look-" + c.nonce
	}
	switch c.model {
	case "long":
		has |= long
	case "loose":
		has |= loose
	case "own":
		has |= own
	}
	if *before == "" || c.leg.name != "Redis" {
		has |= newer
	}
	p := newPlan(id, c.nonce, pick(c.rand, has), tool, size)
	c.up.add(p)
	defer c.up.remove(p)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var left bool
	if c.rand.IntN(50) == 0 {
		defer time.AfterFunc(time.Duration(c.rand.IntN(500))*time.Millisecond, cancel).Stop()
		left = true
	}
	key := "sk-" + c.nonce
	if p.fault.name == "quota" { // the gateway believes it of this credential for half a minute
		key += "-spent"
	}
	a := c.ask(ctx, key, streamed)
	v, why := p.judge(&a)
	if left && ctx.Err() != nil && v != crossed && v != corrupted {
		v = gone
	}
	c.tally.count(p, v, why, &a)
	if v != good || len(a.calls) == 0 && a.text == "" {
		c.history = nil
		return
	}
	m := message{Role: "assistant", Content: a.text}
	for _, call := range a.calls {
		m.ToolCalls = append(m.ToolCalls, sentCall{ID: call.id, Type: "function", Function: call.toolCall})
	}
	c.history = append(c.history, m)
}

// begin starts another conversation: of one kind of model.
func (c *client) begin() {
	c.model = []string{"talk", "talk", "talk", "talk", "own", "own", "loose", "long"}[c.rand.IntN(8)]
	c.history = []message{{Role: "system", Content: "You help " + c.nonce + ". This is conversation " + strconv.Itoa(c.rand.Int()) + "."}}
}

// say adds what the last message asks for: results of its calls, or a person's words.
func (c *client) say(id string) {
	last := c.history[len(c.history)-1]
	if len(last.ToolCalls) == 0 {
		c.history = append(c.history, message{Role: "user", Content: "Do step " + id + "."})
		return
	}
	for i, call := range last.ToolCalls {
		m := message{Role: "tool", ToolID: call.ID, Content: fmt.Sprintf("Result %d of %s: all is well.", i, id)}
		switch {
		case c.model == "long":
			m.Content += strings.Repeat(fmt.Sprintf("\nline %d of %s says what it says", c.rand.IntN(1000), id), 200)
		case c.rand.IntN(3) == 0:
			m.Content = fmt.Sprintf("bash: tool-%d-of-%s: command not found", c.rand.IntN(5), id)
		}
		c.history = append(c.history, m)
	}
}

// ask sends the conversation, to another gateway where one does not take it.
func (c *client) ask(ctx context.Context, key string, streamed bool) (a answer) {
	model := c.model
	if model == "own" {
		model = "own-" + c.nonce // the gateway knows no such model
	}
	temperature, limit := 0.3, 40_000
	if c.model == "long" {
		limit = 1000 // the window is small
	}
	if c.rand.IntN(4) == 0 {
		temperature = 0
	}
	body, err := json.Marshal(map[string]any{
		"model": model, "messages": c.history, "stream": streamed, "temperature": temperature, "max_tokens": limit,
		"tools": tools(c.nonce),
	})
	if err != nil {
		panic(err) // maps of strings
	}
	for range 3 {
		g := c.leg.one(c.rand)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.URL()+"/v1/chat/completions", bytes.NewReader(body))
		if err != nil {
			panic(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+key)
		a = answer{gateway: g.name}
		res, err := c.http.Do(req)
		if err != nil {
			a.broken = err
			if g.in.Load() || ctx.Err() != nil {
				return a
			}
			continue // it is being replaced: a balancer would ask the other one
		}
		a.read(res, streamed)
		if a.code != "draining" {
			return a
		}
	}
	return a
}

// tools are what a client offers.
func tools(nonce string) []any {
	return []any{map[string]any{"type": "function", "function": map[string]any{
		"name": "look-" + nonce, "description": "Looks at a city for " + nonce + ".",
		"parameters": map[string]any{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}, "required": []string{"city"}},
	}}}
}

// answer is what a client got.
type answer struct {
	gateway string
	status  int
	header  http.Header
	raw     bytes.Buffer
	id      string
	text    string
	calls   []called
	finish  string
	failed  string // the message of an error
	code    string // and its code
	broken  error  // how it ended, if not properly
}

type called struct {
	id string
	toolCall
}

func (a *answer) String() string {
	return fmt.Sprintf("status %d from %s, recovery %q, attempts %q, broken: %v\n%.3000s", a.status, a.gateway,
		a.header.Get("X-Rebound-Recovery"), a.header.Get("X-Rebound-Attempts"), a.broken, a.raw.String())
}

// maxRead limits what a client reads of an answer: one without an end shows as lost, and does not fill the memory.
const maxRead = 64 << 20

func (a *answer) read(res *http.Response, streamed bool) {
	defer res.Body.Close()
	a.status, a.header = res.StatusCode, res.Header
	in := io.TeeReader(io.LimitReader(res.Body, maxRead), &a.raw)
	if !streamed || res.StatusCode != http.StatusOK {
		data, err := io.ReadAll(in)
		if a.broken = err; err == nil {
			a.take(data)
		}
		return
	}
	lines := bufio.NewReader(in)
	for done := false; ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) && (done || a.failed != "") {
			return
		}
		if err != nil {
			a.broken = errors.Join(err, errors.New("no end of the stream"))
			return
		}
		if data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:")); ok {
			if data = bytes.TrimSpace(data); string(data) == "[DONE]" {
				done = true
			} else {
				a.take(data)
			}
		}
	}
}

// part is a message or a delta of one.
type part struct {
	Content string `json:"content"`
	Calls   []struct {
		Index    int      `json:"index"`
		ID       string   `json:"id"`
		Function toolCall `json:"function"`
	} `json:"tool_calls"`
}

// take adds a completion, an event of one, or an error.
func (a *answer) take(data []byte) {
	var in struct {
		ID    string
		Error *struct {
			Message string
			Code    string
		}
		Choices []struct {
			Message, Delta part
			Finish         string `json:"finish_reason"`
		}
	}
	if !json.Valid(data) {
		a.broken = fmt.Errorf("no JSON: %.200q", data)
		return
	}
	_ = json.Unmarshal(data, &in) // a code that is a number is no matter
	if in.ID != "" {
		a.id = in.ID
	}
	if in.Error != nil {
		a.failed, a.code = in.Error.Message, in.Error.Code
		return
	}
	for _, ch := range in.Choices {
		a.finish += ch.Finish
		a.text += ch.Message.Content + ch.Delta.Content
		for i, call := range ch.Message.Calls {
			call.Index = i
			ch.Delta.Calls = append(ch.Delta.Calls, call)
		}
		for _, call := range ch.Delta.Calls {
			for call.Index >= len(a.calls) && call.Index < 16 {
				a.calls = append(a.calls, called{})
			}
			to := &a.calls[min(call.Index, 15)]
			to.id += call.ID
			to.Name += call.Function.Name
			to.Arguments += call.Function.Arguments
		}
	}
}

// verdict is what an answer was worth.
type verdict int

const (
	good      verdict = iota // the right answer, whole
	honest                   // an error where there was no answer to be had
	gone                     // the client left
	lost                     // neither the answer nor an honest error
	corrupted                // an answer, but not the right one
	crossed                  // something of another client
	verdicts
)

// judge compares an answer with the plan.
func (p *plan) judge(a *answer) (verdict, string) {
	if other := foreign(a.raw.String()+fmt.Sprint(a.header), p.nonce); other != "" {
		return crossed, "it has " + other
	}
	switch {
	case a.broken != nil:
		return lost, a.broken.Error()
	case a.failed != "" || a.status != http.StatusOK:
		if p.fault.ends == right || a.failed == "" {
			return lost, fmt.Sprintf("an error: %s %s", a.code, a.failed)
		}
		return honest, ""
	case strings.HasPrefix(a.id, "chatcmpl-rebound-"):
		if p.fault.ends == right {
			return lost, "the gateway's own words"
		}
		return honest, ""
	case p.fault.ends == fails:
		return corrupted, "an answer where there is none"
	}
	if p.call == nil {
		if a.text != p.text || len(a.calls) > 0 || a.finish != "stop" {
			return corrupted, fmt.Sprintf("finish %q, calls %v, got\n%q\nwant\n%q", a.finish, a.calls, a.text, p.text)
		}
		return good, ""
	}
	if strings.TrimSpace(a.text) != "" || len(a.calls) != 1 || a.finish != "tool_calls" || a.calls[0].id == "" || !a.calls[0].same(p.call) {
		return corrupted, fmt.Sprintf("finish %q, text %q, got %v, want %v", a.finish, a.text, a.calls, *p.call)
	}
	return good, ""
}

// same compares calls by what their arguments mean: a mended one may be spelled otherwise.
func (c *called) same(want *toolCall) bool {
	var got, wanted any
	return c.Name == want.Name && json.Unmarshal([]byte(c.Arguments), &got) == nil &&
		json.Unmarshal([]byte(want.Arguments), &wanted) == nil && reflect.DeepEqual(got, wanted)
}
