package app

import (
	"maps"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/proxy/quota"
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
