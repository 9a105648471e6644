package fit

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

func failure(class recovery.Class, facts recovery.Facts, change func(*recovery.Failure)) *recovery.Failure {
	f := &recovery.Failure{Diagnosis: recovery.Diagnosis{Spec: &recovery.Spec{Class: class}, Signal: recovery.Signal{Phase: recovery.PhaseStatus, Status: 400}, Facts: facts}}
	if change != nil {
		change(f)
	}
	return f
}

func TestLimitFrom(t *testing.T) {
	stream := func(body string) func(*recovery.Failure) {
		return func(f *recovery.Failure) {
			f.Signal.Stream, f.Signal.Phase, f.Response.Body = true, recovery.PhaseStream, []byte(body)
		}
	}
	limit := recovery.Facts{LimitTokens: 128_000, RequestedTokens: 202_868}
	tests := map[string]struct {
		f    *recovery.Failure
		want int
	}{
		"stated":                   {failure(recovery.ContextLengthExceeded, limit, nil), 128_000},
		"limit alone":              {failure(recovery.ContextLengthExceeded, recovery.Facts{LimitTokens: 8192}, nil), 8192},
		"input and output exceed":  {failure(recovery.ContextLengthExceeded, recovery.Facts{LimitTokens: 4096, InputTokens: 3000, RequestedOutput: 2000}, nil), 4096},
		"input that needs room":    {failure(recovery.ContextLengthExceeded, recovery.Facts{LimitTokens: 202_750, InputTokens: 182_387}, nil), 202_750},
		"event of a stream":        {failure(recovery.ContextLengthExceeded, limit, stream(`{"error":{}}`)), 128_000},
		"cut event":                {failure(recovery.ContextLengthExceeded, limit, stream(`{"error":{"message":"maximum context len`)), 0},
		"after reasoning":          {failure(recovery.ContextLengthExceeded, limit, func(f *recovery.Failure) { f.Released = recovery.ReleasedReasoning }), 0},
		"after text in a stream":   {failure(recovery.ContextLengthExceeded, limit, func(f *recovery.Failure) { stream(`{}`)(f); f.Released = recovery.ReleasedText }), 0},
		"stream that broke":        {failure(recovery.ContextLengthExceeded, limit, func(f *recovery.Failure) { stream(`{}`)(f); f.Err = errors.New("reset") }), 0},
		"stalled":                  {failure(recovery.ContextLengthExceeded, limit, func(f *recovery.Failure) { f.Stalled = true }), 0},
		"the client's side":        {failure(recovery.ContextLengthExceeded, limit, func(f *recovery.Failure) { f.Client = true }), 0},
		"tokens per minute":        {failure(recovery.RateLimit, recovery.Facts{LimitTokens: 30_000, RequestedTokens: 61_337}, nil), 0},
		"output":                   {failure(recovery.MaxOutputExceeded, recovery.Facts{LimitTokens: 8192}, nil), 0},
		"no limit stated":          {failure(recovery.ContextLengthExceeded, recovery.Facts{RequestedTokens: 9000}, nil), 0},
		"too small":                {failure(recovery.ContextLengthExceeded, recovery.Facts{LimitTokens: 255}, nil), 0},
		"smallest":                 {failure(recovery.ContextLengthExceeded, recovery.Facts{LimitTokens: 256}, nil), 256},
		"largest":                  {failure(recovery.ContextLengthExceeded, recovery.Facts{LimitTokens: 20_000_000}, nil), 20_000_000},
		"too large":                {failure(recovery.ContextLengthExceeded, recovery.Facts{LimitTokens: 20_000_001}, nil), 0},
		"what was asked for fits":  {failure(recovery.ContextLengthExceeded, recovery.Facts{LimitTokens: 200_000, RequestedTokens: 5000}, nil), 0},
		"not classified":           {&recovery.Failure{Diagnosis: recovery.Diagnosis{Facts: limit}}, 0},
		"no failure":               {nil, 0},
		"bytes of a large payload": {failure(recovery.PayloadTooLarge, recovery.Facts{LimitTokens: 100_000}, nil), 0},
	}
	for name, tt := range tests {
		if got, ok := limitFrom(tt.f); got != tt.want || ok != (tt.want > 0) {
			t.Errorf("%s: %d, %v, want %d", name, got, ok, tt.want)
		}
	}
}

func TestLimitExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, target := newByteLimits(time.Hour), recovery.Target{Upstream: "u", Model: "m", Key: "a"}
		w.learn(target, 5, "r1")
		time.Sleep(time.Hour - 1)
		target.Key = "b"
		if w.of(target) != 5 {
			t.Error("the limit is forgotten before its time")
		}
		time.Sleep(time.Nanosecond)
		if w.of(target) != 0 {
			t.Error("the limit is known beyond its time")
		}
	})
}

func TestPromptThatARefusalStates(t *testing.T) {
	for name, c := range map[string]struct {
		facts recovery.Facts
		raw   int
		want  int
	}{
		"nothing":              {recovery.Facts{LimitTokens: 8192}, 9000, 0},
		"input":                {recovery.Facts{InputTokens: 9000, RequestedTokens: 13_000}, 8000, 9000},
		"total":                {recovery.Facts{RequestedTokens: 13_000}, 12_000, 13_000},
		"total and the limit":  {recovery.Facts{RequestedTokens: 13_000}, 9_500, 9_000},
		"total and the answer": {recovery.Facts{RequestedTokens: 256_493, MaxOutputTokens: 51_200}, 200_000, 205_293},
		"answer alone":         {recovery.Facts{MaxOutputTokens: 51_200}, 9000, 0},
		"bytes, not tokens":    {recovery.Facts{InputTokens: 36_000}, 8000, 0},
	} {
		if got := statedPrompt(c.facts, bodyWithLimit(t, "max_tokens", 4000, 0), c.raw); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestReserve(t *testing.T) {
	for _, tt := range []struct {
		raw          string
		window, want int
	}{
		{`{}`, 0, 4096}, {`{}`, 128_000, 4096}, {`{}`, 8192, 1024}, {`{"max_tokens":100}`, 8192, 100}, {`{"max_completion_tokens":32000,"max_tokens":1}`, 200_000, 32_000},
		{`{"max_tokens":99999}`, 8192, 8192}, {`{"max_tokens":0}`, 8192, 1024}, {`{"max_tokens":-5}`, 0, 4096}, {`{"max_tokens":null}`, 0, 4096}, {`{"max_tokens":50000}`, 0, 50_000},
	} {
		b := recoverytest.Parse(t, tt.raw, transcript.Chat)
		if got := outputReserve(b, tt.window); got != tt.want {
			t.Errorf("%s in %d: %d, want %d", tt.raw, tt.window, got, tt.want)
		}
	}
}
