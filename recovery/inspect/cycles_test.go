package inspect

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
)

// rise writes a call and a result for each of n numbers, which replace each # in both.
func rise(from, by, n int, call, result string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll("\n! "+call+"\n= "+result, "#", fmt.Sprint(from+i*by)))
	}
	return b.String()
}

// found is the loops of a history in short.
func found(loops []recovery.Loop) (out string) {
	for _, l := range loops {
		out += fmt.Sprint(l.Kind, " ", l.Count, " ", l.Tools)
	}
	return out
}

func TestCycles(t *testing.T) {
	const (
		a      = "\n! a {}\n= one\\ntwo"
		b      = "\n! b {}\n= Error: bad thing\\nfar too bad"
		c      = "\n! c {}\n= three"
		d      = "\n! d {}\n= four"
		paused = "\n! wait {\"seconds\":5}\n="
	)
	edit := func(n int) string { return fmt.Sprintf("\n! edit {\"p\":%d}\n= ok", n) }
	for _, tc := range []struct{ name, text, want string }{
		{"of three", times(2, a+b+c), "cycle 2 [a b c]"},
		{"of three, third time", d + times(3, a+b+c), "cycle 3 [a b c]"},
		{"half of a third time", times(2, a+b+c) + a + b, "cycle 2 [c a b]"},
		{"of four", times(2, a+b+c+d), "cycle 2 [a b c d]"},
		{"one call with two by turns", times(3, a+b+a+c), "cycle 3 [a b c]"},
		{"not yet", a + b + c + a + b, ""},
		{"of five", times(2, a+b+c+d+listing), ""},
		{"two are an alternation", times(4, a+b), "alternation 4 [a b]"},
		{"one result is another", a + b + c + a + b + "\n! c {}\n= other", ""},
		{"another order", a + b + c + b + a + c, ""},
		{"another edit before the same checks", edit(1) + a + b + c + edit(2) + a + b + c + edit(3) + a + b + c, ""},
		{"the same edit before the same checks", times(3, edit(1)+a+b), "cycle 3 [edit a b]"},
		{"a person between", a + b + c + "\n> again" + a + b + c, ""},
		{"a person within", a + b + c + a + "\n> again" + b + c, ""},
		{"a reminder between", times(2, a+b+"\n> [reminder] keep the list of tasks up to date"+c+"\n> [reminder] keep the list of tasks up to date"), ""},
		{"polls with a pause", times(4, polled+a+paused), ""},
		{"polls, twice", times(2, polled+a+b), ""},
		{"polls without a pause", times(3, polled+a+b), ""},
		{"a network failure, twice", times(2, refused+a+c), "cycle 2 [fetch a c]"},
		{"a network failure, three times", times(3, refused+a+c), "cycle 3 [fetch a c]"},
		{"gestures", times(4, "\n! browser_press_key {\"key\":\"Tab\"}\n= ok"+a+c), ""},
		{"the same calls in one turn", "! a {}\n& c {}\n& a {}\n& c {}\n= one\n= three\n= one\n= three", ""},
		{"an answer in each round", times(2, a+b+"\n< All is well."), ""},
	} {
		if got := found(Loops(script(t, tc.text))); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

// How a client spells the calls does not matter.
func TestCyclesAreReadAnyHow(t *testing.T) {
	for _, tc := range []struct{ first, second string }{
		{`{"path":"café/möbel.txt","deep":true}`, `{ "deep": true, "path" : "café/möbel.txt" }`},
		{`{"command":"grep -rn 'naïve approach' src\\n"}`, `{"command": "grep -rn 'naïve approach' src\\n"}`},
	} {
		list := []string{said("user", "Do it.")}
		for i, tool := range []string{"a", "b", "c", "a", "b", "c"} {
			arguments := tc.first
			if i > 2 {
				arguments = tc.second
			}
			list = append(list, called(i, tool, arguments), answered(i, "what "+tool+" says"))
		}
		body := string(request(list...))
		ascii := strings.NewReplacer("é", `\u00e9`, "ö", `\u00f6`, "ï", `\u00ef`).Replace(body)
		for _, raw := range []string{body, ascii} {
			if got := found(Loops(parsed(t, []byte(raw)))); got != "cycle 2 [a b c]" {
				t.Errorf("%q in %s", got, raw)
			}
		}
	}
}

func TestCounters(t *testing.T) {
	items := strings.Repeat("item ", 60)
	for _, tc := range []struct{ name, text, want string }{
		{"longer limits", rise(30, 30, 4, `bash {"command":"timeout # make"}`, `Error: Command timed out after # seconds\n\nCommand exited with code 124`), "counter 4 [bash]"},
		{"three empty pages", rise(17, 1, 3, `orders {"page":#}`, "[]"), ""},
		{"pages that differ", rise(3, 1, 6, `list_orders {"page":#}`, items+"#x"), ""},
		{"the same page", times(4, rise(3, 1, 1, `list_orders {"page":#}`, "[]")), "same_result 4 [list_orders]"},
		{"pages in falling order", rise(9, -1, 5, `list_orders {"page":#}`, "[]"), ""},
		{"pages of two lists", times(2, rise(3, 1, 1, `orders {"of":"a","page":#}`, "[]")+rise(4, 1, 1, `orders {"of":"b","page":#}`, "[]")), "alternation 2 [orders]"},
		{"a number and a word", rise(3, 1, 2, `orders {"of":"a","page":#}`, "[]") + rise(5, 1, 2, `orders {"of":"b","page":#}`, "[]"), ""},
		{"a tool that waits", rise(5, 1, 6, `wait {"seconds":#}`, ""), ""},
		{"sleeps before a look", rise(5, 5, 5, `bash {"command":"sleep # && gh run view 7"}`, "in_progress"), ""},
		{"looks between sleeps", times(1, rise(5, 1, 1, `bash {"command":"sleep #"}`, "")+polled+rise(6, 1, 1, `bash {"command":"sleep #"}`,
			"")+polled+rise(7, 1, 1, `bash {"command":"sleep #"}`, "")+polled+rise(8, 1, 1, `bash {"command":"sleep #"}`, "")), ""},
		{"names that are not there", rise(96, 1, 4, `get_user {"id":"u#"}`, "Error: user u# not found"), ""},
		{"the same answer about others", rise(6, 1, 6, `get_order {"id":#}`, `{"state":"done","notes":[]}`), ""},
		{"what only tells its number", rise(6, 1, 6, `bash {"command":"sed -n #p numbers"}`, "#"), ""},
		{"writes", rise(6, 1, 6, `create_user {"n":#}`, `{"ok":true,"errors":[]}`), ""},
		{"no trouble on each page", rise(6, 1, 6, `lint {"page":#}`, `{"page":#,"errors":[]}`), ""},
		{"no trouble on each page, in words", rise(6, 1, 6, `lint {"page":#}`, `No issues found.`), ""},
		{"a value that is a word", rise(6, 1, 6, `get_discount {"id":#}`, `none`), ""},
		{"deleted pages", rise(6, 1, 6, `delete_page {"page":#}`, `{"deleted":true,"left":[]}`), ""},
		{"seeds", rise(6, 1, 6, `bash {"command":"./fuzz --seed #"}`, `no crash`), ""},
		{"tests by number", rise(6, 1, 5, `bash {"command":"./check #"}`, `FAILED\n1 failed, 3 passed\n\nCommand exited with code 1`), ""},
		{"days", rise(11, 1, 6, `search_flights {"date":"2025-01-#"}`, "[]"), ""},
		{"since a time", rise(1735689600, 30, 6, `search_events {"start":#}`, "[]"), ""},
		{"a poll that counts", rise(1, 1, 6, `check_job {"page":#}`, `{"status":"running","items":[]}`), ""},
		{"pages of two tools", rise(3, 2, 1, `a {"page":#}`, "[]") + rise(4, 2, 1, `b {"page":#}`, "[]") + rise(5, 2, 1, `a {"page":#}`, "[]") + rise(6, 2, 1, `b {"page":#}`, "[]"), ""},
		{"a wait with longer limits", rise(30, 30, 5, `bash {"command":"kubectl wait --for=condition=ready pod/x --timeout=#s"}`,
			`error: timed out waiting for the condition on pods/x\n\nCommand exited with code 1`), ""},
		{"a person between", rise(17, 1, 2, `orders {"page":#}`, "[]") + "\n> go on to the end" + rise(19, 1, 2, `orders {"page":#}`, "[]"), ""},
		{"in one turn", "! orders {\"page\":1}\n& orders {\"page\":2}\n& orders {\"page\":3}\n& orders {\"page\":4}\n= []\n= []\n= []\n= []", ""},
		{"gestures", rise(100, 100, 6, `scroll {"start":#}`, "ok"), ""},
	} {
		if got := found(Loops(script(t, tc.text))); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}
