package inspect

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

var corpora = []string{"corpus.jsonl", "blind.jsonl", "blind2.jsonl", "blind3.jsonl", "round4.jsonl", "round5.jsonl", "round6.jsonl",
	"round7.jsonl", "round8.jsonl", "round9.jsonl"}

// padding is text of that many bytes with nothing in it.
func padding(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "\tif err := s.run(ctx, %d); err != nil {\n\t\treturn \"é\" + err\n\t}\n", i)
	}
	return b.String()[:n]
}

// eachVariant calls fn with every row as a call may have printed it within a longer text.
func eachVariant(t *testing.T, calls []recovery.ToolResult, fn func(r recovery.ToolResult)) {
	t.Helper()
	long, window, lines := padding(5000), padding(headWindow+tailWindow), "a:\n\n\t\tb\n  \n│ \nc d\r\ne\n}\n12\nxyz"
	for _, name := range corpora {
		for n, row := range rows(t, name) {
			contents := []string{row.Content + "\n" + long, long + "\n" + row.Content, "x\n" + row.Content + "\n" + long, " \n\t" + row.Content + long + "\n \n",
				row.Content + strings.Repeat("\n12", 20), long + "\x1b[0m\n" + row.Content, row.Content + "\n" + strings.Repeat("\x1b[31m", 1000), row.Content + "\n" + window,
				row.Content, row.Content + "\n" + lines, "see\n" + row.Content, "see a.go\n" + lines + "\n" + row.Content, strings.ToLower(row.Content) + "\n\n" + lines}
			for i, r := range calls {
				r.Content = contents[(n+3*i)%len(contents)]
				fn(r)
			}
		}
	}
}

// A glance says what reading says.
func TestGlance(t *testing.T) {
	glances := 0
	calls := []recovery.ToolResult{{Tool: "read_file", Arguments: `{"path":"a.go"}`}, {Tool: "web_fetch"}}
	eachVariant(t, calls, func(r recovery.ToolResult) {
		body := parsed(t, request(said("user", "x"), called(1, r.Tool, r.Arguments), answered(1, r.Content)))
		s := &readHistory(body).last().steps[0]
		if !s.glance() {
			return
		}
		glances++
		r.Index, r.CallID = 2, "call_1"
		if want := Judge(r); s.verdict != want {
			t.Errorf("%q: a glance says %+v, reading %+v", r.Content[:100], s.verdict, want)
		}
		if text := s.essence().text; s.least > len(text) && len(text) < headWindow {
			t.Errorf("%q has %d bytes, not %d", text[:100], len(text), s.least)
		}
	})
	if glances < 500 {
		t.Errorf("only %d glances were enough", glances)
	}
}

// What is left out of data's lines changes no verdict.
func TestDataLines(t *testing.T) {
	short := 0
	calls := []recovery.ToolResult{{Tool: "read_file"}, {Tool: "fetch", Arguments: `{"command":"cat a.go"}`}, {Tool: "bash", Arguments: `{"command":"cat a.go"}`}}
	eachVariant(t, calls, func(r recovery.ToolResult) {
		v := *open(r)
		all := v
		v.split()
		if all.lines = textLines(nil, all.text); v.stderr >= 0 || len(v.lines) == len(all.lines) {
			return
		}
		short++
		if got, want := v.judge(), all.judge(); got != want {
			t.Errorf("%s %q: %+v, from all lines %+v", r.Tool, r.Content[:min(len(r.Content), 100)], got, want)
		}
	})
	if short < 1000 {
		t.Errorf("only %d results were read in part", short)
	}
}

// A probe is in every encoding of its text.
func TestProbe(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"func ", "\n", "\t", `"`, `\`, "é", "\x1b", "\u2028", "error: x", "12345", "<&>", `\n`, `\u0041`, "0x", "a_b.c(d, e)=f"}
	found := 0
	for range 5000 {
		var b strings.Builder
		for range rnd.IntN(40) {
			b.WriteString(pieces[rnd.IntN(len(pieces))])
		}
		text := b.String()
		json := transcript.String(text)
		twice := transcript.String(string(json))
		for _, p := range [][]byte{newProbe(text), newProbe(json[1 : len(json)-1])} {
			if p == nil {
				continue
			}
			found++
			if !strings.Contains(text, string(p)) || !bytes.Contains(json, p) || !bytes.Contains(twice, p) {
				t.Fatalf("%q of %q", p, text)
			}
		}
	}
	if found < 1000 {
		t.Errorf("only %d probes", found)
	}
}

// What is surely new at sight is new when all is read.
func TestSurelyNew(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	sure, unsure := 0, 0
	for range 600 {
		var results []string
		for range 2 + rnd.IntN(6) {
			results = append(results, []string{"No matches found", "", "a.go", padding(100 + rnd.IntN(300)), padding(4000 + rnd.IntN(3000)), `{"error":"E404","status":404}`}[rnd.IntN(6)])
		}
		list := []string{said("user", "x")}
		for k := range 14 + rnd.IntN(6) {
			tool := []string{"read_file", "grep", "bash"}[rnd.IntN(3)]
			result := results[rnd.IntN(len(results))]
			if rnd.IntN(8) == 0 {
				result += fmt.Sprintf("\nsomething new, number %d\n", k)
			}
			if tool == "bash" && rnd.IntN(2) == 0 {
				result = fmt.Sprintf("Exit code: 0\nWall time: %d.1 seconds\nOutput:\n", k) + result
			}
			list = append(list, called(k, tool, fmt.Sprintf(`{"n":%d,"command":"cat f"}`, rnd.IntN(3))), answered(k, result))
		}
		b := parsed(t, request(list...))
		h := readHistory(b)
		n, steps := len(h.turns)-1, minNoProgress
		if !h.surelyNew(0, n, steps) {
			unsure++
			continue
		}
		sure++
		if count, _ := readHistory(b).idle(0, n); count >= steps {
			t.Errorf("%d idle turns at the end of %s", count, b.Raw())
		}
	}
	if sure < 50 || unsure < 50 {
		t.Errorf("sure of %d, not of %d", sure, unsure)
	}
}

// A stage says of each request what it says of that request alone, whatever it
// read before and at the same time.
func TestStageIsShared(t *testing.T) {
	var bodies []*transcript.Body
	for _, text := range []string{listing, notFound, times(3, notFound), listing + times(2, booking), times(2, "\n< I will read the code.\n> continue"), times(70, notFound+listing)} {
		bodies = append(bodies, script(t, text))
	}
	bodies = append(bodies, parsed(t, longSession(sourceText)), parsed(t, longSession(func(int) string { return sourceText(0) })))
	prepare := func(s *Stage, b *transcript.Body) string {
		x := &recovery.Exchange{Body: b, Mode: recovery.ModeAct}
		if err := s.Prepare(t.Context(), x); err != nil {
			t.Error(err)
		}
		failure := recovery.ToolFailure{}
		if x.Turn.Failure != nil {
			failure = *x.Turn.Failure
		}
		x.Turn.Failure = nil
		return fmt.Sprintf("%+v %+v %+v %+v", x.Results, x.Turn, failure, x.Loops)
	}
	want := make([]string, len(bodies))
	for i, b := range bodies {
		want[i] = prepare(NewStage(Defaults(), RulesForTests(), quiet{}), b)
	}
	s := NewStage(Defaults(), RulesForTests(), quiet{})
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for n := range 10 * len(bodies) {
				i := (n*(2*g+1) + g) % len(bodies)
				if got := prepare(s, bodies[i]); got != want[i] {
					t.Errorf("body %d: %s, alone %s", i, got, want[i])
				}
			}
		})
	}
	all.Wait()
}

// Rules that match no line, and texts without anything volatile, cost no allocation:
// a request may have thousands of failures.
func TestNothingFoundAllocatesNothing(t *testing.T) {
	const text = "make: nothing to be done for a target that is not there"
	v := open(recovery.ToolResult{Tool: "bash", Content: text + "\nError: no such file or directory: a.txt"})
	v.split()
	for name, f := range map[string]func(){
		"rules":     func() { v.first(1, quotations); v.first(1, noError) },
		"normalise": func() { normalise(text) },
	} {
		if n := testing.AllocsPerRun(100, f); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
