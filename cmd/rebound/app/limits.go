package app

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/proxy"
	"github.com/rebound-llm/rebound/proxy/quota"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/route"
)

// quotaConfig returns the limits of keys and of all clients together. A mapped model without a
// price gets that of its first target with one.
func quotaConfig(cfg *configs.Config) quota.Config {
	c := quota.Config{Keys: map[string]quota.Limits{}, Total: cfg.Proxy.Limits.Total, Prices: maps.Clone(cfg.Proxy.Prices)}
	for _, k := range cfg.Proxy.Auth.Keys {
		c.Keys[k.Name] = k.Limits.Limits
	}
	for name, m := range cfg.Models {
		for _, t := range m.Targets {
			price, ok := cfg.Proxy.Prices[t.Model]
			if _, own := c.Prices[name]; ok && !own {
				c.Prices[name] = price
			}
		}
	}
	return c
}

// activeLimiter returns the limiter, or nil if there are no limits, so that requests skip it.
func (a *App) activeLimiter(cfg *configs.Config) *quota.Limiter {
	c := quotaConfig(cfg)
	any := c.Total.Any()
	for _, l := range c.Keys {
		any = any || l.Any()
	}
	if !any {
		return nil
	}
	return a.limiter
}

// configuredSwitches returns the disabled upstreams and the modes in the configuration.
func configuredSwitches(cfg *configs.Config) *route.Switches {
	w := &route.Switches{}
	add := func(of, name string, mode recovery.Mode) {
		if mode != "" && mode != recovery.ModeAct {
			w.Fixed = append(w.Fixed, recovery.Switch{Of: of, Name: name, Mode: mode})
		}
	}
	for name, u := range cfg.Upstreams {
		if u.Disabled {
			add("upstream", name, recovery.ModeDisabled)
		}
		add("upstream", name, u.Mode)
	}
	for name, m := range cfg.Models {
		add("model", name, m.Mode)
	}
	for _, k := range cfg.Proxy.Auth.Keys {
		add("key", k.Name, k.Mode)
	}
	return w
}

// switchAdmin implements admin.Switches with the switches in force.
type switchAdmin struct{ *App }

// List implements admin.Switches.
func (s switchAdmin) List() []recovery.Switch { return s.switches.Load().List() }

// Set implements admin.Switches. A name that the configuration does not have is an error: the switch would do nothing.
// Models need not be in the configuration.
func (s switchAdmin) Set(w recovery.Switch) error {
	cfg := s.current()
	upstream, _, target := strings.Cut(w.Name, "/")
	_, known := cfg.Upstreams[upstream]
	switch {
	case w.Of == "target" && !target:
		return errors.New("name: a target is UPSTREAM/MODEL")
	case (w.Of == "upstream" || w.Of == "target") && !known:
		return fmt.Errorf("name: no upstream is called %q; the configuration has %s", upstream, strings.Join(slices.Sorted(maps.Keys(cfg.Upstreams)), ", "))
	case w.Of == "key" && !slices.ContainsFunc(cfg.Proxy.Auth.Keys, func(k proxy.ClientKey) bool { return k.Name == w.Name }):
		return fmt.Errorf("name: no gateway key is called %q; see auth.keys in the configuration", w.Name)
	}
	return s.switches.Load().Set(w)
}

// Clear implements admin.Switches.
func (s switchAdmin) Clear(of, name string) bool { return s.switches.Load().Clear(of, name) }
