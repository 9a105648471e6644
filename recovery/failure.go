package recovery

import (
	"fmt"
	"net/http"
	"time"
)

// Phase is how far an attempt got before it failed.
type Phase uint8

// The phases of an attempt, in order.
const (
	PhaseConnect Phase = iota // nothing was sent
	PhaseHeaders              // the request was sent, no response head came
	PhaseStatus               // a response with an error status, or an error object as a complete body
	PhaseBody                 // a success whose complete body is broken or empty
	PhaseStream               // an SSE event, or the end of a stream
)

// Evidence is what an attempt saw of a failure, as received.
type Evidence struct {
	Phase  Phase
	Status int         // 0 without a response head
	Header http.Header // may be nil
	Body   []byte      // limited by the sender; the event's data if Stream is set
	Stream bool        // Body is one SSE event of a response that had begun with 200
	Err    error       // transport cause, may be nil
	Now    time.Time   // when the evidence was taken; dates in hints are relative to it
	// Request is the body that the attempt sent, nil if unknown. It shows which words an error quotes from the request;
	// these affect only this client.
	Request []byte
}

// Signal is an upstream's failure in a form that is the same for all providers, without wrappers, nesting and encodings.
// Strings have their original case.
type Signal struct {
	Phase         Phase
	Status        int
	Code          string
	Type          string
	Param         string
	Message       string
	Stream        bool
	HasRetryAfter bool
	RetryAfter    time.Duration // as the upstream states it, without a maximum
	Err           error
}

// Facts are the values that an upstream's error text states; nothing is inferred. Zero means not stated.
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
	OfValue          bool     `json:"-"`                     // the upstream refuses the parameter's value, not the parameter
	PerTime          bool     `json:"-"`                     // LimitTokens is what an account may use in a minute or day
}

// Affordable reports whether the account has enough left for a smaller request, as in OpenRouter's "You requested up to 65536
// tokens, but can only afford 3000".
func (f *Facts) Affordable() bool { return f.AffordableOutput > 0 || f.AffordableTokens > 0 }

// Diagnosis is a classified failure.
type Diagnosis struct {
	Spec   *Spec
	Signal Signal
	Facts  Facts
	Rule   string // name of the rule that matched
	// Quoted reports that the class or a fact depends on words that also stand in the request.
	// The client may have written them, so nothing is learned from the failure.
	Quoted bool
}

// Classifier returns the diagnosis of a failure. It is pure and total: a failure that no rule recognises is Unknown. Safe
// for concurrent use.
type Classifier interface {
	Classify(Evidence) Diagnosis
}

// Released is how much of an answer the client already has.
type Released uint8

// The steps of release, in order; each includes those before it.
const (
	ReleasedNothing   Released = iota // no byte of an answer; comments at most
	ReleasedReasoning                 // unsigned reasoning only
	ReleasedText                      // text that a person may have read
	ReleasedCall                      // part of a tool call, or something else that cannot be repeated
)

// Failure is the only error that decisions branch on: an attempt without a complete answer.
// It wraps its cause.
type Failure struct {
	Diagnosis
	Target  Target
	Attempt int  // 1 for the first
	Edited  bool // the attempt sent an edited request
	Free    bool // the attempt cost only time
	// Repeated is set if the target answers the same bytes with the same error each time.
	Repeated bool
	// NeverAnswered is set if the host has answered nothing since the gateway started.
	NeverAnswered bool
	Break
	Flaw     *Flaw    // the flaw of an answer that is complete, or that repeats itself endlessly
	Odd      string   // why an answer that ended cannot be used; empty for a cut, a stall or an error
	Upstream string   // the upstream's own id of the request
	Response Response // the upstream's response, which the client gets if this is the last failure
	Err      error
}

// Break describes how far an answer got before it broke.
type Break struct {
	Released Released
	Sent     string // the text that the client has
	Stalled  bool   // the stream stopped instead of breaking
	Diverged bool   // the continuation differed from the text that the client has
	Client   bool   // the connection to the client failed
	Job      *Job   // set if the server continues the answer, or may have stored it
}

// Job is an answer that its server generates even if no client reads it.
type Job struct {
	ID      string
	Last    int  // number of the last event that the client has
	Nothing bool // the client has no event
	Stored  bool // the server may have stored the whole answer, but keeps no events
}

// Response is an upstream's response to a request that it refused; Status is 0
// if there is none.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// oddity names the flaw of an answer that ended; it is empty for a cut, a stall or an error. Equal names
// mean the same flaw of a target.
func (f *Failure) oddity() string {
	if f.Flaw != nil {
		return string(f.Flaw.Kind) + " " + f.Flaw.Tool + " " + f.Flaw.Problem
	}
	return f.Odd
}

// Error describes the failure for logs. Clients get the upstream's own message.
func (f *Failure) Error() string {
	if f.Err != nil {
		return fmt.Sprintf("%s from %s: %v", f.Class(), f.Target, f.Err)
	}
	return fmt.Sprintf("%s from %s (status %d)", f.Class(), f.Target, f.Signal.Status)
}

// Unwrap returns the cause, if any.
func (f *Failure) Unwrap() error { return f.Err }

// Class returns the failure's class, Unknown if it was not classified.
func (f *Failure) Class() Class {
	if f.Spec == nil {
		return Unknown
	}
	return f.Spec.Class
}

// Scope returns what the failure concerns. For an unclassified failure it returns ScopeClient, so that no strategy
// tries to recover it.
func (f *Failure) Scope() Scope {
	if f.Spec == nil {
		return ScopeClient
	}
	return f.Spec.Scope
}

// causedByEdit reports whether the upstream refused an edited request, so that the client must not see the refusal.
func (f *Failure) causedByEdit() bool { return f.Edited && f.Scope() == ScopeRequest }
