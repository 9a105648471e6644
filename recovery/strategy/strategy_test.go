package strategy_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/classify"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/strategy"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

var table = classify.New(configs.UpstreamRules)

// down are the targets that may not be asked, by upstream and key.
type down map[string]bool

func (d down) For(string) recovery.Health { return d }

func (d down) Check(t recovery.Target) recovery.Status {
	return recovery.Status{Ready: !d[t.Upstream+t.Key]}
}
func (d down) Begin(recovery.Target, time.Time, bool, bool) (recovery.Ticket, recovery.Status) {
	panic("a strategy takes no places")
}

// choice is a candidate a, b, … or one key of it: "a#1".
func choice(name string, change ...func(*recovery.Choice)) recovery.Choice {
	c := recovery.Choice{Candidate: recovery.Candidate{Target: recovery.Target{Upstream: name[:1], Model: "m"}}}
	if len(name) > 2 {
		c.Key = name[2:]
	}
	for _, f := range change {
		f(&c)
	}
	return c
}

func tried(n int) func(*recovery.Choice)  { return func(c *recovery.Choice) { c.Tries = n } }
func waited(n int) func(*recovery.Choice) { return func(c *recovery.Choice) { c.Waits = n } }
func window(n int) func(*recovery.Choice) { return func(c *recovery.Choice) { c.Window = n } }
func silent(c *recovery.Choice)           { c.Silent = true }
func excluded(c *recovery.Choice)         { c.Excluded = true }
func resumed(c *recovery.Choice)          { c.Resumed = true }
func repeats(c *recovery.Choice)          { c.Repeats = true }
func prefillAuto(c *recovery.Choice)      { c.Prefill = recovery.PrefillAuto }
func prefills(c *recovery.Choice)         { c.Prefill = recovery.PrefillAssistant }
func prefillNone(c *recovery.Choice)      { c.Prefill = recovery.PrefillNone }
func edited(e ...recovery.Edit) func(*recovery.Choice) {
	return func(c *recovery.Choice) { c.Edits = e }
}
func falls(to ...recovery.Class) func(*recovery.Choice) {
	return func(c *recovery.Choice) { c.Fallback = to }
}

// situation has a jitter of share; the failure comes from the first candidate.
func situation(t *testing.T, body string, share float64, d down, list ...recovery.Choice) *recovery.Situation {
	t.Helper()
	if body == "" {
		body = `{"model":"m","messages":[]}`
	}
	b := recoverytest.Parse(t, body, transcript.Chat)
	cfg := recovery.Defaults()
	return &recovery.Situation{Exchange: &recovery.Exchange{Request: recovery.Request{Body: b}, Candidates: list}, Config: &cfg, Health: d,
		Now: time.Now(), Jitter: func() float64 { return share }, Changes: func(int, recovery.Edit) bool { return true }}
}

func failure(c recovery.Class, from recovery.Choice) *recovery.Failure {
	return &recovery.Failure{Diagnosis: recovery.Diagnosis{Spec: table.Spec(c)}, Target: from.Target}
}

func TestMove(t *testing.T) {
	list := func(c ...recovery.Choice) []recovery.Choice { return c }
	cases := []struct {
		name  string
		class recovery.Class
		down  down
		list  []recovery.Choice
		want  int // -1: cannot help
	}{
		{"alone", recovery.ServerError, nil, list(choice("a")), -1},
		{"next", recovery.ServerError, nil, list(choice("a"), choice("b"), choice("c")), 1},
		{"next is down", recovery.ServerError, down{"b": true}, list(choice("a"), choice("b"), choice("c")), 2},
		{"all others down", recovery.ServerError, down{"b": true}, list(choice("a"), choice("b")), -1},
		{"next is out", recovery.Timeout, nil, list(choice("a"), choice("b", excluded), choice("c", silent), choice("d", tried(2))), -1},
		{"next was tried once", recovery.Timeout, nil, list(choice("a"), choice("b", tried(1))), 1},
		{"another upstream before another key", recovery.ServerError, nil, list(choice("a#1"), choice("a#2"), choice("b")), 2},
		{"another key at last", recovery.ServerError, nil, list(choice("a#1"), choice("a#2")), 1},
		{"a limit: the next key first", recovery.RateLimit, nil, list(choice("a#1"), choice("a#2"), choice("b")), 1},
		{"auth: the next key first", recovery.Auth, nil, list(choice("a#1"), choice("a#2"), choice("b")), 1},
		{"model not found, no fallback", recovery.ModelNotFound, nil, list(choice("a"), choice("b")), -1},
		{"model not found, fallback", recovery.ModelNotFound, nil, list(choice("a"), choice("b"), choice("c", falls(recovery.ModelNotFound))), 2},
		{"content policy, other fallback", recovery.ContentPolicy, nil, list(choice("a"), choice("b", falls(recovery.ModelNotFound))), -1},
		{"content policy, fallback", recovery.ContentPolicy, nil, list(choice("a"), choice("b", falls(recovery.ContentPolicy))), 1},
		{"invalid request, fallback", recovery.InvalidRequest, nil, list(choice("a"), choice("b", falls(recovery.InvalidRequest))), 1},
		{"parameter: no other key", recovery.UnsupportedParameter, nil, list(choice("a#1"), choice("a#2")), -1},
		{"parameter: another upstream", recovery.UnsupportedParameter, nil, list(choice("a#1"), choice("a#2"), choice("b")), 2},
	}
	for _, c := range cases {
		s := situation(t, "", 0, c.down, c.list...)
		a, ok := strategy.Move(s, failure(c.class, c.list[0]))
		if ok != (c.want >= 0) || ok && a.Target != c.want || a.Wait != 0 || a.Resend {
			t.Errorf("%s: %+v, %v, want %d", c.name, a, ok, c.want)
		}
	}
}

func TestResend(t *testing.T) {
	cases := []struct {
		name string
		down down
		list []recovery.Choice
		ok   bool
		wait time.Duration // the longest
	}{
		{"first time", nil, []recovery.Choice{choice("a", tried(1))}, true, 500 * time.Millisecond},
		{"second time", nil, []recovery.Choice{choice("a", tried(2))}, true, time.Second},
		{"fifth time", nil, []recovery.Choice{choice("a", tried(5))}, true, 8 * time.Second},
		{"for ever", nil, []recovery.Choice{choice("a", tried(99))}, true, 8 * time.Second},
		{"once beside another", nil, []recovery.Choice{choice("a", tried(1)), choice("b")}, true, 500 * time.Millisecond},
		{"twice beside another", nil, []recovery.Choice{choice("a", tried(2)), choice("b")}, false, 0},
		{"twice beside one that is down", down{"b": true}, []recovery.Choice{choice("a", tried(2)), choice("b")}, true, time.Second},
		{"twice beside one that was tried twice", nil, []recovery.Choice{choice("a", tried(2)), choice("b", tried(2))}, true, time.Second},
		{"silent beside another", nil, []recovery.Choice{choice("a", tried(1), silent), choice("b")}, false, 0},
		{"silent alone", nil, []recovery.Choice{choice("a", tried(1), silent)}, true, 500 * time.Millisecond},
		{"excluded", nil, []recovery.Choice{choice("a", tried(1), excluded)}, false, 0},
	}
	for _, c := range cases {
		for _, share := range []float64{0, 0.5, 1} {
			a, ok := strategy.Resend(situation(t, "", share, c.down, c.list...), failure(recovery.ServerError, c.list[0]))
			if want := time.Duration((3 + share) / 4 * float64(c.wait)); ok != c.ok || ok && a.Wait != want || a.Resend != c.ok || a.Target != 0 {
				t.Errorf("%s: %+v, %v, want %v after %v", c.name, a, ok, c.ok, want)
			}
		}
	}
}

// A server that is out of order and says "in a second" each time is asked less and less often, in
// time that counts as patience.
func TestWaitUntrue(t *testing.T) {
	for _, c := range []struct {
		class  recovery.Class
		waited int
		stated bool
	}{{recovery.Overloaded, 1, true}, {recovery.Overloaded, 2, false}, {recovery.Overloaded, 6, false}, {recovery.RateLimit, 6, true}} {
		list := []recovery.Choice{choice("a", waited(c.waited))}
		f := failure(c.class, list[0])
		f.Signal.HasRetryAfter, f.Signal.RetryAfter = true, time.Second
		a, ok := strategy.Wait(situation(t, "", 0, nil, list...), f)
		if !ok || a.Stated != c.stated || (a.Wait > time.Second) == c.stated {
			t.Errorf("%s after %d waits: %+v, %v", c.class, c.waited, a, ok)
		}
	}
}

func TestWait(t *testing.T) {
	const none = -1
	cases := []struct {
		name string
		hint time.Duration
		down down
		list []recovery.Choice
		ok   bool
		wait time.Duration // at least; at most a tenth and a second more
	}{
		{"as asked", 3 * time.Second, nil, []recovery.Choice{choice("a")}, true, 3 * time.Second},
		{"a minute less jitter", 54 * time.Second, nil, []recovery.Choice{choice("a")}, true, 54 * time.Second},
		{"too long", 61 * time.Second, nil, []recovery.Choice{choice("a")}, false, 0},
		{"absurd", 114 * time.Hour, nil, []recovery.Choice{choice("a")}, false, 0},
		{"short beside another", 4 * time.Second, nil, []recovery.Choice{choice("a"), choice("b")}, true, 4 * time.Second},
		{"long beside another", 6 * time.Second, nil, []recovery.Choice{choice("a"), choice("b")}, false, 0},
		{"long beside one that is down", 6 * time.Second, down{"b": true}, []recovery.Choice{choice("a"), choice("b")}, true, 6 * time.Second},
		{"second beside another", time.Second, nil, []recovery.Choice{choice("a", waited(1)), choice("b")}, false, 0},
		{"second alone, read anew", 2 * time.Second, nil, []recovery.Choice{choice("a", waited(3))}, true, 2 * time.Second},
		{"no hint", none, nil, []recovery.Choice{choice("a")}, true, time.Second},
		{"no hint, second", none, nil, []recovery.Choice{choice("a", waited(1))}, true, 2 * time.Second},
		{"no hint, fourth", none, nil, []recovery.Choice{choice("a", waited(3))}, true, 8 * time.Second},
		{"no hint, beside another", none, nil, []recovery.Choice{choice("a"), choice("b")}, true, time.Second},
		{"no hint, second beside another", none, nil, []recovery.Choice{choice("a", waited(1)), choice("b")}, false, 0},
		// "Now" that is not now must not become a tight loop.
		{"hint of nothing", 0, nil, []recovery.Choice{choice("a")}, true, time.Second},
		{"hint of nothing, again", 0, nil, []recovery.Choice{choice("a", waited(2))}, true, 4 * time.Second},
	}
	for _, c := range cases {
		for _, share := range []float64{0, 0.99} {
			f := failure(recovery.RateLimit, c.list[0])
			if c.hint != none {
				f.Signal.HasRetryAfter, f.Signal.RetryAfter = true, c.hint
			}
			a, ok := strategy.Wait(situation(t, "", share, c.down, c.list...), f)
			if ok != c.ok || a.Resend || a.Target != 0 {
				t.Errorf("%s: %+v, %v", c.name, a, ok)
			} else if ok && (a.Wait < c.wait || a.Wait > c.wait+min(c.wait/10, time.Second)) {
				t.Errorf("%s: waits %v, want %v", c.name, a.Wait, c.wait)
			}
		}
	}
	// A hint counts whatever the class; without one other classes are resent with a backoff of their own.
	for _, class := range []recovery.Class{recovery.Overloaded, recovery.ServerError, recovery.Timeout, recovery.Unknown} {
		one := choice("a", tried(1))
		f := failure(class, one)
		if !slices.Contains(f.Spec.Plan, "wait") {
			t.Errorf("%s: the plan %v has no wait", class, f.Spec.Plan)
		}
		s := situation(t, "", 0, nil, one)
		if a, ok := strategy.Wait(s, f); ok {
			t.Errorf("%s without a hint: %+v", class, a)
		}
		f.Signal.HasRetryAfter, f.Signal.RetryAfter = true, 40*time.Second
		if a, ok := strategy.Wait(s, f); !ok || a.Wait != 40*time.Second {
			t.Errorf("%s: %+v, %v", class, a, ok)
		}
		if a, ok := strategy.Resend(s, f); ok {
			t.Errorf("%s: resent before its time: %+v", class, a)
		}
		if a, ok := strategy.Wait(situation(t, "", 0, nil, choice("a", tried(2)), choice("b")), f); ok {
			t.Errorf("%s: waits after a resend while another may be asked: %+v", class, a)
		}
	}
	// Without a hint it never gives up waiting because the doubling went too far.
	list := []recovery.Choice{choice("a", waited(60))}
	if a, ok := strategy.Wait(situation(t, "", 0, nil, list...), failure(recovery.RateLimit, list[0])); !ok || a.Wait != 8*time.Second {
		t.Errorf("the longest: %v, %v", a.Wait, ok)
	}
}

func TestLargerWindow(t *testing.T) {
	cases := []struct {
		name  string
		facts recovery.Facts
		list  []recovery.Choice
		want  int
	}{
		{"larger", recovery.Facts{LimitTokens: 8192}, []recovery.Choice{choice("a"), choice("b", window(128_000))}, 1},
		{"unknown", recovery.Facts{LimitTokens: 8192}, []recovery.Choice{choice("a"), choice("b")}, 1},
		{"unknown, once", recovery.Facts{LimitTokens: 8192}, []recovery.Choice{choice("a"), choice("b", tried(1))}, -1},
		{"unknown, another key only", recovery.Facts{LimitTokens: 8192}, []recovery.Choice{choice("a#1"), choice("a#2")}, -1},
		{"larger before unknown", recovery.Facts{LimitTokens: 8192}, []recovery.Choice{choice("a"), choice("b"), choice("c", window(16_384))}, 2},
		{"smaller", recovery.Facts{LimitTokens: 8192}, []recovery.Choice{choice("a"), choice("b", window(4096))}, -1},
		{"the same", recovery.Facts{LimitTokens: 8192}, []recovery.Choice{choice("a"), choice("b", window(8192))}, -1},
		{"the first that is", recovery.Facts{LimitTokens: 8192}, []recovery.Choice{choice("a"), choice("b", window(4096)), choice("c", window(16_384)),
			choice("d", window(1_000_000))}, 2},
		{"not large enough", recovery.Facts{LimitTokens: 8192, RequestedTokens: 20_000}, []recovery.Choice{choice("a"), choice("b", window(16_384))}, -1},
		{"just enough", recovery.Facts{LimitTokens: 8192, RequestedTokens: 16_384}, []recovery.Choice{choice("a"), choice("b", window(16_384))}, 1},
		{"own window is known", recovery.Facts{}, []recovery.Choice{choice("a", window(8192)), choice("b", window(4096)), choice("c", window(9000))}, 2},
		{"nothing is known, but of the other", recovery.Facts{}, []recovery.Choice{choice("a"), choice("b", window(1_000_000))}, 1},
		{"nothing is known, but that it does not fit", recovery.Facts{}, []recovery.Choice{choice("a"), choice("b", window(2))}, -1},
		{"nothing is known", recovery.Facts{}, []recovery.Choice{choice("a"), choice("b")}, 1},
		{"not again", recovery.Facts{LimitTokens: 8192}, []recovery.Choice{choice("a"), choice("b", window(16_384), excluded)}, -1},
	}
	for _, c := range cases {
		f := failure(recovery.ContextLengthExceeded, c.list[0])
		f.Facts = c.facts
		a, ok := strategy.LargerWindow(situation(t, "", 0, nil, c.list...), f)
		if ok != (c.want >= 0) || ok && a.Target != c.want {
			t.Errorf("%s: %+v, %v, want %d", c.name, a, ok, c.want)
		}
	}
}

func TestClampOutput(t *testing.T) {
	cases := []struct {
		name, body string
		limit      int
		done       []recovery.Edit
		want       recovery.Edit
	}{
		{"old field", `{"model":"m","messages":[],"max_tokens":100000}`, 4096, nil, recovery.Edit{Field: "max_tokens", Clamp: 4096}},
		{"new field", `{"model":"m","messages":[],"max_completion_tokens":100000}`, 4096, nil, recovery.Edit{Field: "max_completion_tokens", Clamp: 4096}},
		{"not stated", `{"model":"m","messages":[],"max_tokens":100000}`, 0, nil, recovery.Edit{}},
		{"hostile", `{"model":"m","messages":[],"max_tokens":100000}`, -5, nil, recovery.Edit{}},
		{"already lower", `{"model":"m","messages":[],"max_tokens":4096}`, 4096, nil, recovery.Edit{}},
		{"no field", `{"model":"m","messages":[]}`, 4096, nil, recovery.Edit{}},
		{"second time", `{"model":"m","messages":[],"max_tokens":100000}`, 4096, []recovery.Edit{{Field: "max_tokens", Clamp: 8192}}, recovery.Edit{}},
	}
	for _, c := range cases {
		list := []recovery.Choice{choice("a", edited(c.done...))}
		f := failure(recovery.MaxOutputExceeded, list[0])
		f.Facts.MaxOutputLimit = c.limit
		a, ok := strategy.ClampOutput(situation(t, c.body, 0, nil, list...), f)
		if ok != (c.want != recovery.Edit{}) || ok && !slices.Equal(a.Edits, []recovery.Edit{c.want}) {
			t.Errorf("%s: %+v, %v", c.name, a, ok)
		}
	}
}

func TestAdaptParameter(t *testing.T) {
	roles := `{"model":"m","messages":[{"role":"developer","content":"x"},{"role":"user","content":"y"}]}`
	systems := `{"model":"m","messages":[{"role":"system","content":"x"}]}`
	type edits = []recovery.Edit
	cases := []struct {
		name, body string
		params     []string
		message    string
		done       edits
		want       edits
	}{
		{"new name", `{"model":"m","messages":[],"max_tokens":5}`, []string{"max_tokens"}, "", nil, edits{{Field: "max_tokens", Rename: "max_completion_tokens"}}},
		{"old name", `{"model":"m","messages":[],"max_completion_tokens":5}`, []string{"max_completion_tokens"}, "", nil,
			edits{{Field: "max_completion_tokens", Rename: "max_tokens"}}},
		{"name not sent", `{"model":"m","messages":[]}`, []string{"max_tokens"}, "", nil, nil},
		{"renamed already", `{"model":"m","messages":[],"max_tokens":5}`, []string{"max_completion_tokens"}, "",
			edits{{Field: "max_tokens", Rename: "max_completion_tokens"}}, nil},
		{"refused again", `{"model":"m","messages":[],"max_tokens":5}`, []string{"max_tokens"}, "",
			edits{{Field: "max_tokens", Rename: "max_completion_tokens"}}, nil},
		{"developer", roles, []string{"messages[0].role"}, "Unknown role 'developer'", nil, edits{{Role: "developer", Rename: "system"}}},
		{"system", systems, []string{"messages[0].role"}, "Unsupported value: 'system' is not supported", nil, edits{{Role: "system", Rename: "developer"}}},
		{"developer, again", roles, []string{"messages[0].role"}, "Unknown role 'developer'", edits{{Role: "developer", Rename: "system"}}, nil},
		{"developer, not sent", systems, []string{"messages[0].role"}, "Unknown role 'developer'", nil, nil},
		{"several", `{"model":"m","messages":[],"seed":5,"top_k":3}`, []string{"seed", "top_k"}, "", nil,
			edits{{Field: "seed", Drop: true}, {Field: "top_k", Drop: true}}},
		{"one of several done", `{"model":"m","messages":[],"seed":5,"top_k":3}`, []string{"seed", "top_k"}, "", edits{{Field: "seed", Drop: true}},
			edits{{Field: "top_k", Drop: true}}},
		{"one of several cannot be dropped", `{"model":"m","messages":[],"seed":5,"stop":["x"]}`, []string{"seed", "stop"}, "", nil, nil},
		{"not named", `{"model":"m","messages":[],"seed":5}`, nil, "", nil, nil},
	}
	for _, c := range cases {
		list := []recovery.Choice{choice("a", edited(c.done...))}
		f := failure(recovery.UnsupportedParameter, list[0])
		f.Facts.Params, f.Signal.Message = c.params, c.message
		a, ok := strategy.AdaptParameter(situation(t, c.body, 0, nil, list...), f)
		if ok != (c.want != nil) || !slices.Equal(a.Edits, c.want) {
			t.Errorf("%s: %+v, %v, want %+v", c.name, a.Edits, ok, c.want)
		}
	}

	one := func(name string) (recovery.Action, bool) {
		list := []recovery.Choice{choice("a")}
		f := failure(recovery.UnsupportedParameter, list[0])
		f.Facts.Param = name
		body := `{"model":"m","messages":[],"` + name + `":2}`
		switch name {
		case "model":
			body = `{"model":"m","messages":[]}`
		case "tool_choice", "parallel_tool_calls":
			body = `{"model":"m","messages":[],"tools":[{"type":"function","function":{"name":"f"}}],"` + name + `":1}`
		case "messages":
			body = `{"messages":[]}`
		case "stream":
			body = `{"model":"m","messages":[],"stream":true}`
		case "stream_options":
			body = `{"model":"m","messages":[],"stream":true,"stream_options":{"include_usage":true}}`
		}
		return strategy.AdaptParameter(situation(t, body, 0, nil, list...), f)
	}
	for _, name := range []string{"temperature", "top_p", "top_k", "min_p", "frequency_penalty", "presence_penalty", "repetition_penalty",
		"seed", "reasoning_effort", "reasoning", "verbosity", "thinking", "enable_thinking", "stream_options", "store", "metadata", "user",
		"safety_identifier", "prompt_cache_key"} {
		if a, ok := one(name); !ok || !slices.Equal(a.Edits, []recovery.Edit{{Field: name, Drop: true}}) {
			t.Errorf("%s: %+v, %v, want it dropped", name, a, ok)
		}
	}
	for _, name := range []string{"response_format", "stop", "n", "tools", "tool_choice", "functions", "function_call", "logit_bias", "logprobs",
		"top_logprobs", "parallel_tool_calls", "service_tier", "modalities", "audio", "stream", "model", "messages", "invented"} {
		if a, ok := one(name); ok {
			t.Errorf("%s: %+v, it changes what was asked for", name, a)
		}
	}
	for field, value := range map[string]string{"parallel_tool_calls": "true", "tools": "[ ]", "response_format": `{"type": "text"}`, "n": "1", "logprobs": "false", "logit_bias": "null"} {
		f := failure(recovery.UnsupportedParameter, choice("a"))
		f.Facts.Param = field
		ed := recovery.Edit{Field: field, Drop: true, Value: value}
		s := situation(t, `{"model":"m","messages":[],"`+field+`":`+value+`}`, 0, nil, choice("a"))
		if a, ok := strategy.AdaptParameter(s, f); !ok || !slices.Equal(a.Edits, []recovery.Edit{ed}) || !ed.Known() {
			t.Errorf("%s: %+v, %v, want the default %s dropped", field, a, ok, value)
		}
	}
}

// useless are ways that were of no use at a candidate, which was tried.
func useless(ways ...recovery.Way) func(*recovery.Choice) {
	return func(c *recovery.Choice) { c.Resumed, c.FailedWays = true, ways }
}

func TestResume(t *testing.T) {
	const (
		prefill, replay, ask = recovery.WayPrefill, recovery.WayReplay, recovery.WayAsk
		text                 = "The quick brown fox jumps over the lazy dog"
		sampled              = `{"model":"m","messages":[]}`
		fixed                = `{"model":"m","messages":[],"temperature":0}`
		seeded               = `{"model":"m","messages":[],"temperature":0.7,"seed":1}`
		schema               = `{"model":"m","messages":[],"response_format":{"type":"json_object"}}`
	)
	list := func(c ...recovery.Choice) []recovery.Choice { return c }
	cases := []struct {
		name string
		body string // sampled, if empty
		list []recovery.Choice
		sent string // text, if empty; "-" for nothing
		down down
		want int
		way  recovery.Way
		wait bool
		f    recovery.Break
		only []recovery.Way
		less int // of the budget
	}{
		{name: "nothing shown", list: list(choice("a", prefills)), want: -1, f: recovery.Break{Released: recovery.ReleasedNothing}},
		{name: "reasoning shown", list: list(choice("a", prefills)), want: -1, f: recovery.Break{Released: recovery.ReleasedReasoning}},
		{name: "a call shown", list: list(choice("a", prefills)), want: -1, f: recovery.Break{Released: recovery.ReleasedCall}},
		{name: "text unknown", sent: "-", list: list(choice("a", prefills)), want: -1},
		{name: "budget", list: list(choice("a", prefills)), want: -1, less: 2},
		{name: "spent on what was no continuation", list: list(choice("a", prefills)), want: 0, way: prefill, less: 1},

		{name: "sampled", list: list(choice("a"), choice("b")), want: 0, way: ask, wait: true},
		{name: "temperature 0", body: fixed, list: list(choice("a"), choice("b")), want: 0, way: replay, wait: true},
		{name: "seed", body: seeded, list: list(choice("a"), choice("b")), want: 0, way: replay, wait: true},
		{name: "prefill", body: fixed, list: list(choice("a", prefills), choice("b", prefills)), want: 0, way: prefill},
		{name: "prefill elsewhere first", list: list(choice("a"), choice("b", prefillNone), choice("c", prefills)), want: 2, way: prefill},
		{name: "prefill not known yet", list: list(choice("a", prefillAuto)), want: 0, way: ask, wait: true},
		{name: "not configured", list: list(choice("a", prefills)), only: []recovery.Way{prefill}, want: 0, way: prefill},
		{name: "a replay as the only way", list: list(choice("a", prefills)), only: []recovery.Way{replay}, want: 0, way: replay, wait: true},
		{name: "none configured", body: fixed, list: list(choice("a", prefills)), only: []recovery.Way{}, want: -1},
		{name: "another order", list: list(choice("a", prefills)), only: []recovery.Way{ask, prefill}, want: 0, way: ask, wait: true},
		{name: "a replay by another model", body: fixed, list: list(choice("a", useless(replay, ask)),
			choice("b", func(c *recovery.Choice) { c.Model = "other" })), want: 1, way: ask},

		{name: "stalled", list: list(choice("a", prefills), choice("b")), want: 1, way: ask, f: recovery.Break{Stalled: true}},
		{name: "stalled, nobody else", list: list(choice("a")), want: 0, way: ask, f: recovery.Break{Stalled: true}},
		{name: "stalled, the other is down", list: list(choice("a"), choice("b")), down: down{"b": true}, want: 0, way: ask, f: recovery.Break{Stalled: true}},
		{name: "cut again", list: list(choice("a", prefills, resumed), choice("b")), want: 1, way: ask},
		{name: "cut again, the other was silent", list: list(choice("a", resumed), choice("b", silent)), want: 1, way: ask},
		{name: "cut again, nobody else", list: list(choice("a", resumed)), want: 0, way: ask, wait: true},
		{name: "prefill was refused", list: list(choice("a", prefills, useless(prefill))), want: 0, way: ask, wait: true},
		{name: "prefill was refused elsewhere", list: list(choice("a", prefills), choice("b", prefills, useless(prefill))), want: 0, way: prefill},
		{name: "asked in vain", list: list(choice("a", useless(ask)), choice("b")), want: 1, way: ask},
		{name: "asked in vain everywhere", list: list(choice("a", useless(ask)), choice("b", useless(ask))), want: 0, way: replay, wait: true},
		{name: "asked in vain, and replayed", list: list(choice("a", useless(ask, replay)), choice("b", useless(ask))), want: 1, way: replay},
		{name: "nothing is left", list: list(choice("a", useless(ask, replay))), want: -1},
		{name: "a target that repeats itself", list: list(choice("a", repeats)), want: 0, way: replay, wait: true},
		{name: "a target that repeats itself, and takes a beginning", list: list(choice("a", repeats, prefills)), want: 0, way: prefill},
		{name: "down", list: list(choice("a"), choice("b", prefills)), down: down{"a": true, "b": true}, want: 0, way: ask, wait: true},
		{name: "excluded", list: list(choice("a", prefills, excluded), choice("b")), want: 1, way: ask},

		{name: "structured", body: schema, list: list(choice("a", prefills)), want: 0, way: replay, wait: true},
		{name: "structured, temperature 0", body: strings.Replace(schema, "{", `{"temperature":0.0,`, 1), list: list(choice("a", prefills)), want: 0,
			way: replay, wait: true},
		{name: "looks like JSON", sent: ` {"a": 1, "beginning": "of something"`, list: list(choice("a")), want: 0, way: replay, wait: true},
		{name: "looks like JSON, prefill", sent: `{"a": 1, "beginning": "of something"`, list: list(choice("a", prefills)), want: 0, way: prefill},
		{name: "a list in JSON", sent: `[{"a": 1, "beginning": "of something"`, list: list(choice("a")), want: 0, way: replay, wait: true},
		{name: "begins with a brace", sent: "{braces} stand here in the text", list: list(choice("a")), want: 0, way: ask, wait: true},
		{name: "begins with a link", sent: "[A](http://a) is a page of the web", list: list(choice("a")), want: 0, way: ask, wait: true},
		{name: "JSON in a block", sent: "Here it is:\n```json\n{\"a\": 1, \"beginning\":", list: list(choice("a")), want: 0, way: replay, wait: true},
		{name: "behind JSON in a block", sent: "Here it is:\n```json\n{}\n```\nThis is an object", list: list(choice("a")), want: 0, way: ask, wait: true},
		{name: "code in a block", sent: "Here it is:\n```go\nfunc main() {\n\tfmt.Println(", list: list(choice("a")), want: 0, way: ask, wait: true},
		{name: "half a character", sent: "The quick brown \xe6\x97", list: list(choice("a", prefills)), want: 0, way: replay, wait: true},
		{name: "half a character that was replaced", sent: "The quick brown \ufffd", list: list(choice("a", prefills)), want: 0, way: replay, wait: true},
		{name: "half a character, temperature 0", body: fixed, sent: "The quick brown \xe6\x97", list: list(choice("a", prefills)), want: 0, way: replay, wait: true},
		{name: "nothing but repetition", sent: strings.Repeat("ha ", 1000), list: list(choice("a")), want: 0, way: replay, wait: true},
		{name: "short", sent: "Hi", list: list(choice("a")), want: 0, way: ask, wait: true},
	}
	for _, c := range cases {
		s := situation(t, cmp.Or(c.body, sampled), 0.5, c.down, c.list...)
		s.Config.ExtraInput -= c.less
		if c.only != nil {
			s.Config.Continue = c.only
		}
		f := failure(recovery.StreamCut, c.list[0])
		f.Sent, f.Stalled, f.Released = cmp.Or(c.sent, text), c.f.Stalled, recovery.ReleasedText
		if c.sent == "-" {
			f.Sent = ""
		}
		if strings.HasSuffix(c.name, "shown") {
			f.Released = c.f.Released
		}
		a, ok := strategy.Resume(s, f)
		if ok != (c.want >= 0) {
			t.Errorf("%s: %+v, %v", c.name, a, ok)
			continue
		}
		if ok && (a.Target != c.want || a.Resume == nil || a.Resume.Way != c.way || a.Resume.Sent != f.Sent || (a.Wait > 0) != c.wait || a.Resend) {
			t.Errorf("%s: %+v %+v, want %d", c.name, a, a.Resume, c.want)
		}
	}
}

// TestQuestion: a model is asked for the last words as they stand, from the
// beginning of one on, and for so many that they stand there only once.
func TestQuestion(t *testing.T) {
	again := strings.Repeat("I read it, and then I read it again. ", 3)
	long := strings.Repeat("four five six seven ", 9) + "eight, ni"
	for name, c := range map[string]struct{ sent, words, least string }{
		"words":     {"One two three. " + long, "five six seven " + strings.Repeat("four five six seven ", 3) + "eight, ni", "eight, ni"},
		"short":     {"Hi", "Hi", "Hi"},
		"blanks":    {"All of it:\n\n", "All of it:\n\n", "ll of it:\n\n"},
		"repeated":  {"First. " + again + "No. " + again, "then I read it again. No. " + again, "No. " + again},
		"no blanks": {strings.Repeat("一", 60) + strings.Repeat("日本語", 10), "本語" + strings.Repeat("日本語", 9), ""},
	} {
		s := situation(t, `{"model":"m","messages":[]}`, 0, nil, choice("a"))
		f := failure(recovery.StreamCut, s.Exchange.Candidates[0])
		f.Released, f.Sent = recovery.ReleasedText, c.sent
		a, ok := strategy.Resume(s, f)
		if !ok {
			t.Errorf("%s: nothing proposed", name)
			continue
		}
		r := a.Resume
		least := c.sent[len(c.sent)-r.Least:]
		if !strings.HasSuffix(r.Question, "\n\n"+c.words) || r.Quoted != len(c.words) || strings.Count(c.sent, least) != 1 || r.Least > r.Quoted ||
			!strings.HasSuffix(least, c.least) {
			t.Errorf("%s: asked for %q, at least %q", name, r.Question[len(r.Question)-r.Quoted:], least)
		}
	}
}

// TestPure: proposing changes nothing.
func TestPure(t *testing.T) {
	list := []recovery.Choice{choice("a", tried(1)), choice("b", window(10), prefills)}
	s := situation(t, `{"model":"m","messages":[],"max_tokens":9,"seed":1}`, 0.5, nil, list...)
	before := slices.Clone(s.Exchange.Candidates)
	for _, st := range strategy.All() {
		f := failure(recovery.UnsupportedParameter, list[0])
		f.Facts = recovery.Facts{Param: "seed", Params: []string{"max_tokens"}, MaxOutputLimit: 5, LimitTokens: 5}
		f.Released, f.Sent = recovery.ReleasedText, "x"
		a, okA := st.Propose(s, f)
		b, okB := st.Propose(s, f)
		if okA != okB || a.Target != b.Target || a.Wait != b.Wait || !slices.Equal(a.Edits, b.Edits) {
			t.Errorf("%s: first %+v, then %+v", st.Name, a, b)
		}
		if !slices.Equal(f.Facts.Params, []string{"max_tokens"}) {
			t.Errorf("%s changed the facts", st.Name)
		}
	}
	for i, c := range s.Exchange.Candidates {
		if c.Tries != before[i].Tries || c.Waits != before[i].Waits || len(c.Edits) != 0 || c.Excluded || c.Silent {
			t.Errorf("candidate %d was changed: %+v", i, c)
		}
	}
}
