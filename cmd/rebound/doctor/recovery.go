package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/proxy/upstream"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/route"
)

// recoveries says what becomes of failures of a target with this configuration.
func (p *probe) recoveries() {
	c := p.Config
	add := func(ok bool, failure, format string, args ...any) {
		p.report.Recovery = append(p.report.Recovery, Recovery{Failure: failure, Recovered: ok, How: fmt.Sprintf(format, args...)})
	}
	if mode := p.mode(); mode != recovery.ModeAct {
		add(false, "every failure", "the mode is %s: failures pass as they are", mode)
		return
	}
	others := max(0, len(c.Models[p.name].Targets)-1)
	keys := max(0, len(p.cfg.Keys)-1)
	if p.streams {
		ok, how := p.afterCut()
		add(ok, "cut stream", "%s", how)
		if c.Recovery.Attempts > 1 {
			add(true, "cut before text", "the request is sent again, and the client sees nothing of it")
		} else {
			add(false, "cut before text", "recovery.attempts is 1: the client gets the error")
		}
		add(false, "cut after a call", "a stream that breaks after a tool call was passed on ends with an error")
	}
	switch n := p.window; {
	case !c.Fit.Enabled:
		add(false, "history too long", "fit.enabled is false: the client gets the refusal")
	case p.cuts > 0 && (n == 0 || n > p.cuts):
		add(false, "history too long", "the target cuts in silence: set window to %d, and the history is shortened instead", p.cuts)
	case n > 0 && (p.told == 0 || n <= p.told):
		add(true, "history too long", "it is shortened to %s tokens before it is sent", number(n))
	case p.told > 0:
		add(true, "history too long", "it is shortened and sent again after the first refusal; with the window below, before it is sent")
	default:
		add(true, "history too long", "it is shortened and sent again after the first refusal, which teaches the window")
	}
	if others+keys > 0 {
		add(true, "rate limit", "waits of up to %s are waited out, then another target or key is asked", configs.Duration(c.Recovery.WaitSame))
	} else {
		add(true, "rate limit", "waits of up to %s are waited out; there is no other target", configs.Duration(c.Recovery.WaitMax))
		add(false, "bad credential, quota", "there is neither another key nor another target")
	}
	if others > 0 {
		add(true, "outage", "the request moves to %s", plural(others, "other target"))
	} else {
		add(true, "outage", "the request is sent again for up to %s; a longer outage reaches the client: there is no other target", configs.Duration(c.Recovery.Patience))
	}
	if c.Repair.Enabled {
		add(true, "broken tool call", "it is mended, or the model is asked again, up to %s", plural(c.Recovery.Reasks, "time"))
	}
	switch n := c.Breaker.Failures; {
	case !c.Inspect.Enabled:
	case n > 0:
		add(true, "failing tools, loops", "the model gets notes; after %s it is stopped", plural(n, "identical failure"))
	default:
		add(true, "failing tools, loops", "the model gets notes")
	}
	if len(p.edits) > 0 {
		add(true, "refused parameters", "they are left out or renamed, for %s after each refusal", configs.Duration(c.Learn.FactTTL))
	}
	if len(p.without) > 0 {
		add(false, "refused parameters", "requests with %s get the refusal", strings.Join(p.without, ", "))
	}
}

// mode is the most that is done to requests that go to the target.
func (p *probe) mode() recovery.Mode {
	m := p.Config.Recovery.Mode
	for _, lower := range []recovery.Mode{p.cfg.Mode, p.Config.Models[p.name].Mode} {
		if lower != "" && lower != recovery.ModeAct {
			m = lower
		}
	}
	return m
}

// afterCut says what becomes of a stream that breaks after text was passed on.
func (p *probe) afterCut() (ok bool, how string) {
	s := p.Config.Stream
	switch s.MidStream {
	case "error":
		return false, "stream.mid_stream is error: the client gets an error"
	case "buffer":
		return true, "answers are held until they are complete, and asked for again (stream.mid_stream: buffer)"
	}
	set := p.cfg.Prefills()
	usable := p.prefill != "" && p.prefill != recovery.PrefillNone && (set == p.prefill || set == recovery.PrefillAuto && p.prefill == upstream.ServerPrefill(p.server, p.list))
	asks := slices.Contains(s.Continue, recovery.WayAsk)
	switch {
	case usable && slices.Contains(s.Continue, recovery.WayPrefill):
		return true, "continued by prefill: the target goes on from the text that the client has"
	case asks && p.prefill == recovery.PrefillNone:
		return true, "continued by asking: the model repeats its last words and goes on (JSON cannot be continued so)"
	case asks && p.prefill != "":
		return true, "continued by asking the model to go on; surer is prefill, see the configuration below"
	case asks:
		return true, "continued by asking the model to go on, unless the target turns out to know a prefill"
	case slices.Contains(s.Continue, recovery.WayReplay):
		return true, "asked again, and continued if the answer begins with the same words (temperature 0 or a seed)"
	}
	return false, "stream.continue names no way: the client gets an error"
}

// fittingConfig is the configuration that fits, "" where nothing is to be set.
func fittingConfig(c *configs.Config, probes []*probe) string {
	prefills, windows := map[string]recovery.Prefill{}, map[recovery.Target]int{}
	named := map[string]route.Model{}
	for _, p := range probes {
		set := p.cfg.Prefills()
		if p.prefill != "" && p.prefill != set && !(set == recovery.PrefillAuto && p.prefill == upstream.ServerPrefill(p.server, p.list)) {
			prefills[p.target.Upstream] = p.prefill
		}
		best := cmp.Or(p.cuts, p.told)
		if !p.answers || best == 0 || p.window > 0 && p.window <= best || p.name == "" && p.ambiguous(probes) {
			continue
		}
		windows[recovery.Target{Upstream: p.target.Upstream, Model: p.target.Model}] = best
		m, ok := c.Models[p.name]
		if !ok {
			m.Targets = []route.Target{{Upstream: p.target.Upstream, Model: p.target.Model}}
		}
		named[cmp.Or(p.name, p.target.Model)] = m
	}
	if len(prefills)+len(windows) == 0 {
		return ""
	}
	return render(c, prefills, windows, named)
}

// ambiguous reports whether a model that is not configured may not be bound to the target: requests
// for it do not go there, or another upstream has one of that name.
func (p *probe) ambiguous(probes []*probe) bool {
	_, taken := p.Config.Models[p.target.Model]
	return taken || p.target.Upstream != p.Config.DefaultOf(p.cfg.Messages()) || slices.ContainsFunc(probes, func(o *probe) bool {
		return o.target.Model == p.target.Model && o.target.Upstream != p.target.Upstream
	})
}

// render writes a configuration that can be loaded by itself. Who names upstreams names all, so
// without a file all of them are in it.
func render(c *configs.Config, prefills map[string]recovery.Prefill, windows map[recovery.Target]int, named map[string]route.Model) string {
	shown := map[string]bool{}
	for name := range c.Upstreams {
		shown[name] = c.Path() == "" || prefills[name] != ""
	}
	for _, m := range named {
		for _, t := range m.Targets {
			shown[t.Upstream] = true
		}
	}
	maps.DeleteFunc(shown, func(_ string, show bool) bool { return !show })
	var b strings.Builder
	b.WriteString("upstreams:\n")
	for _, name := range slices.Sorted(maps.Keys(shown)) {
		u := c.Upstreams[name]
		fmt.Fprintf(&b, "  %s:\n", quoted(name))
		if u.Messages() {
			b.WriteString("    format: anthropic\n")
		}
		fmt.Fprintf(&b, "    url: %s\n", quoted(u.URL))
		if how := prefills[name]; how != "" {
			fmt.Fprintf(&b, "    prefill: %s\n", how)
		}
	}
	if len(shown) > 1 && !shown["default"] {
		fmt.Fprintf(&b, "default_upstream: %s\n", quoted(defaultOf(c, shown)))
	}
	if len(named) == 0 {
		return b.String()
	}
	b.WriteString("models:\n")
	for _, name := range slices.Sorted(maps.Keys(named)) {
		fmt.Fprintf(&b, "  %s:\n    targets:\n", quoted(name))
		for _, t := range named[name].Targets {
			fmt.Fprintf(&b, "      - upstream: %s\n", quoted(t.Upstream))
			model := cmp.Or(t.Model, name)
			if t.Model != "" && t.Model != name {
				fmt.Fprintf(&b, "        model: %s\n", quoted(t.Model))
			}
			window := t.Window
			if n := windows[recovery.Target{Upstream: t.Upstream, Model: model}]; n > 0 {
				window = n
			}
			if window > 0 {
				fmt.Fprintf(&b, "        window: %d\n", window)
			}
			if t.Prefill != "" {
				fmt.Fprintf(&b, "        prefill: %s\n", cmp.Or(string(prefills[t.Upstream]), t.Prefill))
			}
		}
	}
	return b.String()
}

// defaultOf is the default upstream among those that are shown, else the first of them.
func defaultOf(c *configs.Config, shown map[string]bool) string {
	if shown[c.DefaultUpstream] {
		return c.DefaultUpstream
	}
	return slices.Sorted(maps.Keys(shown))[0]
}

// plainURL is an address that YAML reads as it stands.
var plainURL = regexp.MustCompile(`^https?://[A-Za-z0-9_./:-]*[A-Za-z0-9_/-]$`)

// quoted is a string as YAML has it, in quotes where it might be taken for something else.
func quoted(s string) string {
	if plainURL.MatchString(s) {
		return s
	}
	return configs.Scalar(s)
}
