package app

import (
	"maps"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/proxy/quota"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/route"
)

// limits are what keys, and all clients together, may use. A name of the model
// map costs what its first target with a price does, unless it has a price itself.
func limits(cfg *configs.Config) quota.Config {
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

// limiting is the limiter, nil where nothing is limited: then requests do not ask it.
func (a *App) limiting(cfg *configs.Config) *quota.Limiter {
	c := limits(cfg)
	any := c.Total.Any()
	for _, l := range c.Keys {
		any = any || l.Any()
	}
	if !any {
		return nil
	}
	return a.limiter
}

// fixed is what the configuration switches off or down.
func fixed(cfg *configs.Config) *route.Switches {
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

// switching is what admin changes of the switches in force.
type switching struct{ *App }

// List implements admin.Switches.
func (s switching) List() []recovery.Switch { return s.switches.Load().List() }

// Set implements admin.Switches.
func (s switching) Set(w recovery.Switch) error { return s.switches.Load().Set(w) }

// Clear implements admin.Switches.
func (s switching) Clear(of, name string) bool { return s.switches.Load().Clear(of, name) }
