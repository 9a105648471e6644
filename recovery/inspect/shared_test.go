package inspect

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

var corpora = []string{"first", "blind", "blind2", "blind3", "round4", "round5", "round6", "round7", "round8", "round9"}

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
	list := rounds(t)
	for _, name := range corpora {
		for n, row := range list[name] {
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

// A stage says of each request what it says of that request alone, whatever it
// read before and at the same time.
func TestStageIsShared(t *testing.T) {
	var bodies []*transcript.Body
	for _, text := range []string{listing, notFound, times(3, notFound), listing + times(2, booking), times(2, "\n< I will read the code.\n> continue"), times(70, notFound+listing)} {
		bodies = append(bodies, script(t, text))
	}
	bodies = append(bodies, parsed(t, longSession(sourceText)), parsed(t, longSession(func(int) string { return sourceText(0) })))
	prepare := func(s *Stage, b *transcript.Body) string {
		x := &recovery.Exchange{Request: recovery.Request{Body: b, Mode: recovery.ModeAct}}
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
