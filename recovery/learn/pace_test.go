package learn_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/learn"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// exchange has a body of about so many tokens, with extra fields.
func exchange(t testing.TB, tokens int, extra string) *recovery.Exchange {
	t.Helper()
	head, tail := `{"model":"m",`+extra+`"messages":[{"role":"user","content":"`, `"}]}`
	raw := head + strings.Repeat("x", max(0, tokens*4-len(head)-len(tail))) + tail
	b := recoverytest.Parse(t, raw, transcript.Chat)
	return &recovery.Exchange{Request: recovery.Request{Body: b, Model: "m", Streaming: true}}
}

func candidate(model string) recovery.Candidate {
	return recovery.Candidate{Target: recovery.Target{Upstream: "up", Model: model, Key: "k"}}
}

func newPace(t *testing.T) (*learn.Pace, *learn.Facts) {
	facts := learn.NewFacts(board(t), time.Hour)
	return learn.NewPace(learn.Defaults().FirstToken, recovery.Defaults().Parallel, facts), facts
}

func TestLimit(t *testing.T) {
	const alone, another = false, true
	cases := []struct {
		name        string
		tokens      int
		extra       string
		model       string
		local       bool
		alternative bool
		want        time.Duration
	}{
		{"least", 100, "", "m", false, another, 10 * time.Second},
		{"below a step", 4999, "", "m", false, another, 10 * time.Second},
		{"a step", 5000, "", "m", false, another, 11 * time.Second},
		{"large", 100_000, "", "m", false, another, 30 * time.Second},
		{"no other target", 100, "", "m", false, alone, 30 * time.Second},
		{"no other target, large", 100_000, "", "m", false, alone, 50 * time.Second},
		{"reasoning by request", 100, `"reasoning_effort":"high",`, "m", false, another, 181 * time.Second},
		{"no reasoning by request", 100, `"reasoning_effort":"none",`, "m", false, another, 10 * time.Second},
		{"reasoning by name", 100, "", "o3-mini", false, another, 181 * time.Second},
		{"reasoning by name with a path", 100, "", "vendor/DeepSeek-R1-0528", false, another, 181 * time.Second},
		{"no reasoning by name", 100, "", "gpt-4o", false, another, 10 * time.Second},
		{"reasoning, large", 50_000, "", "gpt-5.1", false, alone, 191 * time.Second},
		{"local", 100, "", "m", true, alone, 0},
		{"local, another", 100, "", "m", true, another, 30 * time.Second},
		{"local, another, large", 125_000, "", "m", true, another, 35 * time.Second},
		{"local, reasoning", 100, "", "o3", true, alone, 0},
		{"local, another, reasoning", 100, "", "o3", true, another, 181 * time.Second},
		{"local, another, flex", 100, `"service_tier":"flex",`, "m", true, another, 0},
		{"flex", 100, `"service_tier":"flex",`, "m", false, another, 0},
		{"batch", 100, `"service_tier":"batch",`, "m", false, alone, 0},
		{"priority", 100, `"service_tier":"priority",`, "m", false, another, 10 * time.Second},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, _ := newPace(t)
				to := candidate(c.model)
				to.Local = c.local
				x := exchange(t, c.tokens, c.extra)
				x.Candidates = []recovery.Choice{{Candidate: to}, {}}
				if got := p.Limits(x, to, c.alternative).Silent; got != c.want {
					t.Errorf("%v, want %v", got, c.want)
				}
			})
		})
	}
}

// TestLimitSawReasoning: an answer that reasoned tells for all later requests.
func TestLimitSawReasoning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, facts := newPace(t)
		x := exchange(t, 100, "")
		p.Observe(x, candidate("m"), time.Second, recovery.Usage{Output: 10})
		if got := p.Limits(x, candidate("m"), true).Silent; got != 10*time.Second {
			t.Errorf("%v before", got)
		}
		p.Observe(x, candidate("m"), 0, recovery.Usage{Output: 10, Reasoning: 5})
		if got := p.Limits(x, candidate("m"), true).Silent; got != 181*time.Second || !facts.Reasons(target) {
			t.Errorf("%v after", got)
		}
		if got := p.Limits(x, candidate("m2"), true).Silent; got != 10*time.Second {
			t.Errorf("%v for another model", got)
		}
	})
}

func TestLimitP95(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := newPace(t)
		x := exchange(t, 1000, "")
		c := candidate("m")
		for i := range 19 {
			p.Observe(x, c, 8*time.Second, recovery.Usage{})
			if got := p.Limits(x, c, true).Silent; got != 16*time.Second {
				t.Errorf("%v after %d answers, want twice the median", got, i+1)
			}
		}
		for range 5 {
			p.Observe(x, c, 8*time.Second, recovery.Usage{})
		}
		if got := p.Limits(x, c, true).Silent; got != 24*time.Second {
			t.Errorf("%v, want three times the p95", got)
		}
		if got := p.Limits(x, c, false).Silent; got != 30*time.Second {
			t.Errorf("%v with no other target", got)
		}
		otherKey := c
		otherKey.Key = "k2"
		if got := p.Limits(x, otherKey, true).Silent; got != 24*time.Second {
			t.Errorf("%v for another key of the same target", got)
		}
		if got := p.Limits(exchange(t, 3000, ""), c, true).Silent; got != 10*time.Second {
			t.Errorf("%v for another size", got)
		}
		if got := p.Limits(&recovery.Exchange{Request: recovery.Request{Body: x.Body}}, c, true).Silent; got != time.Minute {
			t.Errorf("%v for whole answers", got)
		}
		// It follows: what was slow once is forgotten. Outliers below 5 % do not count.
		for i := range 64 {
			d := time.Second
			if i%32 == 0 {
				d = time.Minute
			}
			p.Observe(x, c, d, recovery.Usage{})
		}
		if got := p.Limits(x, c, true).Silent; got != 10*time.Second {
			t.Errorf("%v after it became fast", got)
		}
		// No sample is taken where there was no first token.
		for range 100 {
			p.Observe(x, c, 0, recovery.Usage{})
			p.Observe(x, c, -time.Second, recovery.Usage{})
		}
		if got := p.Limits(x, c, true).Silent; got != 10*time.Second {
			t.Errorf("%v after nothing", got)
		}
	})
}

// TestLimitWhole: an answer that is not streamed is judged by the pace of whole answers, whatever its input.
func TestLimitWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := newPace(t)
		limit := func(tokens int, extra, model string, alternative bool) time.Duration {
			x := exchange(t, tokens, extra)
			x.Streaming = false
			got := p.Limits(x, candidate(model), alternative).Silent
			return got
		}
		for _, c := range []struct {
			got, want time.Duration
		}{
			{limit(100, "", "m", true), time.Minute},
			{limit(100, "", "m", false), time.Minute},
			{limit(5000, "", "m", true), 61 * time.Second},
			{limit(100, "", "o3", true), 181 * time.Second},
			{limit(100, `"reasoning_effort":"high",`, "m", false), 181 * time.Second},
			{limit(100, `"service_tier":"flex",`, "m", true), 0},
		} {
			if c.got != c.want {
				t.Errorf("%v, want %v", c.got, c.want)
			}
		}
		for range 24 {
			x := exchange(t, 100, "")
			x.Streaming = false
			p.Observe(x, candidate("m"), 40*time.Second, recovery.Usage{})
		}
		if got := limit(3000, "", "m", true); got != 2*time.Minute {
			t.Errorf("%v, want three times the p95 of whole answers of any size", got)
		}
		if got := p.Limits(exchange(t, 100, ""), candidate("m"), true).Silent; got != 10*time.Second {
			t.Errorf("%v for a stream", got)
		}
	})
}

func TestAllow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := newPace(t)
		small, large := exchange(t, 100, ""), exchange(t, 100_001, "")
		start := func() (n int) {
			for n < 10_000 && p.Allow(small) {
				n++
			}
			return n
		}
		if p.Allow(large) {
			t.Error("a large input was allowed")
		}
		if got := start(); got != 10 {
			t.Errorf("%d at first, want the burst of 10", got)
		}
		for range 1000 {
			p.Observe(small, candidate("m"), 0, recovery.Usage{})
		}
		if got := start(); got != 40 {
			t.Errorf("%d more beside 1000 requests, want 5 %% of them together", got)
		}
		time.Sleep(30 * time.Minute)
		if got := start(); got != 10 {
			t.Errorf("%d after a quiet while, want the burst again", got)
		}
		p.Reconfigure(learn.Defaults().FirstToken, recovery.ParallelConfig{})
		time.Sleep(30 * time.Minute)
		if got := start(); got != 0 {
			t.Errorf("%d without any budget", got)
		}
	})
}

// TestPaceConcurrent is for the race detector, and for models without number.
func TestPaceConcurrent(t *testing.T) {
	p, _ := newPace(t)
	x := exchange(t, 100, "")
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := range 2000 {
				c := candidate(fmt.Sprint("invented", i, n))
				p.Limits(x, c, true)
				p.Observe(x, c, time.Second, recovery.Usage{})
				p.Allow(x)
				if n%500 == 0 {
					p.Reconfigure(learn.Defaults().FirstToken, recovery.Defaults().Parallel)
				}
			}
		})
	}
	wg.Wait()
}

func TestValidate(t *testing.T) {
	if err := learn.Defaults().Validate(); err != nil {
		t.Error(err)
	}
	bad := learn.Defaults()
	bad.FirstToken.ReasoningModels = []string{"["}
	if bad.Validate() == nil || (learn.Config{}).Validate() == nil {
		t.Error("wrong configurations are valid")
	}
}

// TestSigns: signs of life prolong the limit; in Responses nothing takes long before the response is created.
func TestSigns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		responses := recoverytest.Parse(t, `{"model":"o3","reasoning":{"effort":"high"},"input":"hi"}`, transcript.Responses)
		chat := func(extra string) *recovery.Exchange { return exchange(t, 100, extra) }
		s := time.Second
		for _, c := range []struct {
			name        string
			x           *recovery.Exchange
			model       string
			alternative bool
			want        recovery.Limits
		}{
			{"another target", chat(""), "m", true, recovery.Limits{Silent: 10 * s, Alive: 40 * s, Thinks: 181 * s, Lost: 20 * s}},
			{"alone", chat(""), "m", false, recovery.Limits{Silent: 30 * s, Alive: 120 * s, Thinks: 181 * s, Lost: 30 * s}},
			{"reasons", chat(""), "o3", true, recovery.Limits{Silent: 181 * s, Alive: 362 * s, Thinks: 181 * s, Lost: 362 * s}},
			{"reasons, Responses", &recovery.Exchange{Request: recovery.Request{Body: responses, Streaming: true}}, "o3", true,
				recovery.Limits{Silent: 10 * s, Alive: 40 * s, Thinks: 181 * s, Lost: 20 * s}},
			{"reasons, Responses, not streamed", &recovery.Exchange{Request: recovery.Request{Body: responses}}, "o3", true,
				recovery.Limits{Silent: 181 * s, Alive: 362 * s, Thinks: 181 * s, Lost: 362 * s}},
		} {
			p, _ := newPace(t)
			if got := p.Limits(c.x, candidate(c.model), c.alternative); got != c.want {
				t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
			}
		}
		// What is known of answers that took long holds a response that was never created for a minute at most.
		p, _ := newPace(t)
		x := &recovery.Exchange{Request: recovery.Request{Body: responses, Streaming: true}}
		p.Observe(x, candidate("o3"), 100*s, recovery.Usage{})
		if got := p.Limits(x, candidate("o3"), true); got.Silent != time.Minute || got.Thinks != 200*s {
			t.Errorf("%+v", got)
		}
	})
}

// TestAllLocal: where a model has local targets only, they are as others; before a public one a local one has 30 s.
func TestAllLocal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := newPace(t)
		x, c := exchange(t, 100, ""), candidate("m")
		c.Local = true
		other := recovery.Choice{Candidate: candidate("n")}
		for _, local := range []bool{true, false} {
			other.Local = local
			x.Candidates = []recovery.Choice{{Candidate: c}, other}
			want := map[bool]time.Duration{true: 10 * time.Second, false: 30 * time.Second}[local]
			if got := p.Limits(x, c, true).Silent; got != want {
				t.Errorf("all local %v: %v, want %v", local, got, want)
			}
		}
		if got := p.Limits(x, c, false).Silent; got != 0 {
			t.Errorf("alone: %v", got)
		}
	})
}

// TestOvertaken: that an attempt is lost says one of its kind that was sent later, with at least as large an input.
func TestOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := newPace(t)
		c := candidate("m")
		small, large := exchange(t, 100, ""), exchange(t, 10_000, "")
		whole := exchange(t, 10_000, "")
		whole.Streaming = false
		start := time.Now()
		at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
		p.Answered(small, c, at(5))
		p.Answered(large, c, at(3))
		p.Answered(whole, c, at(9))
		for _, q := range []struct {
			x    *recovery.Exchange
			c    recovery.Candidate
			sent int
			want bool
		}{
			{small, c, 0, true}, {small, c, 4, true}, {small, c, 5, false}, {large, c, 0, true}, {large, c, 3, false},
			{exchange(t, 10_500, ""), c, 0, true}, {exchange(t, 12_000, ""), c, 0, false}, {whole, c, 8, true},
			{exchange(t, 100, `"reasoning_effort":"high",`), c, 0, false}, {small, candidate("n"), 0, false},
		} {
			if got := p.Overtaken(q.x, q.c, at(q.sent)); got != q.want {
				t.Errorf("%d tokens of %s, sent after %d s: %v", q.x.Body.EstimateTokens(), q.c.Model, q.sent, got)
			}
		}
		for i := range 60 { // older ones go
			p.Answered(exchange(t, 40_000-400*i, ""), c, at(10+i))
		}
		if p.Overtaken(exchange(t, 40_000, ""), c, at(5)) || !p.Overtaken(exchange(t, 20_000, ""), c, at(5)) {
			t.Error("remembers without bound, or nothing")
		}
	})
}

// TestSilence: attempts that show nothing are counted until the target answers anything.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := newPace(t)
		x, y := exchange(t, 100, ""), exchange(t, 100, "")
		x.Key, y.Key = "alice", "bob"
		p.Silent(x, target)
		p.Silent(x, target)
		if n, several := p.Silence(target); n != 2 || several {
			t.Errorf("%d, several %v", n, several)
		}
		other := target
		other.Key = "k2"
		p.Silent(y, other)
		if n, several := p.Silence(target); n != 3 || !several {
			t.Errorf("%d, several %v", n, several)
		}
		p.ResetSilence(other)
		if n, _ := p.Silence(target); n != 0 {
			t.Errorf("%d after it was heard", n)
		}
		p.Silent(x, target)
		p.Answered(x, candidate("m"), time.Now())
		if n, _ := p.Silence(candidate("m").Target); n != 0 {
			t.Errorf("%d after an answer", n)
		}
	})
}

// TestIdle: an answer may pause for three times the longest pause that the target made lately, and not for less than eight seconds.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := newPace(t)
		for i := range 19 {
			p.ObservePause(target, time.Duration(i)*time.Millisecond)
		}
		if got := p.Idle(target); got != 0 {
			t.Errorf("%v with too few answers", got)
		}
		p.ObservePause(target, time.Second)
		if got := p.Idle(target); got != 8*time.Second {
			t.Errorf("%v where it flows", got)
		}
		p.ObservePause(target, 4*time.Second)
		if got := p.Idle(target); got != 12*time.Second {
			t.Errorf("%v where it paused for 4 s", got)
		}
		for range 64 {
			p.ObservePause(target, time.Second)
		}
		if got := p.Idle(target); got != 8*time.Second {
			t.Errorf("%v long after that pause", got)
		}
		p.Clear(candidate("m").Target.Upstream+"/m", "")
		if got := p.Idle(target); got != 0 {
			t.Errorf("%v after it was cleared", got)
		}
	})
}
