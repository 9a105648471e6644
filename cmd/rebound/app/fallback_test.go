//go:build unix

package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

// An operator may show clients that a fallback answers, beside the answer and never in it. By default nothing
// shows it.
func TestFallbackVisible(t *testing.T) {
	t.Parallel()
	up := upstreamtest.New(upstreamtest.Options{}).Start(t)
	const comment = ": a fallback answers: default/spare\n"
	for visible, more := range map[bool]string{false: "", true: "fallback: {visible: true}"} {
		g := launch(t, text(up, modelMap("m", "default down@404", "default spare"), more))
		for _, streamed := range []bool{false, true} {
			r := g.must(chat("m", streamed, ""))
			if got := r.header.Get("X-Rebound-Fallback") == "default/spare"; got != visible {
				t.Errorf("visible %v, streamed %v: header %q", visible, streamed, r.header.Get("X-Rebound-Fallback"))
			}
			if got := strings.Contains(string(r.body), comment); got != (visible && streamed) {
				t.Errorf("visible %v, streamed %v: comment %v", visible, streamed, got)
			}
			if !strings.HasPrefix(r.target(), "default/spare") || r.answerText() == "" || strings.Contains(r.answerText(), "fallback") {
				t.Errorf("the answer: %v", r)
			}
		}
		if r := g.must(chat("spare", true, "")); r.header.Get("X-Rebound-Fallback") != "" || strings.Contains(string(r.body), comment) {
			t.Error("a model without a fallback has one")
		}
	}
}

// A session that stays at a fallback after a failover is still answered by a fallback, although it is asked first.
func TestPinnedFallbackVisible(t *testing.T) {
	t.Parallel()
	up := upstreamtest.New(upstreamtest.Options{}).Start(t)
	g := launch(t, text(up, modelMap("m", "default down@503", "default spare"), "fallback: {visible: true}"))
	for _, attempts := range []string{"3", "1"} {
		r := g.must(history.body())
		if got := r.header.Get("X-Rebound-Fallback"); got != "default/spare" || r.attempts() != attempts {
			t.Errorf("attempt %s is the fallback's: header %q, %v", attempts, got, r)
		}
	}
	if m := g.metrics(); !strings.Contains(m, `rebound_fallback_total{model="m",upstream="default"} 2`) {
		t.Error("the second answer of the fallback is not counted")
	}
}

// What only a fallback refuses is not the client's answer, nor explained to its user. The outage of the first target is
// waited for as without that fallback, also if the fallback's credential or model is at fault, or its limit lasts long.
func TestOnlyFallbackRefuses(t *testing.T) {
	t.Parallel()
	up := upstreamtest.New(upstreamtest.Options{}).Start(t)
	const refuses = "@400,code=bad,msg=the+request+is+bad"
	config := "models: {"
	down := map[string]int{"503": http.StatusServiceUnavailable, "reset": http.StatusBadGateway}
	for how := range down {
		for _, first := range []string{"down@" + how, "brief@" + how + "x4/ok"} {
			config += fmt.Sprintf("%q: {targets: [{upstream: default, model: %[1]q}, {upstream: two, model: %q}]}, ", first, first[:2]+how+refuses)
		}
	}
	others := []string{"401", "402", "403", "404", "429,retry-after=3600", "503,retry-after=3600"}
	for i, fails := range others {
		config += fmt.Sprintf("\"other%d\": {targets: [{upstream: default, model: \"brief%d@503x4/ok\"}, {upstream: two, model: \"spare@%s\"}]}, ", i, i, fails)
	}
	g := launch(t, text(up, config+"}"))
	for i, fails := range others {
		k := history
		k.model = fmt.Sprint("other", i)
		if r := g.ask(t.Context(), k.body()); !r.ok() || !strings.HasPrefix(r.target(), "default/brief") {
			t.Errorf("an outage that ends is not waited for, as the fallback answers %s: %v", fails, r)
		}
	}
	for how, status := range down {
		k := history
		k.model = "down@" + how
		for _, asked := range []string{"first", "while its breaker is open"} {
			if r := g.ask(t.Context(), k.body()); r.status != status || r.target() != "default/"+k.model {
				t.Errorf("%s: the answer is not the first target's: %v", asked, r)
			}
		}
		k.model = "brief@" + how + "x4/ok"
		if r := g.must(k.body()); r.target() != "default/"+k.model || r.attempts() != "6" {
			t.Errorf("an outage that ends is not waited for: %v", r)
		}
	}
	alone := history
	if alone.model = "alone" + refuses + "/ok"; g.must(alone.body()).recovery() != "explain" {
		t.Error("without a fallback nothing is explained")
	}
}

// Targets of one rank stand in for each other, whichever of them a conversation gets first.
func TestEqualRanksStandIn(t *testing.T) {
	t.Parallel()
	up := upstreamtest.New(upstreamtest.Options{}).Start(t)
	for _, order := range [][]string{{"down@404", "spare"}, {"spare", "down@404"}} {
		g := launch(t, text(up, fmt.Sprintf("models: {m: {targets: [{upstream: default, model: %q, rank: 0}, {upstream: default, model: %q, rank: 0}]}}", order[0], order[1])))
		moved := 0
		for i := range 16 {
			k := history
			k.messages = append([]string{user(fmt.Sprint("Task ", i))}, k.messages...)
			r := g.ask(t.Context(), k.body())
			if !r.ok() {
				t.Errorf("%v: conversation %d: %v", order, i, r)
			}
			if r.attempts() != "1" {
				moved++
			}
		}
		if moved == 0 || moved == 16 {
			t.Errorf("%v: %d conversations began at the target that is down: the test shows nothing", order, moved)
		}
	}
}
