//go:build linux

package soak_test

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

// outcome is what a client may get where a fault has its way.
type outcome int

const (
	right  outcome = iota // the answer, whole
	either                // or an honest error: what was lost cannot always be had again
	fails                 // an honest error: there is no answer
)

// What a fault needs of its request.
type need int

const (
	every  need = 0
	stream need = 1 << iota
	whole
	call  // the answer is a call
	text  // the answer is a text
	long  // there is much to make smaller
	loose // a host of its own: its connections are not used again
	own   // the client's own credential
	newer // a gateway of this version: the one before fails
)

// fault is what an upstream does to a request: at each attempt the next of the
// steps, which are those of package upstreamtest, and at last one of "ok" for ever.
type fault struct {
	name   string
	weight int
	steps  string
	needs  need
	ends   outcome
}

// faults are all of them. More than half of the requests meet none.
var faults = []fault{
	{"none", 250, "ok", every, right},
	{"slow stream", 10, "gap=20ms", stream, right},
	{"late first token", 6, "first=3s", every, right},
	{"slow answer", 6, "delay=1s", every, right},
	{"pieces of 7 bytes", 6, "split=7", every, right},
	{"one write", 6, "one-write", stream, right},
	{"CR LF", 6, "crlf", stream, right},
	{"gzip", 8, "gzip", every, right},
	{"noise between chunks", 6, "noise=0.4", stream, right},
	{"no [DONE]", 6, "no-done", stream, right},
	{"reasoning first", 6, "reason", every, right},
	{"pings", 4, "pings=100ms,first=1s", stream, right},

	{"429", 8, "429/ok", every, right},
	{"429 with Retry-After", 6, "429,retry-after=1/ok", every, right},
	{"429 with Retry-After in ms", 6, "429,retry-after-ms=300/ok", every, right},
	{"500", 8, "500/ok", every, right},
	{"503 twice", 6, "503x2/ok", every, right},
	{"529", 5, "overloaded/ok", every, right},
	{"HTML", 5, "html/ok", every, right},
	{"reset", 6, "reset/ok", every, right},
	{"close", 6, "close/ok", every, right},
	{"wrong key", 4, "unauthorized/ok", own, either}, // there is no other
	{"quota", 4, "quota/ok", own, either},
	{"other faults in turn", 6, "reset/502/429,retry-after-ms=200/ok", every, right},
	{"no HTTP", 4, "status-junk/ok", every, right},
	{"bad chunked encoding", 4, "bad-chunk/ok", every, right},
	{"endless headers", 2, "endless-headers/ok", every, right},
	{"endless line", 1, "endless-line/ok", whole, right}, // of a stream it is passed on, as a long event is
	{"gzip bomb", 1, "bomb/ok", every, right},

	{"cut", 10, "cut=0.5/ok", every, right},
	{"cut twice", 4, "cut=0.3/cut=0.7/ok", every, right},
	{"end without an end", 6, "fin=0.6/ok", every, right},
	{"malformed chunk", 6, "malformed=0.5/ok", every, right},
	{"error event at once", 6, "error-event/ok", every, right},
	{"error event", 6, "error-event=0.5/ok", every, right},
	{"stall", 6, "stall=0.5/ok", every, right},
	{"silence", 4, "hang/ok", every, right},
	{"headers, then silence", 4, "headers-hang/ok", every, right},
	{"half an answer", 5, "half-json/ok", every, right},
	{"too large a Content-Length", 5, "short/ok", every, right},
	{"too small a Content-Length", 6, "over/ok", loose, right},
	{"two answers", 12, "twice/ok", loose, right},
	{"no body", 5, "empty/ok", every, right},
	{"role only", 5, "role-only/ok", every, right},
	{"empty answer", 5, "empty-answer/ok", every, right},
	{"only reasoning", 5, "reason,empty-answer/ok", newer, right},
	{"no finish reason", 5, "no-finish/ok", stream, right},

	{"refused parameter", 8, "no-param=temperature", every, right},
	{"renamed parameter", 8, "no-param=max_tokens", every, right},
	{"output limit", 8, "max-out=900", newer, right},
	{"overflow", 1000, "ctx=9000", long, right}, // every long request, so that what is learnt is true

	{"call in one chunk", 8, "call=whole", call | stream, right},
	{"call without index", 8, "call=no-index", call | stream, right},
	{"name on each chunk", 8, "call=names", call | stream, right},
	{"arguments as an object", 8, "call=object", call, right},
	{"call beside the delta", 8, "call=message/ok", call | stream, right},
	{"leaked call", 10, "leak", call, right},
	{"arguments cut off", 8, "args=%7B%22city%22%3A%22/ok", call, right},
	{"arguments that are none", 8, "args=nothing+of+the+kind/ok", call, right},
	{"another tool", 8, "tool=no_such_tool/ok", call, right},
	{"rejected call", 6, "400,code=tool_use_failed,msg=Failed+to+call+a+function/ok", call, right},

	{"refused", 4, "400,code=invalid_value,msg=No", every, fails},
	{"filtered", 3, "content-filter", every, fails},
	{"fails for ever", 2, "503", every, fails},
}

// suits says whether a request has what a fault needs.
func (f *fault) suits(has need) bool {
	return f.needs&^has == 0 && has&(long|loose) == f.needs&(long|loose)
}

// pick chooses a fault that suits, by weight.
func pick(r *rand.Rand, has need) *fault {
	total := 0
	for i := range faults {
		if faults[i].suits(has) {
			total += faults[i].weight
		}
	}
	for n, i := r.IntN(total), 0; ; i++ {
		if f := &faults[i]; f.suits(has) {
			if n -= f.weight; n < 0 {
				return f
			}
		}
	}
}

// plan is what a request is to be answered with, and how it fails before.
type plan struct {
	id, nonce string
	fault     *fault
	steps     []string
	asked     atomic.Int64 // attempts that have reached the upstream
	text      string
	call      *toolCall
}

// newPlan makes the answer to a request: a call of the tool, or a text.
func newPlan(id, nonce string, f *fault, tool string, size int) *plan {
	p := &plan{id: id, nonce: nonce, fault: f}
	content := fmt.Sprintf("text=%s,bytes=%d", nonce, size)
	if tool != "" {
		p.call = &toolCall{Name: tool, Arguments: fmt.Sprintf(`{"city":%q}`, id)}
		content = "tool=" + tool + ",args=" + url.QueryEscape(p.call.Arguments)
	} else {
		p.text = upstreamtest.TextOf(id, nonce, size)
	}
	for s := range strings.SplitSeq(f.steps, "/") {
		step, times, repeated := strings.Cut(s, "x")
		n := 1
		if k, err := strconv.Atoi(times); repeated && err == nil {
			n = k
		} else {
			step = s
		}
		for range n {
			p.steps = append(p.steps, content+","+step)
		}
	}
	return p
}

// next is the model's name with the script of the next attempt.
func (p *plan) next() string {
	k := min(p.asked.Add(1), int64(len(p.steps))) - 1
	return p.id + "@" + p.steps[k]
}

// upstreams answer the plans of requests. They are one scripted upstream behind several listeners.
type upstreams struct {
	mu    sync.Mutex
	plans map[string]*plan

	mixed atomic.Int64 // requests with what belongs to two clients
	last  atomic.Pointer[string]
}

func (u *upstreams) add(p *plan) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.plans[p.id] = p
}

func (u *upstreams) remove(p *plan) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.plans, p.id)
}

var (
	nonces = regexp.MustCompile(`nonce-[0-9a-f]{10}`)
	ids    = regexp.MustCompile(`nonce-[0-9a-f]{10}\.[0-9]+`)
)

// foreign is the first nonce in a text that is not the one it belongs to.
func foreign(text, nonce string) string {
	for _, n := range nonces.FindAllString(text, -1) {
		if n != nonce {
			return n
		}
	}
	return ""
}

// rename finds the plan of a request: it is the latest of its client that stands in it.
func (u *upstreams) rename(model, credential, body string) string {
	id, at := "", -1
	for _, found := range ids.FindAllString(body, -1) {
		_, number, _ := strings.Cut(found, ".")
		if n, err := strconv.Atoi(number); err == nil && n > at {
			id, at = found, n
		}
	}
	nonce, _, _ := strings.Cut(id, ".")
	if id == "" { // the summary of what a client said before
		nonce = nonces.FindString(body)
	}
	if other := foreign(body+credential, nonce); other != "" {
		u.mixed.Add(1)
		what := "a request of " + nonce + " has " + other + ":\n" + body
		u.last.CompareAndSwap(nil, &what)
	}
	u.mu.Lock()
	p := u.plans[id]
	u.mu.Unlock()
	if p == nil {
		return "aside" // the summary of what is over, or of a client that has left
	}
	return p.next()
}
