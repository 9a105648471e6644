package page_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// overloaded is a gateway of which everything is to be shown, all of it under names
// that would run as scripts wherever they are taken for HTML: models, tools, fields of
// bodies, plans, what was learned of targets, windows and pace. It returns
// the views of the page.
func overloaded(t *testing.T) (*gateway, []string) {
	g := start(t, planning+"recording: {key_env: RECORDING}\nbreaker: {failures: 20, cooldown: 1m}\nrecovery: {wait_max: 1s}\n", brain(t, hostile))
	ask := func(model, more string) {
		g.ask(fmt.Sprintf(`{"model":%q,%s"messages":[{"role":"user","content":%q}]}`, model, more, hostile))
	}
	for range 24 { // so many that its pace is known
		ask(hostile, `"stream":true,`)
	}
	ask(hostile+"@no-param=temperature", fmt.Sprintf(`"temperature":0.2,%q:%q,`, hostile, hostile))
	ask(hostile+"@429,retry-after=50", "")
	ask(hostile+"@503x2/ok", "")
	long := strings.Repeat("word ", 12_000)
	g.ask(fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"Read."},{"role":"assistant","content":%q},{"role":"user","content":"And now?"}]}`, hostile+"@ctx=8192", long))
	g.stick(hostile+"@ok", hostile)
	if resp, err := http.Get(g.url + "/v1/models"); err != nil {
		t.Fatal(err)
	} else {
		resp.Body.Close()
	}
	views := []string{"now", "sessions", "targets", "learned"}
	for _, e := range g.told("events/history?event=request_done").Get("events").Array() {
		if r := e.Get("recovery").Str; strings.Contains(r, "adapt_parameter") || strings.Contains(r, "resend") {
			views = append(views, "request/"+e.Get("request").Str)
		}
	}
	for _, a := range g.waiting() {
		views = append(views, "sessions/"+a.Get("session").Str)
	}
	if len(views) != 7 {
		t.Fatalf("the views are %v", views)
	}
	return g, views
}

// Names and texts of others stay text in every view, wherever they come from; all of
// it can be read, and reached with the keyboard.
func TestHostileNames(t *testing.T) {
	g, views := overloaded(t)
	b := open(t)
	b.do(chromedp.Navigate(g.url + "/rebound/"))
	b.await("the page", "document.getElementById('state').textContent === 'live'")
	for _, v := range views {
		if v == "learned" {
			_ = eval[any](b, learnedHostile)
		}
		_ = eval[any](b, fmt.Sprintf("location.hash = %q", v))
		b.await("hostile text in "+v, "document.getElementById('view').textContent.includes('<img src=x')")
		if strings.HasPrefix(v, "request/") {
			b.await("what was changed of it", "document.querySelector('main .part') || document.body.textContent.includes('bytes went to')")
		}
		if v == "targets" {
			_ = eval[any](b, "document.querySelectorAll('summary').forEach((s) => s.click())")
			b.await("pace and windows", "document.querySelectorAll('details[open] table').length === 2")
			for _, want := range []string{"refuses temperature", "window of 8192 tokens", "window of 32000 tokens", "95 % within", "list of models", "its request", "24 answers"} {
				if !eval[bool](b, fmt.Sprintf("document.getElementById('view').textContent.includes(%q)", want)) {
					t.Errorf("the targets' view does not say %q: %s", want, g.told("targets"))
				}
			}
		}
		for _, width := range []int64{390, 1280} {
			b.do(chromedp.EmulateViewport(width, 900))
			if w := eval[int64](b, "document.documentElement.scrollWidth"); w > width {
				t.Errorf("%s is %d wide on a screen of %d", v, w, width)
			}
		}
		for _, theme := range []string{"light", "dark"} {
			_ = eval[any](b, fmt.Sprintf("document.documentElement.dataset.theme = %q", theme))
			for _, faint := range eval[[]string](b, contrast) {
				t.Errorf("%s, %s: %s", v, theme, faint)
			}
			b.do(chromedp.KeyEvent("j")) // after a key focus is shown
			for _, lost := range eval[[]string](b, focus) {
				t.Errorf("%s, %s: %s", v, theme, lost)
			}
		}
	}
	// Each that is kept of a target can be forgotten alone, by who clicks.
	_ = eval[any](b, "window.confirm = () => true; location.hash = 'targets'")
	for _, item := range []string{"field temperature", "window", "listed window", "first token", "cool-down"} {
		kept := func() (n int) {
			for _, m := range g.told("targets").Get("targets").Array() {
				if m.Get("item").Str == item {
					n++
				}
			}
			return n
		}
		before := kept()
		button := fmt.Sprintf("[...document.querySelectorAll('main button')].find((x) => x.ariaLabel?.startsWith('Reset %s of '))", item)
		b.await("a reset of "+item, button)
		_ = eval[any](b, button+".click()")
		for end := time.Now().Add(patience); kept() == before; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s is kept still, %d times", item, before)
			}
		}
	}
	b.nothingRan()
}

// learnedHostile has the page told a report that the gateway itself would not make: it
// takes no such names into what it learns.
var learnedHostile = fmt.Sprintf(`(() => {
	const [name, ask] = [%q, window.fetch];
	const arm = (strategy) => ({ strategy, observations: 20, rate: 0.4, interval: [0.2, 0.6] });
	const report = { mode: name, observations: 40, open: 1, refused: 0, lost: 0,
		cells: [{ chain: name, model: name, decision: name, net: 0.1, net_interval: [-0.1, 0.3], arms: [arm(name), arm('')] },
			...['chain', 'learned', 'observe'].map((decision) => ({ chain: decision, model: 'm', decision, net: 0, net_interval: [-0.1, 0.1], arms: [arm('')] }))],
		patterns: [{ template: name, chain: name, strategy: name, observations: 9, rate: 0.9 }] };
	window.fetch = (path, ...rest) => (path === 'learn' ? Promise.resolve(new Response(JSON.stringify(report))) : ask(path, ...rest));
})()`, hostile)

// colours computes the contrast of two colours as WCAG 2 does, and what is behind an
// element: backgrounds may be translucent.
const colours = `
	const read = (text) => {
		const n = text.match(/[-\d.]+(?:e-?\d+)?/g).map(Number);
		const [r, g, b, a = 1] = n;
		return text.startsWith('color(') ? [255 * r, 255 * g, 255 * b, a] : [r, g, b, a];
	};
	const over = ([r, g, b, a], [x, y, z]) => [r * a + x * (1 - a), g * a + y * (1 - a), b * a + z * (1 - a), 1];
	const behind = (el) => {
		const layers = [];
		for (; el; el = el.parentElement) layers.push(read(getComputedStyle(el).backgroundColor));
		return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255, 1]);
	};
	const luminance = (c) => {
		const [r, g, b] = c.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const ratio = (a, b) => {
		const [x, y] = [luminance(a), luminance(b)];
		return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
	};
	const seen = (el) => el.checkVisibility() && el.getBoundingClientRect().width > 0;
`

// contrast lists the texts whose contrast is below what WCAG 2 asks for at level AA
// (1.4.3), and of what is drawn and the edges of fields below 3 (1.4.11).
const contrast = "(() => {" + colours + `
	const bad = new Set();
	const check = (what, fore, back, least) => {
		const r = ratio(over(fore, back), back);
		if (r < least) bad.add(what + ': ' + r.toFixed(2) + ', least ' + least);
	};
	for (const el of document.querySelectorAll('body, body *')) {
		if (!seen(el)) continue;
		const style = getComputedStyle(el);
		const name = el.tagName.toLowerCase() + '.' + String(el.className?.baseVal ?? el.className).replaceAll(' ', '.');
		if ([...el.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.textContent.trim())) {
			const size = parseFloat(style.fontSize);
			check(name + ' ' + JSON.stringify(el.textContent.slice(0, 30)), read(style.color), behind(el), size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5);
		}
		if (el.placeholder) check('placeholder', read(getComputedStyle(el, '::placeholder').color), behind(el), 4.5);
		if (el.matches('input, select')) check('edge of ' + name, read(style.borderTopColor), behind(el.parentElement), 3);
	}
	const drawn = document.createElement('i');
	document.querySelector('.panel').append(drawn);
	for (const name of ['ok', 'recovered', 'failed', 'warn', 'accent']) {
		drawn.style.color = 'var(--' + name + ')';
		check(name + ' as a line', read(getComputedStyle(drawn).color), behind(drawn.parentElement), 3);
	}
	drawn.remove();
	return [...bad];
})()`

// focus lists what can be used and does not show that it has the focus, and what can be
// used and has no name.
const focus = "(() => {" + colours + `
	const bad = new Set();
	for (const el of document.querySelectorAll('a[href], button, input, select, summary, [tabindex="0"]')) {
		if (!seen(el) || el.disabled) continue;
		el.focus();
		const style = getComputedStyle(el);
		const name = el.tagName.toLowerCase() + ' ' + JSON.stringify(el.textContent.slice(0, 30));
		if (document.activeElement !== el) bad.add(name + ' takes no focus');
		else if (style.outlineStyle !== 'solid' || parseFloat(style.outlineWidth) < 2 || ratio(read(style.outlineColor), behind(el.parentElement)) < 3) bad.add(name + ' does not show its focus: ' + style.outline);
		if (!(el.textContent.trim() || el.ariaLabel || el.title)) bad.add(name + ' has no name');
	}
	document.activeElement?.blur();
	return [...bad];
})()`

// A page of an upstream is shown, and does nothing: its origin is not the gateway's.
func TestPageOfAnUpstream(t *testing.T) {
	g := start(t, "")
	b := open(t)
	b.do(chromedp.Navigate(g.url + "/v1/page"))
	b.await("the page", "document.querySelector('p')")
	if title := eval[string](b, "document.title"); title != "" {
		t.Errorf("its script has run: the title is %q", title)
	}
	if origin := eval[string](b, "self.origin"); origin != "null" {
		t.Errorf("its origin is %q", origin)
	}
}
