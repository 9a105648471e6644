package page_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// Where requests are recorded, a request's view shows what was changed on the way to
// the upstream, message by message, and text that is HTML stays text.
func TestBeforeAndAfter(t *testing.T) {
	g, b := start(t, "recording: {key_env: RECORDING}\nmodels: {alias: {targets: [{upstream: default, model: m}]}}\n"), open(t)
	history := fmt.Sprintf(`{"role":"user","content":%q}`, "Read it. "+hostile)
	for i := range 2 { // the second gets a note; one thing is said once, so that later ones may get none
		history += fmt.Sprintf(`,{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"bash","arguments":"{\"command\":\"cat a\"}"}}]},`+
			`{"role":"tool","tool_call_id":"c%d","content":"cat: a: No such file or directory"}`, i, i)
	}
	g.ask(fmt.Sprintf(`{"model":"alias","messages":[%s],"tools":[{"type":"function","function":{"name":"bash","parameters":{"type":"object"}}}]}`, history))
	done := g.done()
	if !strings.Contains(done.Get("recovery").Str, "guidance") {
		t.Fatalf("there is nothing to show: %s", done)
	}
	b.do(chromedp.Navigate(g.url + "/rebound/#request/" + done.Get("request").Str))
	b.await("what was changed", "document.querySelector('.part .item .come')")
	recorded := g.told("recordings/" + done.Get("request").Str)
	before, after := recorded.Get("client.body.messages").Array(), recorded.Get("attempts.0.body.messages").Array()
	for name, want := range map[string]string{
		"[...document.querySelectorAll('.part h3')].map((e) => e.textContent).join()":              "model,messages",
		"[...document.querySelectorAll('.part:first-child .line')].map((e) => e.className).join()": "line gone,line come",
		"document.querySelector('.part:first-child .come').textContent.trim()":                     "m",
	} {
		if got := eval[string](b, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	// The last message was changed, or one was added; the others are folded.
	shown := eval[string](b, "[...document.querySelectorAll('.part .item .come')].map((e) => e.textContent.trimEnd()).join('\\n')")
	told := after[len(after)-1].Get("content").Str
	for _, l := range strings.Split(told, "\n") {
		if l = strings.TrimSpace(l); l != "" && !strings.Contains(shown, l) && !strings.Contains(before[len(before)-1].Raw, l) {
			t.Errorf("the line %q of the note is not shown in %q", l, shown)
		}
	}
	if got, want := eval[string](b, "document.querySelector('.part details summary').textContent"), fmt.Sprint(len(before)); len(after) > len(before) && got != want+" as they were" {
		t.Errorf("folded are %q of %s", got, want)
	}
	_ = eval[any](b, "document.querySelector('.part details summary').click()")
	b.await("the messages that stayed", "document.querySelector('.part details .item')")
	if !eval[bool](b, "document.querySelector('.part details').textContent.includes('<img src=x')") {
		t.Error("the text of the first message is not shown")
	}
	b.nothingRan()

	_ = eval[any](b, "window.confirm = () => true; document.querySelector('[data-key=forget]').click()")
	b.await("that it is deleted", "document.querySelector('main').textContent.includes('nothing is recorded of this request')")
	if why := g.told("recordings/" + done.Get("request").Str).Get("why").Str; !strings.Contains(why, "nothing is recorded") {
		t.Errorf("after it was deleted: %q", why)
	}
}

// The difference of two lists is exact: what is put together of it is both of them.
func TestDifference(t *testing.T) {
	g, b := start(t, ""), open(t)
	b.do(chromedp.Navigate(g.url + "/rebound/"))
	_ = eval[any](b, "void import('/rebound/diff.js').then((m) => { window.diff = m; })")
	b.await("the script", "window.diff")
	for _, c := range []struct{ a, b, want string }{
		{"", "", ""}, {"abc", "abc", "=abc"}, {"", "ab", "-+ab"}, {"ab", "", "-ab+"},
		{"abcd", "axcd", "=a-b+x=cd"}, {"abcabba", "cbabac", "-ab+=c-a+=b-+a=ba-+c"}, {"aaa", "aa", "=aa-a+"}, {"xaby", "xbay", ""},
	} {
		got := eval[string](b, fmt.Sprintf(`(() => { const { compare } = window.diff;
			const [a, b] = [[...%q], [...%q]];
			return compare(a, b).map((r) => r.kind === 'same' ? '=' + a.slice(r.fromA, r.toA).join('') : '-' + a.slice(r.fromA, r.toA).join('') + '+' + b.slice(r.fromB, r.toB).join('')).join(''); })()`, c.a, c.b))
		var left, right strings.Builder
		to := []*strings.Builder{&left, &right}
		for _, r := range got {
			switch r {
			case '=':
				to = []*strings.Builder{&left, &right}
			case '-':
				to = []*strings.Builder{&left}
			case '+':
				to = []*strings.Builder{&right}
			default:
				for _, w := range to {
					w.WriteRune(r)
				}
			}
		}
		if left.String() != c.a || right.String() != c.b || c.want != "" && got != c.want {
			t.Errorf("%q to %q: %s, want %s", c.a, c.b, got, c.want)
		}
	}
	// What is too large to compare counts as replaced, and takes no time.
	same := eval[int](b, `(() => { const { compare } = window.diff;
		const a = [...Array(20000).keys()];
		return compare(a, a.map((x) => x * 7 + 1)).length; })()`)
	if same == 0 {
		t.Error("nothing is told of large lists")
	}
}
