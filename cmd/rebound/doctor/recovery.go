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

// recoveries reports which failures of a target this configuration recovers, and how.
func (p *probe) recoveries() {
	c := p.Config
	add := func(ok bool, failure, format string, args ...any) {
		p.report.Recovery = append(p.report.Recovery, Recovery{Failure: failure, Recovered: ok, How: fmt.Sprintf(format, args...)})
	}
	if mode := p.mode(); mode != recovery.ModeAct {
		add(false, "every failure", "the mode is %s: failures reach the client unchanged", mode)
		return
	}
	others := max(0, len(c.Models[p.name].Targets)-1)
	keys := max(0, len(p.cfg.Keys)-1)
	if p.streams {
		ok, how := p.afterCut()
		add(ok, "cut stream", "%s", how)
		if c.Recovery.Attempts > 1 {
			add(true, "cut before text", "the request is sent again, and the client does not notice")
		} else {
			add(false, "cut before text", "recovery.attempts is 1: the client gets the error")
		}
		add(false, "cut after a call", "a stream that breaks after the client received a tool call ends with an error")
	}
	switch n := p.configuredWindow; {
	case !c.Fit.Enabled:
		add(false, "history too long", "fit.enabled is false: the client gets the refusal")
	case p.truncatedTo > 0 && (n == 0 || n > p.truncatedTo):
		add(false, "history too long", "the target truncates silently: set window to %d to shorten the history instead", p.truncatedTo)
	case n > 0 && (p.statedWindow == 0 || n <= p.statedWindow):
		add(true, "history too long", "it is shortened to fit %s tokens before it is sent", number(n))
	case p.statedWindow > 0:
		add(true, "history too long", "it is shortened and sent again after the first refusal; with the window below it is shortened before it is sent")
	default:
		add(true, "history too long", "it is shortened and sent again after the first refusal, from which the gateway learns the window")
	}
	if others+keys > 0 {
		add(true, "rate limit", "the gateway waits for up to %s; for longer waits it uses another target or key", configs.Duration(c.Recovery.WaitSame))
	} else {
		add(true, "rate limit", "the gateway waits for up to %s; there is no other target", configs.Duration(c.Recovery.WaitMax))
		add(false, "bad credential, quota", "there is no other key or target")
	}
	if others > 0 {
		add(true, "outage", "the request goes to %s", plural(others, "other target"))
	} else {
		add(true, "outage", "the request is sent again for up to %s, then the client gets the error: there is no other target", configs.Duration(c.Recovery.Patience))
	}
	if c.Repair.Enabled {
		add(true, "broken tool call", "it is repaired, or the model is asked again, up to %s", plural(c.Recovery.Reasks, "time"))
	}
	switch n := c.Breaker.Failures; {
	case !c.Inspect.Enabled:
	case n > 0:
		add(true, "failing tools, loops", "the model gets notes; after %s the session is stopped", plural(n, "identical failure"))
	default:
		add(true, "failing tools, loops", "the model gets notes")
	}
	if len(p.edits) > 0 {
		add(true, "refused parameters", "they are removed or renamed, for %s after each refusal", configs.Duration(c.Learn.FactTTL))
	}
	if len(p.refused) > 0 {
		add(false, "refused parameters", "requests with %s are refused", strings.Join(p.refused, ", "))
	}
}

// mode returns the recovery mode of requests to the target.
func (p *probe) mode() recovery.Mode {
	m := p.Config.Recovery.Mode
	for _, lower := range []recovery.Mode{p.cfg.Mode, p.Config.Models[p.name].Mode} {
		if lower != "" && lower != recovery.ModeAct {
			m = lower
		}
	}
	return m
}

// afterCut reports whether and how a stream is recovered that breaks after the client received text.
func (p *probe) afterCut() (ok bool, how string) {
	s := p.Config.Stream
	switch s.MidStream {
	case "error":
		return false, "stream.mid_stream is error: the client gets an error"
	case "buffer":
		return true, "answers are held until they are complete, and requested again after a cut (stream.mid_stream: buffer)"
	}
	set := p.cfg.Prefills()
	usable := p.prefill != "" && p.prefill != recovery.PrefillNone && (set == p.prefill || set == recovery.PrefillAuto && p.prefill == upstream.ServerPrefill(p.serverHeader, p.modelList))
	asks := slices.Contains(s.Continue, recovery.WayAsk)
	switch {
	case usable && slices.Contains(s.Continue, recovery.WayPrefill):
		return true, "continued by prefill: the target continues the text that the client already has"
	case asks && p.prefill == recovery.PrefillNone:
		return true, "continued by asking: the model repeats its last words and goes on (not inside JSON)"
	case asks && p.prefill != "":
		return true, "continued by asking the model to go on; prefill is more reliable, see the configuration below"
	case asks:
		return true, "continued by asking the model to go on, or by prefill if the target turns out to support it"
	case slices.Contains(s.Continue, recovery.WayReplay):
		return true, "requested again, and continued if the new answer begins with the same words (temperature 0 or a seed)"
	}
	return false, "no method in stream.continue works here: the client gets an error"
}

// suggestedConfig returns YAML with the settings that the probes suggest, or "" if there are none.
func suggestedConfig(c *configs.Config, probes []*probe) string {
	prefills, windows := map[string]recovery.Prefill{}, map[recovery.Target]int{}
	named := map[string]route.Model{}
	for _, p := range probes {
		set := p.cfg.Prefills()
		if p.prefill != "" && p.prefill != set && !(set == recovery.PrefillAuto && p.prefill == upstream.ServerPrefill(p.serverHeader, p.modelList)) {
			prefills[p.target.Upstream] = p.prefill
		}
		best := cmp.Or(p.truncatedTo, p.statedWindow)
		if !p.answers || best == 0 || p.configuredWindow > 0 && p.configuredWindow <= best || p.name == "" && p.ambiguous(probes) {
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

// ambiguous reports whether the configuration must not bind an unconfigured model to this target: its
// requests go elsewhere, or another upstream has a model of that name.
func (p *probe) ambiguous(probes []*probe) bool {
	_, taken := p.Config.Models[p.target.Model]
	return taken || p.target.Upstream != p.Config.DefaultOf(p.cfg.API()) || slices.ContainsFunc(probes, func(o *probe) bool {
		return o.target.Model == p.target.Model && o.target.Upstream != p.target.Upstream
	})
}

// render writes a complete configuration, which needs no other file. Configured upstreams replace the built-in
// ones, so without a configuration file it contains all of them.
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
		if u.Format != "" && u.Format != upstream.Defaults().Format {
			fmt.Fprintf(&b, "    format: %s\n", u.Format)
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

// defaultOf returns the default upstream if it is shown, or else the first shown one.
func defaultOf(c *configs.Config, shown map[string]bool) string {
	if shown[c.DefaultUpstream] {
		return c.DefaultUpstream
	}
	return slices.Sorted(maps.Keys(shown))[0]
}

// plainURL matches URLs that need no quotes in YAML.
var plainURL = regexp.MustCompile(`^https?://[A-Za-z0-9_./:-]*[A-Za-z0-9_/-]$`)

// quoted returns a string as a YAML scalar, in quotes if it needs them.
func quoted(s string) string {
	if plainURL.MatchString(s) {
		return s
	}
	return configs.Scalar(s)
}
