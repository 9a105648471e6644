package stream

import (
	"context"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// breaking is a mender one part of which breaks; the others work.
type breaking string

func (m breaking) at(part string) {
	if string(m) == part {
		panic("out of range")
	}
}

func (m breaking) Holds(*transcript.Body) recovery.Hold {
	m.at("holds")
	return recovery.Hold{Calls: true}
}

func (m breaking) Watch(*transcript.Body, int) recovery.Watch {
	m.at("watch")
	return breakingWatch(m)
}

func (m breaking) Lookout(*transcript.Body) recovery.Lookout {
	m.at("lookout")
	return breakingLookout(m)
}

func (m breaking) Mend(*transcript.Body, recovery.Draft) recovery.Verdict {
	m.at("mend")
	return recovery.Verdict{}
}

type breakingWatch string

func (w breakingWatch) Feed(recovery.Part, []byte) bool {
	breaking(w).at("feed")
	return false
}

type breakingLookout string

func (l breakingLookout) Free(text string) int {
	breaking(l).at("free")
	return len(text)
}

// TestMenderBreaks: where the judging of an answer breaks, the client gets what
// the upstream sent, and it is told once.
func TestMenderBreaks(t *testing.T) {
	calls := one.call() + one.finish("tool_calls") + one.usage() + end
	odd := one.calls(`{"id":"t1","function":{"name":"f","arguments":{}}}`) + one.finish("tool_calls") + end
	message := `{"content":"So.","reasoning":"hm","tool_calls":[{"id":"a","function":{"arguments":"{}","name":"ls"}}]}`
	for _, part := range []string{"holds", "watch", "lookout", "feed", "free", "mend"} {
		for name, c := range map[string]struct {
			body  string
			whole bool
		}{
			"calls": {one.role() + calls, false}, "after text": {one.role() + one.reason("hm") + one.words("I will ") + calls, false},
			"one message":                           {wholeOf(message, "tool_calls"), true},
			"calls that would be put together anew": {one.role() + odd, false},
		} {
			if name == "calls that would be put together anew" && (part == "feed" || part == "free") {
				continue // the watch alone broke: the rest is mended
			}
			t.Run(part+"/"+name, func(t *testing.T) {
				x := newExchange()
				var told []string
				serve := func(change ...func(*Options)) *Broken { return x.serve(strings.NewReader(c.body), change...) }
				if c.whole {
					serve = func(change ...func(*Options)) *Broken { return x.whole(c.body, change...) }
				}
				broken := serve(mended(t, breaking(part)), func(o *Options) { o.Broke = func(cause string) { told = append(told, cause) } })
				if broken != nil || x.got() != c.body {
					t.Errorf("%+v\ngot  %q\nwant %q", broken, x.got(), c.body)
				}
				if len(told) != 1 || told[0] != "the gateway's mender broke: out of range" {
					if !((c.whole || name == "calls" && part == "free") && (part == "holds" || part == "lookout" || part == "free") && len(told) == 0) { // a whole answer is not asked about
						t.Errorf("told %q", told)
					}
				}
			})
		}
	}
	t.Run("for a continuation", func(t *testing.T) { // of which the client has all the text: an end without a call is none
		x := newExchange()
		x.sink.Begin(200, nil)
		if err := x.sink.Write(Piece{Bytes: []byte(one.words("I will ")), Released: recovery.ReleasedText, Text: "I will "}); err != nil {
			t.Fatal(err)
		}
		rest := func(o *Options) { o.Resume = &recovery.Resume{Sent: "I will ", Calls: true} }
		if broken := x.serve(strings.NewReader(two.role()+two.words("No. ")+two.finish("stop")+end), mended(t, breaking("mend")), rest); broken == nil || !broken.Diverged {
			t.Errorf("without a call: %+v", broken)
		}
		if broken := x.serve(strings.NewReader(two.role()+two.call()+two.finish("tool_calls")+end), mended(t, breaking("mend")), rest); broken != nil || x.read().calls != 1 {
			t.Errorf("with a call: %+v, %q", broken, x.got())
		}
	})
}

// TestAssemblyBreaks: calls that cannot even be read go on as they come.
func TestAssemblyBreaks(t *testing.T) {
	x := newExchange()
	told := 0
	body := one.role() + one.words("I will ") + one.calls(`{"index":0,"id":"a","function":{"name":"l"}}`) +
		one.calls(`{"index":0,"function":{"name":"s","arguments":"{}"}}`) + one.finish("tool_calls") + end
	a, broken := Open(respond(strings.NewReader(body)), x.options(mended(t, judging(nil)), func(o *Options) { o.Broke = func(string) { told++ } }))
	if broken != nil {
		t.Fatal(broken)
	}
	a.h.calls.known = func(string) bool { panic("no such list") }
	if broken := a.Deliver(context.Background()); broken != nil || x.got() != body || told != 1 {
		t.Errorf("%+v, told %d times\ngot  %q\nwant %q", broken, told, x.got(), body)
	}
}
