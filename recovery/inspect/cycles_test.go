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
		{"a rule of a business", times(3, booking+a+c), "cycle 3 [book a c]"},
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
		{"empty pages", rise(17, 1, 4, `orders {"page":#}`, `{"items":[],"page":#}`), "counter 4 [orders]"},
		{"three empty pages", rise(17, 1, 3, `orders {"page":#}`, "[]"), ""},
		{"more of them", rise(17, 1, 7, `orders {"q":"x","page":#}`, "No results found."), "counter 7 [orders]"},
		{"pages behind full ones", rise(1, 1, 3, `orders {"page":#}`, "order # of many") + rise(4, 1, 4, `orders {"page":#}`, "[]"), "counter 4 [orders]"},
		{"the last page for each", rise(3, 1, 4, `list_orders {"page":#}`, items), "counter 4 [list_orders]"},
		{"pages that differ", rise(3, 1, 6, `list_orders {"page":#}`, items+"#x"), ""},
		{"the same page", times(4, rise(3, 1, 1, `list_orders {"page":#}`, "[]")), "same_result 4 [list_orders]"},
		{"pages in falling order", rise(9, -1, 5, `list_orders {"page":#}`, "[]"), ""},
		{"pages of two lists", times(2, rise(3, 1, 1, `orders {"of":"a","page":#}`, "[]")+rise(4, 1, 1, `orders {"of":"b","page":#}`, "[]")), "alternation 2 [orders]"},
		{"a number and a word", rise(3, 1, 2, `orders {"of":"a","page":#}`, "[]") + rise(5, 1, 2, `orders {"of":"b","page":#}`, "[]"), ""},
		{"sleeps", rise(5, 1, 4, `bash {"command":"sleep #"}`, "(no output)"), "counter 4 [bash]"},
		{"a tool that waits", rise(5, 1, 6, `wait {"seconds":#}`, ""), ""},
		{"sleeps before a look", rise(5, 5, 5, `bash {"command":"sleep # && gh run view 7"}`, "in_progress"), ""},
		{"looks between sleeps", times(1, rise(5, 1, 1, `bash {"command":"sleep #"}`, "")+polled+rise(6, 1, 1, `bash {"command":"sleep #"}`,
			"")+polled+rise(7, 1, 1, `bash {"command":"sleep #"}`, "")+polled+rise(8, 1, 1, `bash {"command":"sleep #"}`, "")), ""},
		{"behind the end of a file", rise(2001, 60, 4, `read {"path":"a.go","offset":#}`, "Error: Offset # is beyond end of file (1900 lines total)"), "counter 4 [read]"},
		{"a range behind the end", "! bash {\"command\":\"sed -n '61,120p' a\"}\n=\n! bash {\"command\":\"sed -n '121,180p' a\"}\n=\n! bash " +
			"{\"command\":\"sed -n '181,240p' a\"}\n=\n! bash {\"command\":\"sed -n '241,300p' a\"}\n=", "counter 4 [bash]"},
		{"ids that are not there", rise(96, 1, 4, `get_user {"id":#}`, "Error: user # not found"), "counter 4 [get_user]"},
		{"names that are not there", rise(96, 1, 4, `get_user {"id":"u#"}`, "Error: user u# not found"), ""},
		{"files that are not there", rise(6, 1, 4, `bash {"command":"cat logs/#.txt"}`, `cat: logs/#.txt: No such file or directory\n\nCommand exited with code 1`), "counter 4 [bash]"},
		{"the same answer about others", rise(6, 1, 6, `get_order {"id":#}`, `{"state":"done","notes":[]}`), ""},
		{"what only tells its number", rise(6, 1, 6, `bash {"command":"sed -n #p numbers"}`, "#"), ""},
		{"writes", rise(6, 1, 6, `create_user {"n":#}`, `{"ok":true,"errors":[]}`), ""},
		{"no trouble on each page", rise(6, 1, 6, `lint {"page":#}`, `{"page":#,"errors":[]}`), ""},
		{"no trouble on each page, in words", rise(6, 1, 6, `lint {"page":#}`, `No issues found.`), ""},
		{"nothing, in words", rise(6, 1, 4, `lookup {"seats":#}`, `No direct flights found.`), "counter 4 [lookup]"},
		{"nothing, as a value", rise(6, 1, 4, `get_user {"id":#}`, `null`), "counter 4 [get_user]"},
		{"a value that is a word", rise(6, 1, 6, `get_discount {"id":#}`, `none`), ""},
		{"empty lists of things", rise(6, 1, 4, `get_orders {"user":#}`, `{"orders":[]}`), "counter 4 [get_orders]"},
		{"deleted pages", rise(6, 1, 6, `delete_page {"page":#}`, `{"deleted":true,"left":[]}`), ""},
		{"seeds", rise(6, 1, 6, `bash {"command":"./fuzz --seed #"}`, `no crash`), ""},
		{"tests by number", rise(6, 1, 5, `bash {"command":"./check #"}`, `FAILED\n1 failed, 3 passed\n\nCommand exited with code 1`), ""},
		{"days", rise(11, 1, 6, `search_flights {"date":"2025-01-#"}`, "[]"), ""},
		{"since a time", rise(1735689600, 30, 6, `search_events {"start":#}`, "[]"), ""},
		{"a poll that counts", rise(1, 1, 6, `check_job {"page":#}`, `{"status":"running","items":[]}`), ""},
		{"longer limits", rise(30, 30, 4, `bash {"command":"timeout # make"}`, `Error: Command timed out after # seconds\n\nCommand exited with code 124`), "counter 4 [bash]"},
		{"a rule of a business", rise(5, 1, 5, `book {"max":#}`, "Error: payment does not add up"), "counter 5 [book]"},
		{"the same failure where there is a shell", listing + "\n! bash {\"command\":\"make\"}\n= ok" + rise(5, 1, 5, `book {"max":#}`, "Error: payment does not add up"), "counter 5 [book]"},
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

func TestGrowth(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want string
	}{
		{`{"page":9,}`, `{"page":10,}`, "[page] [1]"}, {`{"maxCount":"5",}`, `{"maxCount":"15",}`, "[max count] [10]"}, {"sleep 0.5", "sleep 1.5", "[sleep] [1]"},
		{`{"start":1,"end":60,}`, `{"start":61,"end":120,}`, "[start] [60 60]"}, {`{"id":1e+06,}`, `{"id":1.000001e+06,}`, "[id] [1]"}, {"ping 10.0.0.9",
			"ping 10.0.0.10", ""}, {"pip install a==1.1.0", "pip install a==1.2.0", ""},
		{"tail -5 a", "tail -9 a", "[tail] [4]"}, {"get ORD-7", "get ORD-8", "[ord] [1]"},
		{"a 1", "a 1", ""}, {"a 2", "a 1", ""}, {"a 1 b", "a 2 c", ""}, {"a 1", "a 2 3", ""}, {"p13", "p14", ""}, {"10:30", "10:31", ""}, {"2025-01-02", "2025-01-03", ""},
		{"10:30", "11:30", ""}, {"2025-01-02", "2026-01-02", ""},
		{"at 1735689600123", "at 1735689660123", ""}, {"1 2 3", "2 3 4", ""}, {"at 1735689600", "at 1735689660", ""}, {"1 5", "2 4", ""},
	} {
		got := ""
		if g, ok := testLists().growthOf(c.a, c.b); ok {
			got = fmt.Sprint(wordsBefore(g.before), " ", g.by)
		}
		if got != c.want {
			t.Errorf("%q, %q: %q, want %q", c.a, c.b, got, c.want)
		}
	}
}
