package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
	"github.com/rebound-llm/rebound/recovery/learn"
)

// A mistake in the table would make a case pass or fail for the wrong reason.
func TestTable(t *testing.T) {
	up := upstreamtest.New(upstreamtest.Options{})
	names := map[string]bool{}
	for i := range table {
		c := &table[i]
		if !regexp.MustCompile(`^[a-z0-9-]+$`).MatchString(c.Name) || names[c.Name] {
			t.Errorf("%s: the name is not unique and simple", c.Name)
		}
		names[c.Name] = true
		if c.Want == "" || len(c.Targets) == 0 || len(c.Through) == 0 {
			t.Errorf("%s: want, targets or checks are missing", c.Name)
		}
		for _, pace := range []*Pace{&scaledPace, &realPace} {
			for _, r := range expand(table[i:i+1], pace, clientNames(), []Mode{Streamed, Whole}, 2) {
				seen := map[string]bool{r.straightModel(): true}
				for n := range c.Targets {
					model := r.target(n)
					if seen[model] {
						t.Errorf("%s: %s is not a name of its own", c.Name, model)
					}
					seen[model] = true
					_, script, _ := strings.Cut(model, "@")
					if err := up.Script("x", script); err != nil {
						t.Errorf("%s: %v", c.Name, err)
					}
					if got := reasons(model); got != strings.HasPrefix(c.Name, "reasoning") && c.Name != "healthy-reasoning" {
						t.Errorf("%s: %s is taken for a reasoning model: %v", c.Name, model, got)
					}
				}
			}
		}
	}
}

// reasons says whether the gateway takes a model's name for one that reasons.
func reasons(model string) bool {
	for _, p := range learn.Defaults().FirstToken.ReasoningModels {
		if ok, err := path.Match(p, strings.ToLower(model)); ok || err != nil {
			return true
		}
	}
	return false
}

// The plain client and the checks must find every fault: a check that cannot
// fail is worth nothing.
func TestFaultsAreSeen(t *testing.T) {
	up := upstreamtest.New(upstreamtest.Options{}).Start(t)
	b := &Bench{Upstream: up, Clients: map[string]Client{plain: newPlainClient(plain), plainResponses: newPlainClient(plainResponses), plainMessages: newPlainClient(plainMessages)}}
	for name, tt := range map[string]struct {
		script  string
		mode    Mode
		outcome string
	}{
		"healthy stream":  {"ok", Streamed, "complete"},
		"healthy answer":  {"ok", Whole, "complete"},
		"status":          {"503", Streamed, "error 503"},
		"page":            {"html", Whole, "error 502"},
		"cut":             {"cut=0.5", Streamed, "error after a part"},
		"clean cut":       {"fin=0.5", Streamed, "truncated, no error"},
		"no finish":       {"no-finish", Streamed, "truncated, no error"},
		"error event":     {"error-event=0.5", Streamed, "error after a part"},
		"error in a 200":  {"error-event", Whole, "error"},
		"malformed":       {"malformed=0.5", Streamed, "error after a part"},
		"half a body":     {"half-json", Whole, "error"},
		"empty stream":    {"empty", Streamed, "empty, no error"},
		"role":            {"role-only", Streamed, "empty, no error"},
		"another text":    {"text=B", Streamed, "another text"},
		"reset":           {"reset", Whole, "error"},
		"hang":            {"hang", Streamed, "silent 0 s"},
		"stall":           {"stall=0.5", Streamed, "silent 0 s"},
		"headers, silent": {"headers-hang", Whole, "silent 0 s"},
	} {
		for _, client := range []string{plain, plainResponses, plainMessages} {
			t.Run(name+", "+client, func(t *testing.T) {
				t.Parallel()
				c := Case{Name: strings.ReplaceAll(name, " ", "-"), Targets: one(tt.script), Patience: fixed(300 * time.Millisecond)}
				r := &Run{Case: &c, Client: client, Mode: tt.mode, Pace: &scaledPace}
				b.straight(r)
				if got := r.outcome(&r.Straight); got != tt.outcome {
					t.Errorf("outcome %q, want %q: %+v", got, tt.outcome, r.Straight.last())
				}
				if err := broken(r, &r.Straight); (err == nil) != (tt.outcome != "complete") {
					t.Errorf("broken says %v", err)
				}
				if err := honest(0)(r, &r.Straight); (err == nil) != (tt.outcome == "complete" || strings.HasPrefix(tt.outcome, "error")) {
					t.Errorf("honest says %v", err)
				}
			})
		}
	}
}

// A stream that breaks the rules of /v1/responses must not look well.
func TestWrongEvents(t *testing.T) {
	r := &upstreamtest.Response{ID: "resp_1", Model: "m", Items: []upstreamtest.Item{
		{Kind: upstreamtest.Message, ID: "msg_1", Text: []string{"one ", "two"}},
		{Kind: upstreamtest.FunctionCall, ID: "fc_1", CallID: "call_1", Name: "f", Text: []string{"{}"}},
	}}
	events, content := r.Events()
	without := func(i int) [][]byte { return slices.Delete(slices.Clone(events), i, i+1) }
	with := func(i int, old, new string) [][]byte {
		out := slices.Clone(events)
		out[i] = bytes.ReplaceAll(out[i], []byte(old), []byte(new))
		return out
	}
	last := len(events) - 1
	for name, tt := range map[string]struct {
		events [][]byte
		good   bool
	}{
		"well":             {events, true},
		"not created":      {without(0), false},
		"created twice":    {append(slices.Clone(events[:1]), with(0, `r":0`, `r":1`)...), false},
		"a delta missing":  {without(content[0]), false},
		"another response": {with(last, "resp_1", "resp_2"), false},
		"another item":     {with(content[1], "msg_1", "msg_2"), false},
		"another call":     {with(last, "call_1", "call_2"), false},
		"another text":     {with(last, "two", "three"), false},
		"after the end":    {append(slices.Clone(events), bytes.ReplaceAll(events[1], []byte(`r":1`), fmt.Appendf(nil, `r":%d`, last+1))), false},
	} {
		a := Answer{FirstTokenMS: -1, Header: map[string]string{}}
		read := a.responsesReader(time.Now())
		if err := a.readStream(bytes.NewReader(bytes.Join(tt.events, nil)), time.Now(), Responses, read); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		a.OK = true
		err := wellFormed(&Run{Case: &Case{}, Client: plainResponses, Mode: Streamed}, &Leg{Answers: []Answer{a}})
		if (err == nil) != tt.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestChecksOfAttempts(t *testing.T) {
	zero := time.UnixMilli(1_000_000)
	at := func(ms int, retry string) upstreamtest.Record {
		h := http.Header{}
		if retry != "" {
			h.Set("X-Stainless-Retry-Count", retry)
		}
		return upstreamtest.Record{Time: zero.Add(time.Duration(ms) * time.Millisecond), Header: h, Body: "{}", Key: KeyA, Finished: zero}
	}
	answers := []Answer{{BegunMS: zero.UnixMilli(), ElapsedMS: 6000, Sent: []Sent{{AtMS: 0}, {AtMS: 3000}}}}
	counted := &Leg{Answers: answers, Records: [][]upstreamtest.Record{{at(5, "0"), at(900, "0"), at(3100, "1"), at(3500, "1")}}}
	uncounted := &Leg{Answers: answers, Records: [][]upstreamtest.Record{{at(5, ""), at(900, ""), at(3100, ""), at(3500, "")}}}
	r := &Run{Case: &Case{Targets: one("ok")}, Pace: &scaledPace}
	for name, tt := range map[string]struct {
		check Check
		good  bool
	}{
		"two for each request":     {attempts(0, 2, 2), true},
		"not one":                  {attempts(0, 1, 1), false},
		"four in all":              {asked(0, 4, 4), true},
		"not three in all":         {asked(0, 0, 3), false},
		"one in half a second":     {within(0, 2, time.Second), true},
		"not one in a second":      {within(0, 1, time.Second), false},
		"400 ms apart":             {apart(0, 400*time.Millisecond), true},
		"not 500 ms apart":         {apart(0, 500*time.Millisecond), false},
		"the key twice a request":  {keyAsked(KeyA, 2, 2), true},
		"not once a request":       {keyAsked(KeyA, 0, 1), false},
		"the same body twice":      {notTwice, false},
		"not cancelled":            {cancelled(0), false},
		"took six seconds":         {took(fixed(6*time.Second), fixed(7*time.Second)), true},
		"did not take seven":       {took(fixed(7*time.Second), Time{}), false},
		"was not done in five":     {took(Time{}, fixed(5*time.Second)), false},
		"the last request has all": {lastAsked(0, 4), true},
		"before the client left":   {notAfter(0), true},
	} {
		for kind, l := range map[string]*Leg{"counted": counted, "by time": uncounted} {
			if err := tt.check(r, l); (err == nil) != tt.good {
				t.Errorf("%s, %s: %v", name, kind, err)
			}
		}
	}
}

func TestNotAfter(t *testing.T) {
	l := &Leg{Answers: []Answer{{BegunMS: 1000, ElapsedMS: 600}}, Records: [][]upstreamtest.Record{{{Time: time.UnixMilli(1010)}, {Time: time.UnixMilli(3000)}}}}
	if err := notAfter(0)(nil, l); err == nil {
		t.Error("a target may be asked long after the client has left")
	}
}

func TestKeptAwake(t *testing.T) {
	r := &Run{Case: &Case{}, Mode: Streamed, Pace: &realPace}
	check := keptAwake(fixed(3*time.Second), fixed(time.Second))
	for name, tt := range map[string]struct {
		comments []int64
		first    int64
		good     bool
	}{
		"regular":        {[]int64{3000, 4010, 5000}, 5900, true},
		"a busy machine": {[]int64{4500, 6500}, 8000, true},
		"not needed":     {nil, 2900, true},
		"begins late":    {[]int64{7000}, 7500, false},
		"stops too soon": {[]int64{3000, 4000}, 6500, false},
		"none":           {nil, 7000, false},
	} {
		l := &Leg{Answers: []Answer{{Header: map[string]string{}, Comments: tt.comments, FirstTokenMS: tt.first}}}
		if err := check(r, l); (err == nil) != tt.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The table counts on where the scripted upstream cuts.
func TestHalf(t *testing.T) {
	up := upstreamtest.New(upstreamtest.Options{}).Start(t)
	r := &Run{Case: &Case{Name: "half", Targets: one("cut=0.5")}, Client: plain, Mode: Streamed, Pace: &scaledPace}
	c := r.call()
	c.BaseURL, c.Model = up.URL()+"/v1", r.target(0)
	a, err := newPlainClient(plain).Do(c)
	if err != nil {
		t.Fatal(err)
	}
	if want := half(r.text(0)); a.Text != want {
		t.Errorf("cut after %q, want %q", a.Text, want)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := up.Await(ctx, c.Model, 1); err != nil {
		t.Error(err)
	}
}
