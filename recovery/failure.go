package recovery

import (
	"fmt"
	"net/http"
	"time"
)

// Phase is how far an attempt came before it failed.
type Phase uint8

// The phases of an attempt, in order.
const (
	PhaseConnect Phase = iota // nothing was sent
	PhaseHeaders              // the request was sent, no response head came
	PhaseStatus               // a response with an error status, or an error object as a complete body
	PhaseBody                 // a success whose complete body is broken or empty
	PhaseStream               // an SSE event, or the end of a stream
)

// Evidence is what an attempt saw of a failure, as it came off the wire.
type Evidence struct {
	Phase  Phase
	Status int         // 0 when no response head came
	Header http.Header // may be nil
	Body   []byte      // bounded by the sender; the event's data when Stream
	Stream bool        // Body is one SSE event of a response that had begun with 200
	Err    error       // transport cause, may be nil
	Now    time.Time   // when the evidence was taken; dates in hints are relative to it
	// Request is the body that the attempt sent, nil where nobody knows. What an
	// error only repeats of it decides nothing about others than the client.
	Request []byte
}

// Signal is an upstream's failure in neutral form: what the evidence says once
// wrappers, nesting and encodings are taken off. Strings are as sent, not lowered.
type Signal struct {
	Phase         Phase
	Status        int
	Code          string
	Type          string
	Param         string
	Message       string
	Stream        bool
	HasRetryAfter bool
	RetryAfter    time.Duration // what the upstream asks for, uncapped
	ShouldRetry   string        // x-should-retry: "true", "false" or ""
	Err           error
}

// Facts are what an upstream's text states, and nothing inferred. Zero means not stated.
type Facts struct {
	LimitTokens      int      `json:"limit_tokens,omitempty"`
	RequestedTokens  int      `json:"requested_tokens,omitempty"`
	InputTokens      int      `json:"input_tokens,omitempty"`
	MaxOutputTokens  int      `json:"max_output_tokens,omitempty"`
	MaxOutputLimit   int      `json:"max_output_limit,omitempty"`
	RequestedOutput  int      `json:"requested_output,omitempty"`
	AffordableOutput int      `json:"affordable_output,omitempty"`
	AffordableTokens int      `json:"affordable_tokens,omitempty"`
	UsedTokens       int      `json:"used_tokens,omitempty"`
	OverflowTokens   int      `json:"overflow_tokens,omitempty"`
	LimitRequests    int      `json:"limit_requests,omitempty"`
	LimitBytes       int      `json:"limit_bytes,omitempty"`
	RequestedBytes   int      `json:"requested_bytes,omitempty"`
	LimitChars       int      `json:"limit_chars,omitempty"`
	RequestedChars   int      `json:"requested_chars,omitempty"`
	LimitPixels      int      `json:"limit_pixels,omitempty"`
	RetryAfterS      float64  `json:"retry_after_s,omitempty"`
	ResetEpochMS     int64    `json:"reset_epoch_ms,omitempty"`
	ResetAt          string   `json:"reset_at,omitempty"`
	Param            string   `json:"param,omitempty"`
	Params           []string `json:"params,omitempty"`
	UseInstead       string   `json:"use_instead,omitempty"` // parameter that the text names as the replacement
	OfValue          bool     `json:"-"`                     // a value of the parameter is refused, not the parameter
}

// Diagnosis is a classified failure.
type Diagnosis struct {
	Spec   *Spec
	Signal Signal
	Facts  Facts
	Rule   string // name of the rule that matched
	// Quoted reports that the class or a fact rests on words that the request contains,
	// too: the client may have written them, so nothing is learned from the failure.
	Quoted bool
}

// Classifier turns evidence into a diagnosis. It is pure and total: every
// evidence has a diagnosis, the last resort being Unknown. Safe for concurrent use.
type Classifier interface {
	Classify(Evidence) Diagnosis
}

// Released says what of an answer has already reached the client.
type Released uint8

// The steps of release, in order; each includes those before it.
const (
	ReleasedNothing   Released = iota // no byte of an answer; comments at most
	ReleasedReasoning                 // unsigned reasoning only
	ReleasedText                      // text that a person may have read
	ReleasedCall                      // part of a tool call, or something else that cannot be repeated
)

// Failure is the only error that decisions branch on: one attempt that did not
// end in a complete answer. It wraps its cause.
type Failure struct {
	Diagnosis
	Target  Target
	Attempt int  // 1 for the first
	Edited  bool // what was refused was not the client's own bytes
	Free    bool // it cost nothing but time
	// Repeated: the target gave the same error to the same bytes again and again.
	Repeated bool
	// Stranger: the host never answered anything since the gateway started.
	Stranger bool
	Breach
	Flaw     *Flaw    // what is wrong with an answer that is complete, or runs away
	Odd      string   // what is odd about an answer that came to its end and cannot be used; empty for a cut, a stall, an error
	Upstream string   // the upstream's own id of the request
	Response Response // what the client gets where this is the last failure
	Err      error
}

// Breach is how far an answer had come when it broke.
type Breach struct {
	Released Released
	Sent     string // the text that has reached the client
	Stalled  bool   // the stream stopped instead of breaking
	Diverged bool   // a replay did not repeat what the client has
	Client   bool   // it was the client that could not be written to
	Job      *Job   // the server goes on with it, or may have kept it; nil where nobody does
}

// Job is an answer that its server works on, whoever listens.
type Job struct {
	ID      string
	Last    int  // number of the last event that the client has
	Nothing bool // it has none
	Stored  bool // the server may have kept the whole answer, and has no events of it
}

// Response is an upstream's own answer to a request that it refused; Status is 0
// without one.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// oddity names what is odd about an answer that came to its end; it is empty for a cut, a
// stall or an error. Equal oddities of one target are the same flaw.
func (f *Failure) oddity() string {
	if f.Flaw != nil {
		return string(f.Flaw.Kind) + " " + f.Flaw.Tool + " " + f.Flaw.Problem
	}
	return f.Odd
}

// Error describes the failure for logs; clients get the upstream's own words.
func (f *Failure) Error() string {
	if f.Err != nil {
		return fmt.Sprintf("%s from %s: %v", f.Class(), f.Target, f.Err)
	}
	return fmt.Sprintf("%s from %s (status %d)", f.Class(), f.Target, f.Signal.Status)
}

// Unwrap returns the cause, if any.
func (f *Failure) Unwrap() error { return f.Err }

// Class is the failure's class; Unknown when it was never classified.
func (f *Failure) Class() Class {
	if f.Spec == nil {
		return Unknown
	}
	return f.Spec.Class
}

// Scope is what the failure is about; ScopeClient, where nobody can help, when
// it was never classified.
func (f *Failure) Scope() Scope {
	if f.Spec == nil {
		return ScopeClient
	}
	return f.Spec.Scope
}

// ours reports a refusal of what was edited: what it says is no answer to the client.
func (f *Failure) ours() bool { return f.Edited && f.Scope() == ScopeRequest }
