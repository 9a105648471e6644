package transcript

import (
	"fmt"
	"slices"
	"sync"
	"testing"
)

// What clients write around a call does not change what it is, and of what
// stands twice the last counts.
func TestOddCalls(t *testing.T) {
	for calls, want := range map[string]string{
		`[]`:                             "[]",
		`[{"id":"a","function":null}]`:   "[a||]",
		`[{"id":"a","id":"b","x":[{}]}]`: "[b||]",
		`[{"id":null,"function":{"name":"f","arguments":{"k":"]}"}}}]`:                                        `[|f|{"k":"]}"}]`,
		`[{"function":null,"custom":{"name":"c","input":"x"}}]`:                                               "[||]",
		`[{"custom":{"name":"c","input":"x","arguments":"y"},"function":{"name":"f","input":"z"}}]`:           "[|f|]",
		`[{"custom":{"name":"c","input":"x","arguments":"y"}}]`:                                               "[|c|x]",
		`[{"function":{"name":"f","arguments":"a"},"id":"i","function":{"name":"g"}}]`:                        "[i|g|]",
		`[{"function":{"name":"f","name":"\u0067","arguments":"a","arguments":"b"}},{"function":{"name":5}}]`: "[|g|b ||]",
	} {
		b, err := Parse([]byte(`{"messages":[{"role":"assistant","tool_calls":`+calls+`}]}`), Chat, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range b.Messages()[0].ToolCalls() {
			got = append(got, c.ID+"|"+c.Name+"|"+c.Text())
			if c.Arguments != nil && string(b.Raw()[c.Span.Start:c.Span.End]) != string(c.Arguments) {
				t.Errorf("%s: arguments at %+v", calls, c.Span)
			}
		}
		if got := fmt.Sprint(got); got != want {
			t.Errorf("%s: %s, want %s", calls, got, want)
		}
	}
}

func TestCallsAtOnce(t *testing.T) {
	b, err := Parse(samples(t)["pi.json"], Chat, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	read := func() (names []string) {
		for _, m := range b.Messages() {
			for _, c := range m.ToolCalls() {
				names = append(names, c.ID, c.Name, c.Text())
			}
		}
		return names
	}
	var wg sync.WaitGroup
	got := make([][]string, 4)
	for i := range got {
		wg.Go(func() { got[i] = read() })
	}
	wg.Wait()
	for _, names := range got {
		if want := read(); len(want) == 0 || !slices.Equal(names, want) {
			t.Errorf("%q, want %q", names, want)
		}
	}
}
