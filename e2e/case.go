package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

// Case is one fault and what must hold. It is run for every client, streamed
// and not, straight at the fault and through the gateway.
type Case struct {
	Name string // part of model names
	Want string // what must hold, in words

	// Targets serve the model, in order. The first one is what a client gets
	// straight.
	Targets []Target
	// Keys gives the first target an upstream of its own with the keys KeyA,
	// which is preferred, and KeyB.
	Keys bool
	Ask  Ask
	// Times is how many equal requests are made, one after another; default 1.
	Times int

	Only   Mode     // streamed or not; empty is both
	Pace   string   // scaled or real; empty is both
	Client []string // empty is all
	Format []Format // empty is all

	// Patience is how long the straight client waits before it gives up;
	// default patience.
	Patience Time
	// After is how long the upstream is watched after the answer.
	After Time
	// Straight is what is certain of the client straight at the fault; none: its
	// outcome is only recorded.
	Straight []Check
	// Through is what must hold through the gateway.
	Through []Check
	// AfterText: streams have shown text when the fault comes; see atDefaults.
	AfterText bool
}

// Target is one target of a case's model.
type Target struct {
	On     string // upstream: empty is primary, or backup, closed
	Script string // see upstreamtest; {20s} is ten times shorter when scaled
	Whole  string // the script for requests that are not streamed, if it differs
	Window int
	// Prefill is what the configuration declares for the target.
	Prefill string
	// Same lets the target tell the same text as the first one.
	Same bool
}

// Ask is what a case's requests have besides a short question.
type Ask struct {
	Tools               bool
	Usage               bool // stream_options.include_usage
	MaxTokens           int
	MaxCompletionTokens int
	Temperature         float64
	Filler              int  // bytes of text to read
	Unstored            bool // /v1/responses: store: false, which no library sends by itself
	Timeout             Time // of the library, for one HTTP request
	Leave               Time // when the user leaves
}

// Time is a duration at the real pace and at the scaled one.
type Time struct{ Real, Scaled time.Duration }

// fixed is the same at every pace.
func fixed(d time.Duration) Time { return Time{d, d} }

// tenth is ten times shorter when scaled, as the gateway's own limits are.
func tenth(d time.Duration) Time { return Time{d, d / 10} }

// Format is the wire format that a client speaks.
type Format string

// The formats.
const (
	Chat      Format = "chat"
	Responses Format = "responses"
	Messages  Format = "messages"
)

// formatOf is what a client speaks.
func formatOf(client string) Format {
	switch {
	case client == streamHelper || strings.HasSuffix(client, "-responses"):
		return Responses
	case client == plainMessages || strings.Contains(client, "anthropic"):
		return Messages
	}
	return Chat
}

// Mode is how an answer is asked for.
type Mode string

// The modes.
const (
	Streamed Mode = "stream"
	Whole    Mode = "whole"
)

const (
	// KeyA and KeyB are the gateway's own keys, ClientKey is the client's.
	KeyA, KeyB, ClientKey = "sk-e2e-a", "sk-e2e-b", "sk-e2e-client"
	// patience is how long a straight client is waited for; when scaled, less.
	patience, scaledPatience = 45 * time.Second, 15 * time.Second
	// throughLimit ends what the gateway should have ended long ago.
	throughLimit = 270 * time.Second
)

// Pace is how fast time goes for the gateway's limits.
type Pace struct {
	Name   string
	Scaled bool
	Config string // what the gateway is told besides models and upstreams
}

// of picks the pace's side of a time.
func (p *Pace) of(t Time) time.Duration {
	if p.Scaled {
		return t.Scaled
	}
	return t.Real
}

var braces = regexp.MustCompile(`\{([^}]*)\}`)

// script fills in the durations of a script.
func (p *Pace) script(s string) string {
	return braces.ReplaceAllStringFunc(s, func(m string) string {
		d, err := time.ParseDuration(m[1 : len(m)-1])
		if err != nil {
			return m // the test of the table finds it
		}
		return p.of(tenth(d)).String()
	})
}

// The paces. Real is what PRODUCT.md says, but for the budget of parallel
// starts: here every second request is in need of one; and answers that are not streamed are
// overtaken as soon as streams. Scaled leaves an answer that is
// not late two seconds, since a busy machine alone may take one.
var (
	scaledPace = Pace{Name: "scaled", Scaled: true, Config: `
recovery: {parallel: {max_share: 1, burst: 100000}}
learn: {first_token: {min: 2s, whole: 2s, same_after: 4s, reasoning: 18s}}
stream: {idle: 2s, idle_pinged: 12s, keepalive_after: 3s, keepalive_every: 1500ms}
breaker: {window: 2s, open: 500ms, open_max: 1500ms}
`}
	realPace = Pace{Name: "real", Config: `
recovery: {parallel: {max_share: 1, burst: 100000}}
learn: {first_token: {whole: 10s}}
`}
)

// Run is one case for one client and mode at one pace, and what came of it.
type Run struct {
	Case   *Case
	Client string
	Mode   Mode
	Pace   *Pace
	N      int // of several equal runs, from 0

	Straight Leg
	Through  Leg
	// Failures are the checks that did not hold; empty is passed.
	Failures []string
}

// Leg is one way to the answer: straight or through the gateway.
type Leg struct {
	Answers []Answer
	// Records is what reached each target, in order of arrival.
	Records [][]upstreamtest.Record
	Err     error // of the harness
}

// last is the last answer; legs that are checked have one.
func (l *Leg) last() *Answer { return &l.Answers[len(l.Answers)-1] }

// key names the run, and its models.
func (r *Run) key() string {
	key := fmt.Sprintf("%s.%s.%s", r.Case.Name, r.Client, r.Mode)
	if r.N > 0 {
		key += fmt.Sprintf(".n%d", r.N)
	}
	return key
}

// target is how the upstream knows target i: NAME@SCRIPT. What it tells depends
// on the name only.
func (r *Run) target(i int) string {
	t := &r.Case.Targets[i]
	script := t.Script
	if r.Mode == Whole && t.Whole != "" {
		script = t.Whole
	}
	return r.name(i) + "@" + r.Pace.script(script)
}

// name is the model that target i says it is.
func (r *Run) name(i int) string {
	if r.Case.Targets[i].Same {
		i = 0
	}
	return fmt.Sprintf("%s.t%d", r.key(), i)
}

// straightModel is the first target with a count of its own: the upstream
// counts per string, and ok changes nothing.
func (r *Run) straightModel() string {
	name, script, _ := strings.Cut(r.target(0), "@")
	return name + "@ok," + script
}

// text is what target i tells.
func (r *Run) text(i int) string { return upstreamtest.TextFor(r.name(i) + "@") }

// call is the request, but for where it goes.
func (r *Run) call() Call {
	ask := &r.Case.Ask
	question := "Case " + r.key() + ": what is the state of things?"
	if ask.Filler > 0 {
		question += strings.Repeat("\nAnd this is one more line of the report that is to be read.", ask.Filler/60)
	}
	c := Call{
		Messages:  []Message{{"system", "You answer briefly."}, {"user", question}},
		Stream:    r.Mode == Streamed,
		MaxTokens: ask.MaxTokens, MaxCompletionTokens: ask.MaxCompletionTokens, Temperature: ask.Temperature,
		IncludeUsage:  ask.Usage,
		TimeoutMS:     r.Pace.of(ask.Timeout).Milliseconds(),
		CancelAfterMS: r.Pace.of(ask.Leave).Milliseconds(),
	}
	if store := false; formatOf(r.Client) == Responses && ask.Unstored {
		c.Store = &store
	}
	if ask.Tools {
		c.Tools = []Tool{{
			Name: upstreamtest.DefaultTool, Description: "The weather of a city.",
			Parameters: map[string]any{
				"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}},
				"required": []string{"city"}, "additionalProperties": false,
			},
		}}
	}
	return c
}

// expand lists the runs of cases at a pace, each of them count times.
func expand(cases []Case, pace *Pace, clients []string, modes []Mode, count int) []*Run {
	var runs []*Run
	for i := range cases {
		c := &cases[i]
		if c.Pace != "" && c.Pace != pace.Name {
			continue
		}
		for _, client := range clients {
			if len(c.Client) > 0 && !slices.Contains(c.Client, client) || len(c.Format) > 0 && !slices.Contains(c.Format, formatOf(client)) {
				continue
			}
			for _, mode := range modes {
				if c.Only != "" && c.Only != mode || slices.Contains(streamHelpers, client) && mode != Streamed {
					continue
				}
				for n := range count {
					runs = append(runs, &Run{Case: c, Client: client, Mode: mode, Pace: pace, N: n})
				}
			}
		}
	}
	return runs
}
