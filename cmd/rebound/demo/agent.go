package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
)

const (
	// retries and firstWait are the defaults of the usual SDKs: they wait 0.5 s, then 1 s,
	// unless the server sends a Retry-After.
	retries   = 2
	firstWait = 500 * time.Millisecond
	// longestHint is the longest Retry-After that SDKs respect.
	longestHint = time.Minute

	maxEvent = 1 << 20
	maxBody  = 16 << 20
	maxShown = 300 // bytes of an error body
)

// verdict is what the agent's user gets in the end.
type verdict int

const (
	complete  verdict = iota // the complete text
	truncated                // a part of the text, and no error
	empty                    // no text, and no error
	wrong                    // another text
	failed                   // an error
	hung                     // the agent gave up waiting
	unusable                 // a tool call that cannot run, or that failed five times before
	explained                // a message that says what is wrong and what is needed
)

// looksComplete reports whether the agent mistakes a wrong or partial text for the answer.
func (v verdict) looksComplete() bool { return v == truncated || v == empty || v == wrong }

// outcome is the result of one question.
type outcome struct {
	verdict  verdict
	problem  string // for failed and unusable: what the agent reports
	body     string // the beginning of the body of an error status
	percent  int    // of the text that arrived before the fault
	requests int
	done     bool // [DONE] arrived
	took     time.Duration
}

// agent is a client that behaves like the usual SDKs. It is safe for concurrent use.
type agent struct {
	client *http.Client
	url    string // ends in /v1
	key    string
	header http.Header // additional headers
	// timeout is how long the agent waits for an answer, including its own retries.
	timeout time.Duration
	// ownIDPrefix begins the ids of explanations, which the gateway writes or asks the model for
	// instead of an error. With "" the agent judges answers by their text alone.
	ownIDPrefix string
}

// ask sends a question and compares the answer with the right texts.
func (a *agent) ask(ctx context.Context, f *fault, model string, right ...string) outcome {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	started := time.Now()
	var o outcome
	var r reply
	for wait := firstWait; ; wait *= 2 {
		r = a.try(ctx, f, model, o.requests)
		o.requests++
		if r.err == nil || !r.again || o.requests > retries {
			break
		}
		if r.hint == 0 {
			r.hint = wait
		}
		if !recovery.Wait(ctx, r.hint) {
			r.err = ctx.Err()
			break
		}
	}
	o.took, o.done, o.body = time.Since(started), r.done, r.body
	switch {
	case r.err == nil && a.ownIDPrefix != "" && strings.HasPrefix(r.id, a.ownIDPrefix) && r.text != "" && len(r.calls) == 0:
		o.verdict = explained
	case r.err == nil && f.call.name != "":
		o.judgeCalls(r, f.call, f.repeats)
	default:
		o.judge(r.text, right, r.err)
	}
	return o
}

// judge sets the verdict on a text. The right texts have the same size.
func (o *outcome) judge(text string, right []string, err error) {
	want := right[0]
	o.percent = (100*len(text) + len(want)/2) / len(want)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		o.verdict = hung
	case err != nil:
		o.verdict, o.problem = failed, explain(err)
	case slices.Contains(right, text):
		o.verdict = complete
	case text == "":
		o.verdict = empty
	case strings.HasPrefix(want, text):
		o.verdict = truncated
	default:
		o.verdict = wrong
	}
}

// statusError is an answer with an error status.
type statusError int

func (e statusError) Error() string { return "error " + strconv.Itoa(int(e)) }

// brokenError is a malformed answer.
type brokenError string

func (e brokenError) Error() string { return string(e) }

const (
	errBadBody  brokenError = "body is not JSON"
	errBadEvent brokenError = "event is not JSON"
	errEvent    brokenError = "error event"
)

// reply is the result of one request.
type reply struct {
	id    string
	text  string
	calls []toolCall
	done  bool   // [DONE] arrived
	body  string // the beginning of the body of an error status
	err   error
	again bool          // SDKs would send the request again
	hint  time.Duration // from Retry-After, 0 without
}

// try makes one request. SDKs do not repeat one that fails after the answer has begun.
func (a *agent) try(ctx context.Context, f *fault, model string, retry int) reply {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url+f.wire.path(), strings.NewReader(f.question(model)))
	if err != nil {
		return reply{err: err}
	}
	maps.Copy(req.Header, a.header)
	req.Header.Set("Content-Type", "application/json")
	if f.wire == messages {
		req.Header.Set("X-Api-Key", a.key)
		req.Header.Set("Anthropic-Version", "2023-06-01")
	} else {
		req.Header.Set("Authorization", "Bearer "+a.key)
	}
	req.Header.Set("X-Stainless-Retry-Count", strconv.Itoa(retry))
	resp, err := a.client.Do(req)
	if err != nil {
		return reply{err: err, again: true}
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode != http.StatusOK:
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxBody)) // to the end, so that the connection can be reused
		return reply{err: statusError(resp.StatusCode), body: string(body[:min(len(body), maxShown)]), again: shouldRetry(resp), hint: retryAfter(resp.Header)}
	case f.whole:
		return readWhole(resp.Body)
	default:
		return f.wire.read(resp.Body)
	}
}

// shouldRetry reports whether SDKs send a request again after this answer.
func shouldRetry(resp *http.Response) bool {
	switch resp.Header.Get("X-Should-Retry") {
	case "true":
		return true
	case "false":
		return false
	}
	switch code := resp.StatusCode; code {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return true
	default:
		return code >= 500
	}
}

// retryAfter returns how long the server asks to wait, or 0.
func retryAfter(h http.Header) time.Duration {
	unit, v := time.Millisecond, h.Get("Retry-After-Ms")
	if v == "" {
		unit, v = time.Second, h.Get("Retry-After")
	}
	n, err := strconv.ParseFloat(v, 64)
	if err != nil || n <= 0 || n > float64(longestHint/unit) {
		return 0
	}
	return time.Duration(n * float64(unit))
}

// readWhole reads an answer that is not streamed.
func readWhole(body io.Reader) reply {
	data, err := io.ReadAll(io.LimitReader(body, maxBody))
	if err != nil {
		return reply{err: err}
	}
	if !json.Valid(data) {
		return reply{err: errBadBody}
	}
	return reply{id: gjson.GetBytes(data, "id").Str, text: gjson.GetBytes(data, "choices.0.message.content").Str,
		calls: appendCalls(nil, gjson.GetBytes(data, "choices.0.message.tool_calls"))}
}

// explain describes an error in a few words.
func explain(err error) string {
	var status statusError
	var broken brokenError
	switch {
	case errors.As(err, &status), errors.As(err, &broken):
		return err.Error()
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET):
		return "connection reset"
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "connection broke"
	}
	return "connection failed"
}

// String describes the outcome in a few words, with its time and requests where they matter.
func (o outcome) String() string {
	after, took := "", seconds(o.took)
	if o.requests > 1 {
		after = fmt.Sprintf(", %d requests", o.requests)
	}
	switch o.verdict {
	case complete:
		if o.requests > 1 {
			return "complete, " + took + after
		}
		return "complete answer, " + took
	case explained:
		return "explained, " + took
	case hung:
		return fmt.Sprintf("%s, gave up after %.0f s", o.got(), o.took.Seconds())
	case failed:
		return o.got() + after
	default:
		return o.got()
	}
}

// got describes the answer without its time and requests.
func (o outcome) got() string {
	at := ""
	if o.percent > 0 {
		at = fmt.Sprintf(" at %d %%", o.percent)
	}
	switch o.verdict {
	case complete:
		return "complete"
	case truncated:
		return "TRUNCATED, looks complete"
	case empty:
		return "EMPTY, looks complete"
	case wrong:
		return "WRONG TEXT, looks complete"
	case explained:
		return "explained"
	case unusable:
		return o.problem
	case hung:
		return "hung" + at
	default:
		return o.problem + at
	}
}

// seconds formats a time; short ones are in ms.
func seconds(d time.Duration) string {
	if d < 100*time.Millisecond {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
